/* SPDX-License-Identifier: MIT */
/*
 * render-talkative [UPDATES [SECRETS]]: a talkative agent through renderer and coalescer; see README.md. Prints one JSON
 * object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "core/acp/eb-acp-tools.h"
#include "core/acp/eb-acp-types.h"
#include "core/render/eb-coalescer.h"
#include "core/render/eb-renderer.h"
#include "render-chat.h"
#include "talkative.h"

#define CHUNK 40

static double
cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static EbAcpUpdate *
receive(EbAcpTools *tools, const char *json)
{
    g_autoptr(JsonNode) node = eb_json_parse(json, strlen(json), NULL, NULL);
    JsonObject *object = eb_json_node_object(node);
    EbAcpUpdate *update = eb_acp_update_decode("s", object);
    if (update->kind == EB_ACP_UPDATE_TOOL)
        update->tool = eb_acp_tools_upsert(tools, object,
                                           g_strcmp0(eb_json_get_string(object, "sessionUpdate"), "tool_call") == 0);
    return update;
}

/* What must be done whatever is shown. */
static double
measure_floor(char **updates, guint count)
{
    g_autoptr(EbAcpTools) tools = eb_acp_tools_new();
    double begin = cpu_seconds();
    for (guint i = 0; i < count; i++) {
        g_autoptr(EbAcpUpdate) update = receive(tools, updates[i]);
    }
    return cpu_seconds() - begin;
}

typedef struct {
    double cpu;
    guint calls;
    guint longest;
    gsize bytes;
} Result;

static EbRedactSet *
make_secrets(guint count, char **values)
{
    EbRedactSet *set = eb_redact_set_new();
    for (guint i = 0; i < count; i++) {
        values[i] = i == 0 ? g_strdup(TALKATIVE_SECRET)
                           : g_strdup_printf("sk-%08x%08x%08x%08x", g_random_int(), g_random_int(), g_random_int(),
                                             g_random_int());
        g_autofree char *copy = g_strdup(values[i]);
        g_autoptr(EbSecret) secret = eb_secret_new_take("key", copy, strlen(copy), NULL);
        eb_redact_set_add(set, secret);
    }
    return set;
}

static void
measure_render(char **updates, guint count, EbRedactSet *secrets, Result *result)
{
    g_autoptr(RenderChat) chat = render_chat_new(EB_CHAT_CAP_EDIT | EB_CHAT_CAP_FILES, 2000, 1500);
    g_autoptr(EbAcpTools) tools = eb_acp_tools_new();
    g_autoptr(EbRenderer) renderer = eb_renderer_new("t", secrets);
    EbCoalescer *coalescer = eb_coalescer_new(EB_CHAT_TRANSPORT(chat));
    chat->delay_ms = 50;
    double begin = cpu_seconds();
    for (guint i = 0; i < count; i++) {
        g_autoptr(EbAcpUpdate) update = receive(tools, updates[i]);
        g_autoptr(GPtrArray) posts = g_ptr_array_new();
        eb_renderer_update(renderer, update, posts);
        for (guint p = 0; p < posts->len; p++)
            eb_coalescer_push(coalescer, posts->pdata[p]);
        result->longest = MAX(result->longest, eb_coalescer_get_queued(coalescer));
        g_main_context_iteration(NULL, FALSE);
    }
    result->cpu = cpu_seconds() - begin;
    result->calls = chat->calls;
    result->bytes = chat->bytes;
    g_object_unref(coalescer);
    for (guint i = 0; i < 100; i++) /* the call under way */
        g_usleep(1000), g_main_context_iteration(NULL, FALSE);
}

/* Pieces of text as an agent sends them; @naive: a search for each secret as it is, and nothing else. */
static double
measure_masking(EbRedactSet *secrets, char **values, guint count, guint pieces, gboolean naive)
{
    static const char text[] = "The next thing to do is to look at main.c and then sketch it.\n";
    g_autoptr(EbRedactor) redactor = eb_redactor_new(secrets);
    gsize found = 0;
    double begin = cpu_seconds();
    for (guint i = 0; i < pieces; i++) {
        g_autofree char *piece = g_strndup(text + i % (sizeof text - 1 - CHUNK), CHUNK);
        if (!naive) {
            g_autofree char *shown = eb_redactor_feed(redactor, piece);
            found += *shown;
            continue;
        }
        for (guint s = 0; s < count; s++)
            found += memmem(piece, CHUNK, values[s], strlen(values[s])) != NULL;
    }
    double seconds = cpu_seconds() - begin;
    return found != G_MAXSIZE ? seconds : 0;
}

int
main(int argc, char **argv)
{
    guint count = argc > 1 ? (guint)strtoul(argv[1], NULL, 10) : 100000;
    guint n_secrets = CLAMP(argc > 2 ? (guint)strtoul(argv[2], NULL, 10) : 8, 1, 64);
    g_autofree char **updates = g_new0(char *, count + 1);
    char *values[64];
    Result result = {0};
    g_autoptr(EbRedactSet) secrets = make_secrets(n_secrets, values);
    struct rusage before, after;

    for (guint i = 0; i < count; i++)
        updates[i] = talkative_update(i);
    getrusage(RUSAGE_SELF, &before);
    double base = measure_floor(updates, count);
    measure_render(updates, count, secrets, &result);
    getrusage(RUSAGE_SELF, &after);
    double masking = measure_masking(secrets, values, n_secrets, count, FALSE);
    double naive = measure_masking(secrets, values, n_secrets, count, TRUE);
    printf(
        "{\"updates\": %u, \"secrets\": %u, \"floor_cpu_s\": %.3f, \"render_cpu_s\": %.3f, \"ratio\": %.2f, "
        "\"calls\": %u, \"bytes_posted\": %zu, \"longest_queue\": %u, \"rss_input_mib\": %.1f, \"rss_peak_mib\": %.1f, "
        "\"masking_mb_s\": %.1f, \"masking_to_memmem\": %.2f}\n",
        count, n_secrets, base, result.cpu - base, (result.cpu - base) / base, result.calls, result.bytes,
        result.longest, (double)before.ru_maxrss / 1024, (double)after.ru_maxrss / 1024,
        (double)count * CHUNK / 1e6 / masking, masking / naive);
    for (guint i = 0; i < n_secrets; i++)
        g_free(values[i]);
    for (guint i = 0; i < count; i++)
        g_free(updates[i]);
    return 0;
}
