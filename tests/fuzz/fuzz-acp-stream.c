/* SPDX-License-Identifier: MIT */
#include "core/acp/eb-acp-client.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

/* A stream that has what was fed to it so far: an agent that says each thing at its time. */
#define TYPE_FEED (feed_get_type())
G_DECLARE_FINAL_TYPE(Feed, feed, EB_FUZZ, FEED, GInputStream)

struct _Feed {
    GInputStream parent_instance;
    GTask *waiting; /* (nullable) */
    void *buffer;
    gsize room;
    const guint8 *bytes;
    gsize left;
    gboolean ended;
};

G_DEFINE_FINAL_TYPE(Feed, feed, G_TYPE_INPUT_STREAM)

static void
feed_serve(Feed *self)
{
    g_autoptr(GTask) task = NULL;
    gsize give;

    if (self->waiting == NULL ||
        (self->left == 0 && !self->ended && !g_cancellable_is_cancelled(g_task_get_cancellable(self->waiting))))
        return;
    task = g_steal_pointer(&self->waiting);
    give = MIN(self->room, self->left);
    if (give > 0)
        memcpy(self->buffer, self->bytes, give);
    self->bytes += give;
    self->left -= give;
    g_task_return_int(task, (gssize)give);
}

static void
feed_read_async(GInputStream *stream, void *buffer, gsize count, int priority, GCancellable *cancellable,
                GAsyncReadyCallback callback, gpointer user_data)
{
    Feed *self = EB_FUZZ_FEED(stream);

    self->waiting = g_task_new(stream, cancellable, callback, user_data);
    self->buffer = buffer;
    self->room = count;
    feed_serve(self);
}

static gssize
feed_read_finish(GInputStream *stream, GAsyncResult *result, GError **error)
{
    return g_task_propagate_int(G_TASK(result), error);
}

static void
feed_class_init(FeedClass *klass)
{
    G_INPUT_STREAM_CLASS(klass)->read_async = feed_read_async;
    G_INPUT_STREAM_CLASS(klass)->read_finish = feed_read_finish;
}

static void
feed_init(Feed *self)
{
}

typedef struct {
    EbAcpClient *client;
    Feed *feed;
    guint open;
    gboolean closed;
} Run;

static void
on_closed(EbAcpClient *client, const GError *error, gpointer user_data)
{
    ((Run *)user_data)->closed = TRUE;
}

static void
on_done(GObject *source, GAsyncResult *result, gpointer user_data)
{
    ((Run *)user_data)->open--;
}

static void
on_permission(EbAcpClient *client, EbAcpPermission *permission, gpointer user_data)
{
    GPtrArray *options = eb_acp_permission_get_options(permission);

    if (options->len > 1)
        eb_acp_permission_answer(permission, ((EbAcpOption *)options->pdata[1])->id, NULL);
}

static void
turn_loop(void)
{
    while (g_main_context_iteration(NULL, FALSE)) {
    }
}

/* Feeds up to the next 0x1e, the end of one act. */
static void
act(Run *run, const guint8 **data, gsize *size)
{
    const guint8 *mark = memchr(*data, 0x1e, *size);
    const gsize length = mark != NULL ? (gsize)(mark - *data) : *size;

    run->feed->bytes = *data;
    run->feed->left = length;
    turn_loop();
    while (run->feed->left > 0 && !run->closed) {
        feed_serve(run->feed);
        turn_loop();
    }
    *data += length + (mark != NULL ? 1 : 0);
    *size -= length + (mark != NULL ? 1 : 0);
}

/* Three acts: what the agent says to initialize (call 1), to session/load (call 2), and in the turn (call 3). */
int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    g_autoptr(GOutputStream) output = g_memory_output_stream_new_resizable();
    g_autoptr(JsonArray) blocks = json_array_new();
    Run run = {.feed = g_object_new(TYPE_FEED, NULL)};

    run.client = eb_acp_client_new(output, G_INPUT_STREAM(run.feed), NULL);
    g_signal_connect(run.client, "closed", G_CALLBACK(on_closed), &run);
    g_signal_connect(run.client, "permission", G_CALLBACK(on_permission), &run);
    run.open = 3;
    eb_acp_client_initialize_async(run.client, 0, NULL, on_done, &run);
    act(&run, &data, &size);
    eb_acp_client_open_async(run.client, EB_ACP_OPEN_LOAD, "s", "/", 0, NULL, on_done, &run);
    act(&run, &data, &size);
    eb_acp_client_prompt_async(run.client, blocks, NULL, on_done, &run);
    act(&run, &data, &size);
    eb_acp_client_cancel(run.client, 10000);
    act(&run, &data, &size);
    run.feed->ended = TRUE;
    feed_serve(run.feed);
    while (run.open > 0 || !run.closed)
        g_main_context_iteration(NULL, TRUE);
    turn_loop();
    g_object_unref(run.client);
    turn_loop();
    if (run.feed->waiting != NULL)
        feed_serve(run.feed);
    g_object_unref(run.feed);
    return 0;
}
