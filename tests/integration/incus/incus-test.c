/* SPDX-License-Identifier: MIT */
#include "incus-test.h"

#include <stdio.h>
#include <unistd.h>

IncusTest incus_test;

static void
drop_message(const char *domain, GLogLevelFlags level, const char *message, gpointer user_data)
{
}

gboolean
incus_test_init(int *argc, char ***argv, const char *name)
{
    g_autofree char *reason = NULL;
    eb_test_init(argc, argv);
    /* hundreds of lines a test */
    g_log_set_handler("libsoup", G_LOG_LEVEL_DEBUG, drop_message, NULL);
    g_log_set_handler("GLib-GIO", G_LOG_LEVEL_DEBUG, drop_message, NULL);
    incus_test.incusd = eb_test_incusd_acquire(name, &reason);
    if (incus_test.incusd == NULL) {
        printf("1..0 # SKIP %s\n", reason);
        return FALSE;
    }
    incus_test.backend = incus_test_backend(incus_test.incusd->socket, incus_test.incusd->project);
    return TRUE;
}

int
incus_test_run(void)
{
    int code = g_test_run();
    g_clear_object(&incus_test.backend);
    eb_test_drain();
    g_clear_pointer(&incus_test.incusd, eb_test_incusd_release);
    return code;
}

EbContainerBackend *
incus_test_backend(const char *socket, const char *project)
{
    IncusSettings *settings = g_new0(IncusSettings, 1);
    g_autoptr(IncusEndpoint) endpoint = incus_endpoint_new_socket(socket);
    g_autoptr(IncusClient) client = incus_client_new(endpoint);
    settings->project = g_strdup(project);
    settings->pool = g_strdup("");
    settings->image = g_strdup("test/guest");
    return EB_CONTAINER_BACKEND(incus_backend_new(client, settings));
}

EbContainerSpec *
incus_test_spec(const char *prefix)
{
    static guint counter;
    g_autofree char *name = g_strdup_printf("%s-%d-%u", prefix, (int)getpid(), counter++);
    EbContainerSpec *spec = eb_container_spec_new(name, "test/guest");
    spec->ephemeral = TRUE;
    spec->memory_bytes = 256 * 1024 * 1024;
    spec->cpus = 1;
    spec->pids = 200;
    spec->disk_bytes = 512 * 1024 * 1024;
    return spec;
}

void
incus_test_launch(EbContainerBackend *backend, const EbContainerSpec *spec)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_container_backend_launch_async(backend, spec, EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready, &done);
    gboolean ok = eb_container_backend_launch_finish(backend, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_true(ok);
}

void
incus_test_destroy(EbContainerBackend *backend, const char *name)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_container_backend_stop_async(backend, name, EB_STOP_FORCE | EB_STOP_DESTROY, 0, EB_TEST_DEADLINE_MS, NULL,
                                    eb_test_result_ready, &done);
    gboolean ok = eb_container_backend_stop_finish(backend, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_true(ok);
}

char *
incus_test_names(EbContainerBackend *backend)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_container_backend_list_async(backend, NULL, EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready, &done);
    g_autoptr(GPtrArray) infos = eb_container_backend_list_finish(backend, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = 0; i < infos->len; i++)
        g_string_append_printf(names, "%s%s", i > 0 ? "," : "", ((EbInstanceInfo *)infos->pdata[i])->name);
    return g_string_free(g_steal_pointer(&names), FALSE);
}

gboolean
incus_test_exists(EbContainerBackend *backend, const char *name)
{
    g_autofree char *names = incus_test_names(backend);
    g_auto(GStrv) list = g_strsplit(names, ",", 0);
    return g_strv_contains((const char *const *)list, name);
}

EbExec *
incus_test_exec(EbContainerBackend *backend, const char *name, guint32 uid, const char *const *argv)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(EbExecSpec) spec = eb_exec_spec_new(argv);
    spec->uid = spec->gid = uid;
    eb_container_backend_exec_async(backend, name, spec, EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready, &done);
    EbExec *exec = eb_container_backend_exec_finish(backend, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_nonnull(exec);
    return exec;
}

void
incus_run_clear(IncusRun *self)
{
    if (self->out != NULL)
        g_string_free(self->out, TRUE);
    if (self->err != NULL)
        g_string_free(self->err, TRUE);
    g_clear_error(&self->error);
    *self = (IncusRun){0};
}

int
incus_test_wait(EbExec *exec, GError **error)
{
    g_auto(EbTestResult) done = {0};
    eb_exec_wait_async(exec, NULL, eb_test_result_ready, &done);
    return eb_exec_wait_finish(exec, eb_test_result_wait(&done), error);
}

typedef struct {
    GString *text;
    gboolean ended;
} Reader;

static void
on_read(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Reader *reader = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = g_input_stream_read_bytes_finish(G_INPUT_STREAM(source), result, &error);
    g_assert_no_error(error);
    gsize length;
    const char *data = g_bytes_get_data(bytes, &length);
    if (length == 0) {
        reader->ended = TRUE;
        return;
    }
    g_string_append_len(reader->text, data, (gssize)length);
    g_input_stream_read_bytes_async(G_INPUT_STREAM(source), 65536, G_PRIORITY_DEFAULT, NULL, on_read, reader);
}

GString *
incus_test_read_all(GInputStream *stream)
{
    Reader reader = {.text = g_string_new(NULL)};
    g_input_stream_read_bytes_async(stream, 65536, G_PRIORITY_DEFAULT, NULL, on_read, &reader);
    eb_test_run_until_true(&reader.ended);
    return reader.text;
}

static void
on_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    if (!g_output_stream_write_all_finish(G_OUTPUT_STREAM(source), result, NULL, &error))
        g_test_message("stdin: %s", error->message);
    g_output_stream_close(G_OUTPUT_STREAM(source), NULL, NULL);
}

IncusRun
incus_test_shell(EbContainerBackend *backend, const char *name, guint32 uid, const char *input, const char *command)
{
    const char *argv[] = {"sh", "-c", command, NULL};
    g_autoptr(EbExec) exec = incus_test_exec(backend, name, uid, argv);
    IncusRun run = {.out = g_string_new(NULL), .err = g_string_new(NULL)};
    Reader readers[2] = {{.text = run.out}, {.text = run.err}};
    const char *text = input != NULL ? input : "";
    g_input_stream_read_bytes_async(eb_exec_get_stdout(exec), 65536, G_PRIORITY_DEFAULT, NULL, on_read, &readers[0]);
    g_input_stream_read_bytes_async(eb_exec_get_stderr(exec), 65536, G_PRIORITY_DEFAULT, NULL, on_read, &readers[1]);
    g_output_stream_write_all_async(eb_exec_get_stdin(exec), text, strlen(text), G_PRIORITY_DEFAULT, NULL, on_written,
                                    NULL);
    run.code = incus_test_wait(exec, &run.error);
    eb_test_run_until_true(&readers[0].ended);
    eb_test_run_until_true(&readers[1].ended);
    return run;
}
