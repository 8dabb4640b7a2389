/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-state"
#include "core/state/eb-session-rules.h"

EbSessionRule *
eb_session_rule_new(const char *session, const char *kind, const char *rule, const char *by)
{
    EbSessionRule *self = g_new0(EbSessionRule, 1);
    self->session = g_strdup(session);
    self->kind = g_strdup(kind);
    self->rule = g_strdup(rule);
    self->by = g_strdup(by);
    self->created_ms = g_get_real_time() / 1000;
    return self;
}

EbSessionRule *
eb_session_rule_copy(const EbSessionRule *self)
{
    EbSessionRule *copy = eb_session_rule_new(self->session, self->kind, self->rule, self->by);
    copy->created_ms = self->created_ms;
    return copy;
}

void
eb_session_rule_free(EbSessionRule *self)
{
    if (self == NULL)
        return;
    g_free(self->session);
    g_free(self->kind);
    g_free(self->rule);
    g_free(self->by);
    g_free(self);
}

static void
rule_free(gpointer data)
{
    eb_session_rule_free(data);
}

GPtrArray *
eb_session_rules_list_new(void)
{
    return g_ptr_array_new_with_free_func(rule_free);
}

const EbSessionRule *
eb_session_rules_find(const GPtrArray *rules, const char *rule)
{
    for (guint i = 0; i < rules->len; i++) {
        const EbSessionRule *known = rules->pdata[i];
        if (g_str_equal(known->rule, rule))
            return known;
    }
    return NULL;
}

/* --- writing --- */

static void
bind_key(sqlite3_stmt *statement, const EbSessionRule *rule)
{
    eb_store_bind_text(statement, 1, rule->session);
    eb_store_bind_text(statement, 2, rule->kind);
    eb_store_bind_text(statement, 3, rule->rule);
}

/* Of a session whose row is gone nothing is kept: an answer may come while it is removed. */
static gpointer
put_in_store(sqlite3 *db, gpointer data, GError **error)
{
    const EbSessionRule *rule = data;
    g_autoptr(sqlite3_stmt) statement =
        eb_store_prepare(db,
                         "INSERT OR REPLACE INTO session_rules (session, kind, rule, created, created_by)"
                         " SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM session WHERE id = ?1)",
                         error);
    if (statement == NULL)
        return NULL;
    bind_key(statement, rule);
    sqlite3_bind_int64(statement, 4, rule->created_ms);
    eb_store_bind_text(statement, 5, rule->by);
    eb_store_step_done(statement, error);
    return NULL;
}

static gpointer
drop_in_store(sqlite3 *db, gpointer data, GError **error)
{
    g_autoptr(sqlite3_stmt) statement =
        eb_store_prepare(db, "DELETE FROM session_rules WHERE session = ?1 AND kind = ?2 AND rule = ?3", error);
    if (statement == NULL)
        return NULL;
    bind_key(statement, data);
    eb_store_step_done(statement, error);
    return NULL;
}

static void
on_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    if (!eb_session_rules_finish(EB_STORE(source), result, &error))
        eb_warning("what was said about a session's hosts could not be written down: %s", error->message);
}

void
eb_session_rules_put_async(EbStore *store, const EbSessionRule *rule, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_store_run_async(store, FALSE, put_in_store, eb_session_rule_copy(rule), rule_free, NULL, NULL,
                       callback != NULL ? callback : on_written, user_data);
}

void
eb_session_rules_drop_async(EbStore *store, const char *session, const char *kind, const char *rule,
                            GAsyncReadyCallback callback, gpointer user_data)
{
    eb_store_run_async(store, FALSE, drop_in_store, eb_session_rule_new(session, kind, rule, NULL), rule_free, NULL,
                       NULL, callback != NULL ? callback : on_written, user_data);
}

gboolean
eb_session_rules_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    return eb_store_run_take(store, result, NULL, error);
}

/* --- loading --- */

static gpointer
rule_from_row(sqlite3_stmt *statement)
{
    EbSessionRule *rule = g_new0(EbSessionRule, 1);
    rule->session = eb_store_column_dup(statement, 0);
    rule->kind = eb_store_column_dup(statement, 1);
    rule->rule = eb_store_column_dup(statement, 2);
    rule->created_ms = sqlite3_column_int64(statement, 3);
    rule->by = eb_store_column_dup(statement, 4);
    return rule;
}

static gpointer
load_in_store(sqlite3 *db, gpointer data, GError **error)
{
    g_autoptr(sqlite3_stmt) statement = eb_store_prepare(db,
                                                         "SELECT session, kind, rule, created, created_by FROM (SELECT "
                                                         "* FROM session_rules ORDER BY created DESC LIMIT ?)"
                                                         " ORDER BY created",
                                                         error);
    if (statement == NULL)
        return NULL;
    sqlite3_bind_int64(statement, 1, EB_SESSION_RULES_MAX_LOADED);
    return eb_store_collect(db, statement, rule_from_row, rule_free, "read the rules of sessions", error);
}

void
eb_session_rules_load_async(EbStore *store, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_store_run_async(store, FALSE, load_in_store, NULL, NULL, (GDestroyNotify)g_ptr_array_unref, NULL, callback,
                       user_data);
}

GPtrArray *
eb_session_rules_load_finish(EbStore *store, GAsyncResult *result, GError **error)
{
    return eb_store_run_finish(store, result, error);
}
