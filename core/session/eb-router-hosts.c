/* SPDX-License-Identifier: MIT */
/* What people order about the hosts that one session may reach. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-router-private.h"

/* Of [egress] allow in a list; whoever has more knows the file. */
#define MAX_SHOWN_HOSTS 50

typedef struct {
    EbRouter *self;
    EbChatMessage *message;
    char *host;
} EbHostOrder;

static void
answer(EbRouter *self, const EbChatMessage *message, const char *text)
{
    eb_router_answer(self, message, text);
    eb_router_done(self, message);
}

static void
on_allowed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbHostOrder *order = user_data;
    EbRouter *self = order->self;
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;

    if (eb_host_desk_allow_finish(result, &error))
        text = g_strdup_printf("this session may reach `%s` from now on", order->host);
    if (self->manager != NULL)
        answer(self, order->message, text != NULL ? text : error->message);
    g_object_unref(order->self);
    eb_chat_message_unref(order->message);
    g_free(order->host);
    g_free(order);
}

static void
allow(EbRouter *self, EbChatMessage *message, EbSessionRecord *record, const char *host)
{
    EbHostDesk *desk = self->manager->desk;
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;

    if (eb_host_desk_may_allow(desk, record, message->author_id)) {
        EbHostOrder *order = g_new0(EbHostOrder, 1);
        order->self = g_object_ref(self);
        order->message = eb_chat_message_ref(message);
        order->host = g_strdup(host);
        eb_host_desk_allow_async(desk, record, host, FALSE, message->author_id, on_allowed, order);
        return;
    }
    if (eb_host_desk_ask(desk, record, host, &error))
        text = g_strdup_printf("an operator is asked whether this session may reach `%s`", host);
    answer(self, message, text != NULL ? text : error->message);
}

static void
deny(EbRouter *self, EbChatMessage *message, EbSessionRecord *record, const char *host)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;

    if (eb_host_desk_deny(self->manager->desk, record, host, &error))
        text = g_strdup_printf("this session may reach `%s` no longer; connections that are open stay", host);
    answer(self, message, text != NULL ? text : error->message);
}

static void
list(EbRouter *self, EbChatMessage *message, const EbSessionRecord *record)
{
    const EbSessionConfig *config = eb_config_get_session(self->manager->parts->config);
    g_autoptr(JsonArray) own = eb_host_desk_list(self->manager->desk, record);
    g_autoptr(GString) text = g_string_new(NULL);
    const guint n = g_strv_length(config->egress_allow);

    if (g_strcmp0(config->egress_mode, "proxy") != 0) {
        answer(self, message, "sessions reach their model provider and no other host here");
        return;
    }
    for (guint i = 0; i < json_array_get_length(own); i++) {
        JsonObject *one = eb_json_array_object(own, i);
        const char *by = eb_json_get_string(one, "by");
        g_string_append_printf(text, "- `%s`: this session alone", eb_json_get_string(one, "host"));
        if (eb_json_get_string(one, "until") != NULL)
            g_string_append(text, ", once");
        if (by != NULL)
            g_string_append_printf(text, ", by <@%s>", by);
        g_string_append_c(text, '\n');
    }
    for (guint i = 0; i < n && i < MAX_SHOWN_HOSTS; i++)
        g_string_append_printf(text, "- `%s`\n", config->egress_allow[i]);
    if (n > MAX_SHOWN_HOSTS)
        g_string_append_printf(text, "- and %u more in [egress] allow\n", n - MAX_SHOWN_HOSTS);
    answer(self, message, text->len > 0 ? text->str : "this session reaches its model provider and no other host");
}

void
eb_router_hosts(EbRouter *self, EbChatMessage *message, EbSessionRecord *record, const EbCommand *command)
{
    const EbSessionConfig *config = eb_config_get_session(self->manager->parts->config);
    g_autoptr(GError) error = NULL;
    g_autofree char *host = NULL;

    if (command->spec->id == EB_COMMAND_HOSTS) {
        list(self, message, record);
        return;
    }
    host = eb_host_check(config, command->values[0], &error);
    if (host == NULL)
        answer(self, message, error->message);
    else if (command->spec->id == EB_COMMAND_ALLOW_HOST)
        allow(self, message, record, host);
    else
        deny(self, message, record, host);
}
