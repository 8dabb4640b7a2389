/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-daemon"

#include "core/daemon/eb-daemon-transports.h"

#include <string.h>

/* What a transport says about its connection is shown in one line. */
#define MAX_DETAIL 300

typedef enum { STATE_QUIET = 0, STATE_UP, STATE_DOWN, STATE_FAILED } State;

typedef struct {
    EbDaemonTransports *owner;
    char *name;
    EbChatTransport *transport;
    State state;
    char *detail;   /* (nullable) */
    gint64 changed; /* monotonic, microseconds */
} Watched;

struct _EbDaemonTransports {
    EbTransportFailed failed;
    gpointer user_data;
    GPtrArray *watched; /* (element-type Watched) */
};

static void
watched_free(gpointer data)
{
    Watched *watched = data;

    g_signal_handlers_disconnect_by_data(watched->transport, watched);
    g_object_unref(watched->transport);
    g_free(watched->name);
    g_free(watched->detail);
    g_free(watched);
}

EbDaemonTransports *
eb_daemon_transports_new(EbTransportFailed failed, gpointer user_data)
{
    EbDaemonTransports *self = g_new0(EbDaemonTransports, 1);

    self->failed = failed;
    self->user_data = user_data;
    self->watched = g_ptr_array_new_with_free_func(watched_free);
    return self;
}

void
eb_daemon_transports_free(EbDaemonTransports *self)
{
    g_ptr_array_unref(self->watched);
    g_free(self);
}

/* @detail: (nullable). TRUE: the state is another one now. */
static gboolean
change(Watched *watched, State state, const char *detail)
{
    gboolean changed = watched->state != state;

    g_free(watched->detail);
    watched->detail = detail != NULL ? eb_log_escape(detail, -1, MAX_DETAIL) : NULL;
    if (changed)
        watched->changed = g_get_monotonic_time();
    watched->state = state;
    return changed;
}

static void
on_connection(EbChatTransport *transport, gboolean up, const char *detail, gpointer user_data)
{
    Watched *watched = user_data;
    State before = watched->state;

    if (before == STATE_FAILED || !change(watched, up ? STATE_UP : STATE_DOWN, detail))
        return;
    const char *shown = watched->detail != NULL ? watched->detail : "no reason given";
    /* As loud as the bad news was: a log that has the one has the other. */
    if (up && before == STATE_DOWN)
        eb_warning("chat \"%s\" is reached again: %s", watched->name, shown);
    else if (up)
        eb_info("chat \"%s\" is reached: %s", watched->name, shown);
    else
        eb_warning("chat \"%s\" is not reached now: %s", watched->name, shown);
}

static void
on_failed(EbChatTransport *transport, const GError *why, gpointer user_data)
{
    Watched *watched = user_data;
    EbErrorCode code = why->domain == EB_ERROR ? (EbErrorCode)why->code : EB_ERROR_FAILED;

    if (!change(watched, STATE_FAILED, why->message))
        return;
    g_autoptr(GError) error =
        eb_error_new(code, eb_error_get_reason(why), "chat \"%s\": %s", watched->name, why->message);
    watched->owner->failed(error, watched->owner->user_data);
}

void
eb_daemon_transports_watch(EbDaemonTransports *self, const char *name, EbChatTransport *transport)
{
    Watched *watched = g_new0(Watched, 1);

    watched->owner = self;
    watched->name = g_strdup(name);
    watched->transport = g_object_ref(transport);
    watched->changed = g_get_monotonic_time();
    g_ptr_array_add(self->watched, watched);
    g_signal_connect(transport, "connection", G_CALLBACK(on_connection), watched);
    g_signal_connect(transport, "failed", G_CALLBACK(on_failed), watched);
}

JsonArray *
eb_daemon_transports_json(EbDaemonTransports *self)
{
    static const char *const states[] = {"quiet", "up", "down", "failed"};
    JsonArray *list = json_array_new();

    for (guint i = 0; i < self->watched->len; i++) {
        const Watched *watched = self->watched->pdata[i];
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "name", watched->name);
        json_object_set_string_member(object, "state", states[watched->state]);
        if (watched->detail != NULL)
            json_object_set_string_member(object, "detail", watched->detail);
        else
            json_object_set_null_member(object, "detail");
        json_object_set_int_member(object, "seconds", (g_get_monotonic_time() - watched->changed) / G_USEC_PER_SEC);
        json_array_add_object_element(list, object);
    }
    return list;
}

static gboolean
is_transport(const EbPluginRecord *record)
{
    const char *point = eb_extension_point_to_string(EB_EXTENSION_CHAT_TRANSPORT);

    for (char **item = record->implements; item != NULL && *item != NULL; item++)
        if (g_str_has_prefix(*item, point) && ((*item)[strlen(point)] == ':' || (*item)[strlen(point)] == '\0'))
            return TRUE;
    return FALSE;
}

/* Reasons that begin with "plugin." are the loader's: about the file, not about what an operator wants of it. */
static gboolean
is_for_an_operator(const GError *error)
{
    const char *reason = eb_error_get_reason(error);

    return error != NULL && (reason == NULL || !g_str_has_prefix(reason, "plugin.")) &&
           (g_error_matches(error, EB_ERROR, EB_ERROR_CONFIG) || g_error_matches(error, EB_ERROR, EB_ERROR_DENIED) ||
            g_error_matches(error, EB_ERROR, EB_ERROR_UNAUTHENTICATED));
}

gboolean
eb_daemon_check_transports(EbPluginRegistry *registry, GError **error)
{
    GPtrArray *records = eb_plugin_registry_get_records(registry);

    for (guint i = 0; i < records->len; i++) {
        const EbPluginRecord *record = records->pdata[i];
        if (record->state != EB_PLUGIN_STATE_FAILED || !is_transport(record) || !is_for_an_operator(record->error))
            continue;
        eb_set_error(error, (EbErrorCode)record->error->code, eb_error_get_reason(record->error), "plugin \"%s\": %s",
                     record->name, record->error->message);
        return FALSE;
    }
    return TRUE;
}
