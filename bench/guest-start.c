/* SPDX-License-Identifier: MIT */
/*
 * guest-start [ROUNDS]: a guest's way from nothing to the end of its first process, through the backend and by bare API
 * calls (create, start, exec) with the same image and pool, taking turns on the private incusd of the tests. Prints one
 * JSON object: medians in milliseconds and their ratio, whose goal is 1.15.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "incus-exec-start.h"
#include "incus-instance-json.h"
#include "incus-operation.h"
#include "incus-test.h"

#define MAX_ROUNDS 100

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double
median(double *values, guint count)
{
    qsort(values, count, sizeof *values, compare);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void
call(IncusClient *client, const char *method, const char *path, JsonNode *body)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(IncusDeadline) deadline = incus_deadline_new(60000, NULL);
    incus_operation_run_async(client, method, path, body, deadline, eb_test_result_ready, &done);
    g_autoptr(IncusReply) reply = incus_operation_finish(eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
}

static double
bare(IncusClient *client, guint round)
{
    static const char *const argv[] = {"true", NULL};
    g_autofree char *name = g_strdup_printf("bare-%d-%u", (int)getpid(), round);
    g_autofree char *text =
        g_strdup_printf("{\"name\":\"%s\",\"type\":\"container\",\"ephemeral\":true,\"source\":{\"type\":\"image\","
                        "\"alias\":\"%s\"},\"config\":{\"security.idmap.isolated\":\"true\"}}",
                        name, incus_test.incusd->image);
    g_autoptr(JsonNode) body = eb_json_parse(text, strlen(text), NULL, NULL);
    g_autoptr(JsonNode) start = incus_state_to_json("start", FALSE, 30);
    g_autoptr(EbExecSpec) spec = eb_exec_spec_new(argv);
    g_autoptr(IncusDeadline) deadline = incus_deadline_new(60000, NULL);
    g_autoptr(GError) error = NULL;
    g_auto(EbTestResult) done = {0};
    g_autofree char *path = incus_client_path(client, NULL, "instances", NULL);
    g_autofree char *state = incus_client_path(client, NULL, "instances", name, "state", NULL);
    gint64 begin = g_get_monotonic_time();
    call(client, "POST", path, body);
    call(client, "PUT", state, start);
    incus_exec_start_async(client, name, spec, deadline, eb_test_result_ready, &done);
    g_autoptr(EbExec) exec = incus_exec_start_finish(eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_cmpint(incus_test_wait(exec, &error), ==, 0);
    double ms = (double)(g_get_monotonic_time() - begin) / 1000;
    incus_test_destroy(incus_test.backend, name);
    return ms;
}

static double
ours(void)
{
    static const char *const argv[] = {"true", NULL};
    g_autoptr(EbContainerSpec) spec = incus_test_spec("ours");
    g_autoptr(GError) error = NULL;
    gint64 begin = g_get_monotonic_time();
    incus_test_launch(incus_test.backend, spec);
    g_autoptr(EbExec) exec = incus_test_exec(incus_test.backend, spec->name, 0, argv);
    g_assert_cmpint(incus_test_wait(exec, &error), ==, 0);
    double ms = (double)(g_get_monotonic_time() - begin) / 1000;
    incus_test_destroy(incus_test.backend, spec->name);
    return ms;
}

int
main(int argc, char **argv)
{
    double mine[MAX_ROUNDS], theirs[MAX_ROUNDS];
    guint rounds = argc > 1 ? CLAMP((guint)atoi(argv[1]), 1, MAX_ROUNDS) : 10;
    argc = 1;
    if (!incus_test_init(&argc, &argv, "bench"))
        return 77;
    g_autoptr(IncusEndpoint) endpoint = incus_endpoint_new_socket(incus_test.incusd->socket);
    g_autoptr(IncusClient) client = incus_client_new(endpoint);
    incus_client_set_project(client, incus_test.incusd->project);
    ours(); /* the image is unpacked once */
    bare(client, rounds);
    for (guint i = 0; i < rounds; i++) {
        mine[i] = ours();
        theirs[i] = bare(client, i);
    }
    double a = median(mine, rounds), b = median(theirs, rounds);
    printf("{\"bench\":\"guest-start\",\"rounds\":%u,\"pool\":\"%s\",\"backend_ms\":%.1f,\"bare_ms\":%.1f,"
           "\"ratio\":%.3f,\"goal\":1.15}\n",
           rounds, incus_test.incusd->driver, a, b, a / b);
    g_clear_object(&incus_test.backend);
    eb_test_drain();
    g_clear_pointer(&incus_test.incusd, eb_test_incusd_release);
    return 0;
}
