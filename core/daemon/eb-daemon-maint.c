/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-daemon"
#include "core/daemon/eb-daemon-maint.h"

#include "core/session/eb-gc.h"
#include "core/session/eb-pressure.h"

#include <string.h>

/* An answer that comes later. */
typedef struct {
    EbJsonrpc *peer;
    JsonNode *id;
    gboolean plan;
} Reply;

static void
reply_free(Reply *reply)
{
    g_object_unref(reply->peer);
    json_node_unref(reply->id);
    g_free(reply);
}

static void
collected(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Reply *reply = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) classes = eb_session_manager_gc_finish(EB_SESSION_MANAGER(source), result, &error);

    if (classes != NULL)
        eb_jsonrpc_reply(reply->peer, reply->id, eb_gc_to_json(classes, reply->plan));
    else
        eb_jsonrpc_reply_error(reply->peer, reply->id, error->code, error->message);
    reply_free(reply);
}

static void
pinned(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Reply *reply = user_data;
    g_autoptr(GError) error = NULL;

    if (eb_session_manager_pin_finish(EB_SESSION_MANAGER(source), result, &error))
        eb_jsonrpc_reply(reply->peer, reply->id, NULL);
    else
        eb_jsonrpc_reply_error(reply->peer, reply->id, error->code, error->message);
    reply_free(reply);
}

gboolean
eb_daemon_maint_request(EbSessionManager *manager, EbJsonrpc *peer, const char *method, JsonObject *params,
                        JsonNode *id)
{
    const char *session = eb_json_get_string(params, "id");
    gboolean pin = strcmp(method, "sessions.pin") == 0;
    gboolean unpin = strcmp(method, "sessions.unpin") == 0;
    gboolean gc = strcmp(method, "maint.gc") == 0;
    gint64 free_bytes = eb_json_get_int(params, "free", 0);

    if (!gc && !((pin || unpin) && session != NULL))
        return FALSE;
    Reply *reply = g_new0(Reply, 1);
    reply->peer = g_object_ref(peer);
    reply->id = json_node_copy(id);
    reply->plan = eb_json_get_bool(params, "plan", FALSE);
    if (gc)
        eb_session_manager_gc_async(manager, reply->plan, (guint64)MAX(free_bytes, 0), collected, reply);
    else
        eb_session_manager_pin_async(manager, session, pin, pinned, reply);
    return TRUE;
}

static void
relieved(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) classes = eb_session_manager_gc_finish(EB_SESSION_MANAGER(source), result, &error);
    g_autoptr(GString) what = g_string_new(NULL);

    if (classes == NULL) {
        eb_warning("nothing was freed: %s", error->message);
        return;
    }
    for (guint i = 0; i < classes->len; i++) {
        const EbGcClass *class = classes->pdata[i];
        if (class->removed == 0)
            continue;
        g_autofree char *size = g_format_size_full(class->bytes, G_FORMAT_SIZE_IEC_UNITS);
        g_string_append_printf(what, "%s%s %u (%s)%s%s", what->len > 0 ? "; " : "", class->name, class->removed, size,
                               class->note != NULL ? ": " : "", class->note != NULL ? class->note : "");
    }
    eb_warning("little space is left: %s%s", what->len > 0 ? "removed " : "there was nothing to remove",
               what->len > 0 ? what->str : " (errand-box maint gc --plan)");
}

void
eb_daemon_maint_relieve(EbSessionManager *manager, guint64 free_bytes, guint64 min_free)
{
    eb_session_manager_gc_async(manager, FALSE, eb_pressure_wanted(free_bytes, min_free), relieved, NULL);
}
