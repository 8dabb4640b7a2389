/* SPDX-License-Identifier: MIT */
/* Hosts of one session: what its broker refuses, and what an operator at a terminal allows. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-router.h"
#include "core/session/eb-session-manager-private.h"

EbChatTransport *
eb_session_manager_find_transport(EbSessionManager *self, const char *name)
{
    for (guint i = 0; i < self->routers->len; i++)
        if (g_strcmp0(eb_router_get_name(self->routers->pdata[i]), name) == 0)
            return eb_router_get_transport(self->routers->pdata[i]);
    return NULL;
}

static void
on_host_refused(EbSession *session, const char *host, guint port, const char *code, gpointer user_data)
{
    EbSessionManager *self = EB_SESSION_MANAGER(user_data);
    if (!self->closing)
        eb_host_desk_refused(self->desk, session, host, port, code);
}

static void
on_provider_failed(EbSession *session, const char *text, gpointer user_data)
{
    eb_session_manager_note_error(EB_SESSION_MANAGER(user_data), text);
}

void
eb_session_manager_watch_hosts(EbSessionManager *self, EbSession *session)
{
    eb_host_desk_begun(self->desk, session);
    g_signal_connect_object(session, "host-refused", G_CALLBACK(on_host_refused), self, 0);
    g_signal_connect_object(session, "provider-failed", G_CALLBACK(on_provider_failed), self, 0);
}

/* (transfer none) (nullable): the record of @id; @normal: (out) (transfer full): @host as a rule names it */
static EbSessionRecord *
find(EbSessionManager *self, const char *id, const char *host, char **normal, GError **error)
{
    g_autofree char *whole = eb_session_manager_resolve(self, id, error);
    if (whole == NULL)
        return NULL;
    *normal = eb_host_check(eb_config_get_session(self->parts->config), host, error);
    return *normal != NULL ? g_hash_table_lookup(self->records, whole) : NULL;
}

static void
tell(EbSessionManager *self, const EbSessionRecord *record, const char *before, const char *host, const char *after)
{
    EbSession *session = g_hash_table_lookup(self->sessions, record->id);
    g_autofree char *text = g_strconcat(before, host, after, NULL);
    if (session != NULL && !eb_session_is_ending(session))
        eb_session_notice(session, text);
}

static void
on_allowed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    EbSessionManager *self = g_task_get_source_object(task);
    EbSessionRule *rule = g_task_get_task_data(task);
    EbSessionRecord *record = g_hash_table_lookup(self->records, rule->session);
    GError *error = NULL;
    if (!eb_host_desk_allow_finish(result, &error)) {
        g_task_return_error(task, error);
        return;
    }
    if (record != NULL)
        tell(self, record, "an operator allows this session to reach ", rule->rule, "");
    g_task_return_boolean(task, TRUE);
}

void
eb_session_manager_allow_host_async(EbSessionManager *self, const char *id, const char *host,
                                    GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(self, NULL, callback, user_data);
    GError *error = NULL;
    g_autofree char *normal = NULL;
    EbSessionRecord *record = find(self, id, host, &normal, &error);
    g_task_set_source_tag(task, eb_session_manager_allow_host_async);
    if (record == NULL) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    g_task_set_task_data(task, eb_session_rule_new(record->id, EB_SESSION_RULE_HOST, normal, NULL),
                         (GDestroyNotify)eb_session_rule_free);
    eb_host_desk_allow_async(self->desk, record, normal, FALSE, NULL, on_allowed, task);
}

gboolean
eb_session_manager_allow_host_finish(EbSessionManager *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

gboolean
eb_session_manager_deny_host(EbSessionManager *self, const char *id, const char *host, GError **error)
{
    g_autofree char *normal = NULL;
    EbSessionRecord *record = find(self, id, host, &normal, error);
    if (record == NULL || !eb_host_desk_deny(self->desk, record, normal, error))
        return FALSE;
    tell(self, record, "this session may reach ", normal, " no longer; connections that are open stay");
    return TRUE;
}
