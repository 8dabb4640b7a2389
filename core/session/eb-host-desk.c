/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-host-desk.h"

#include "core/base/eb-json-members.h"
#include "core/base/eb-source.h"
#include "core/session/eb-host-ask.h"
#include "core/session/eb-session-manager-private.h"
#include "core/session/eb-session-private.h"

/* One session's lines and questions. */
typedef struct {
    EbHostDesk *desk; /* not owned */
    char *session;
    GHashTable *told; /* utf8 key -> utf8 by (nullable), at most EB_HOST_MAX_LINES, but for what was denied again */
    EbHostPace pace;
    GQueue waiting; /* (element-type EbHostNotice), at most EB_HOST_MAX_WAITING */
    guint left_out;
    GSource *timer;      /* (nullable): of waiting */
    GPtrArray *once;     /* (element-type EbHostOnce), shared with the live session */
    GSource *once_timer; /* (nullable) */
    GHashTable *asks;    /* utf8 host -> EbHostAsk: open ones; each has its key in told */
} Place;

struct _EbHostDesk {
    EbSessionManager *manager; /* not owned */
    GHashTable *places;        /* utf8 session id -> Place: of sessions that have a record */
};

static void say_next(Place *place);
static void open_ask(Place *place, EbSessionRecord *record, const char *host, gboolean second, const char *message);

/* --- places --- */

static void
place_free(gpointer data)
{
    Place *place = data;
    EbHostNotice *notice;
    eb_clear_source(&place->timer);
    eb_clear_source(&place->once_timer);
    g_hash_table_unref(place->asks);
    while ((notice = g_queue_pop_head(&place->waiting)) != NULL)
        eb_host_notice_free(notice);
    g_hash_table_unref(place->told);
    g_ptr_array_unref(place->once);
    g_free(place->session);
    g_free(place);
}

static void on_shown(EbHostAsk *ask, const char *message, gpointer user_data);
static void on_answered(EbHostAsk *ask, const char *choice, const char *by, gpointer user_data);

/* It may outlive its place: the chat holds it until it has closed the question. */
static void
ask_free(gpointer data)
{
    g_signal_handlers_disconnect_matched(data, G_SIGNAL_MATCH_FUNC, 0, 0, NULL, (gpointer)on_shown, NULL);
    g_signal_handlers_disconnect_matched(data, G_SIGNAL_MATCH_FUNC, 0, 0, NULL, (gpointer)on_answered, NULL);
    eb_host_ask_cancel(data, NULL);
    g_object_unref(data);
}

static Place *
place_of(EbHostDesk *self, const char *session)
{
    Place *place = g_hash_table_lookup(self->places, session);
    if (place != NULL)
        return place;
    place = g_new0(Place, 1);
    place->desk = self;
    place->session = g_strdup(session);
    place->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    place->asks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, ask_free);
    place->once = eb_host_once_list_new();
    g_queue_init(&place->waiting);
    g_hash_table_replace(self->places, place->session, place);
    return place;
}

static const EbSessionConfig *
config_of(EbHostDesk *self)
{
    return eb_config_get_session(self->manager->parts->config);
}

static EbSession *
live_of(Place *place)
{
    EbSession *session = g_hash_table_lookup(place->desk->manager->sessions, place->session);
    return session != NULL && !eb_session_is_ending(session) ? session : NULL;
}

static void
note_told(Place *place, const char *key, const char *by)
{
    g_autoptr(EbSessionRule) rule = eb_session_rule_new(place->session, EB_SESSION_RULE_TOLD, key, by);
    g_hash_table_replace(place->told, g_strdup(key), g_strdup(by));
    eb_session_rules_put_async(place->desk->manager->parts->store, rule, NULL, NULL);
}

/* --- what is allowed --- */

static void arm_once(Place *place);

static gboolean
on_once_over(gpointer data)
{
    Place *place = data;
    EbSession *session = live_of(place);
    gint64 next_us;
    gboolean changed = eb_host_once_prune(place->once, g_get_monotonic_time(), &next_us);
    if (changed && session != NULL)
        eb_session_apply_hosts(session);
    arm_once(place);
    return G_SOURCE_REMOVE;
}

static void
arm_once(Place *place)
{
    gint64 now_us = g_get_monotonic_time(), next_us;
    eb_clear_source(&place->once_timer);
    eb_host_once_prune(place->once, now_us, &next_us);
    if (next_us == 0)
        return;
    place->once_timer = g_timeout_source_new((guint)((next_us - now_us) / 1000 + 1));
    g_source_set_callback(place->once_timer, on_once_over, place, NULL);
    g_source_attach(place->once_timer, g_main_context_get_thread_default());
}

static gboolean
allow_once(Place *place, const char *host, GError **error)
{
    EbSession *session = live_of(place);
    if (!eb_host_once_add(place->once, host, g_get_monotonic_time())) {
        eb_set_error(error, EB_ERROR_QUOTA, "host.too-many",
                     "%d hosts are allowed once just now: allow it for the session", EB_HOST_MAX_ONCE);
        return FALSE;
    }
    arm_once(place);
    if (session != NULL)
        eb_session_apply_hosts(session);
    return TRUE;
}

static void
on_host_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    EbSessionManager *manager = g_task_get_source_object(task);
    EbSessionRule *rule = g_task_get_task_data(task);
    GError *error = NULL;
    if (!eb_session_rules_finish(EB_STORE(source), result, &error)) {
        g_task_return_error(task, error);
        return;
    }
    EbSessionRecord *record = g_hash_table_lookup(manager->records, rule->session);
    EbSession *session = g_hash_table_lookup(manager->sessions, rule->session);
    if (record != NULL && eb_session_rules_find(record->hosts, rule->rule) == NULL)
        g_ptr_array_add(record->hosts, eb_session_rule_copy(rule));
    if (session != NULL)
        eb_session_apply_hosts(session);
    eb_log_event(G_LOG_LEVEL_INFO, G_LOG_DOMAIN, "a host is allowed for one session", "EB_SESSION", rule->session,
                 "EB_REASON", rule->rule, NULL);
    g_task_return_boolean(task, TRUE);
}

void
eb_host_desk_allow_async(EbHostDesk *self, EbSessionRecord *record, const char *host, gboolean once, const char *by,
                         GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(self->manager, NULL, callback, user_data);
    Place *place = place_of(self, record->id);
    EbHostAsk *ask = g_hash_table_lookup(place->asks, host);
    EbSessionRule *rule = eb_session_rule_new(record->id, EB_SESSION_RULE_HOST, host, by);
    GError *error = NULL;
    g_task_set_source_tag(task, eb_host_desk_allow_async);
    g_task_set_task_data(task, rule, (GDestroyNotify)eb_session_rule_free);
    if (once) {
        if (allow_once(place, host, &error))
            g_task_return_boolean(task, TRUE);
        else
            g_task_return_error(task, error);
    } else if (eb_session_rules_find(record->hosts, host) != NULL) {
        g_task_return_boolean(task, TRUE);
    } else if (record->hosts->len >= EB_SESSION_RULES_MAX_HOSTS) {
        g_task_return_error(task, eb_error_new(EB_ERROR_QUOTA, "host.too-many",
                                               "%d hosts are allowed for this session: take one back first",
                                               EB_SESSION_RULES_MAX_HOSTS));
    } else {
        eb_session_rules_put_async(self->manager->parts->store, rule, on_host_written, g_object_ref(task));
    }
    if (ask != NULL)
        eb_host_ask_cancel(ask, "allowed meanwhile");
}

gboolean
eb_host_desk_allow_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_host_desk_allow_async), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

gboolean
eb_host_desk_deny(EbHostDesk *self, EbSessionRecord *record, const char *host, GError **error)
{
    EbStore *store = self->manager->parts->store;
    Place *place = place_of(self, record->id);
    EbSession *session = live_of(place);
    gboolean found = FALSE;
    for (guint i = record->hosts->len; i > 0; i--) {
        if (!g_str_equal(((EbSessionRule *)record->hosts->pdata[i - 1])->rule, host))
            continue;
        g_ptr_array_remove_index(record->hosts, i - 1);
        eb_session_rules_drop_async(store, record->id, EB_SESSION_RULE_HOST, host, NULL, NULL);
        found = TRUE;
    }
    for (guint i = place->once->len; i > 0; i--) {
        if (!g_str_equal(((EbHostOnce *)place->once->pdata[i - 1])->host, host))
            continue;
        g_ptr_array_remove_index(place->once, i - 1);
        found = TRUE;
    }
    if (!found) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "host.not-allowed",
                     "%s is not allowed for this session alone (see [egress] allow for what all sessions reach)", host);
        return FALSE;
    }
    /* When it is asked for again, people hear of it again. */
    g_hash_table_remove(place->told, host);
    eb_session_rules_drop_async(store, record->id, EB_SESSION_RULE_TOLD, host, NULL, NULL);
    if (session != NULL)
        eb_session_apply_hosts(session);
    return TRUE;
}

gboolean
eb_host_desk_may_allow(EbHostDesk *self, const EbSessionRecord *record, const char *author_id)
{
    const EbChatPolicy *policy = eb_session_manager_get_policy(self->manager, record);
    return eb_host_ask_may_allow(config_of(self), record, policy, author_id);
}

JsonArray *
eb_host_desk_list(EbHostDesk *self, const EbSessionRecord *record)
{
    Place *place = g_hash_table_lookup(self->places, record->id);
    JsonArray *list = json_array_new();
    for (guint i = 0; i < record->hosts->len; i++) {
        const EbSessionRule *rule = record->hosts->pdata[i];
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "host", rule->rule);
        eb_json_set_text_or_null(object, "by", rule->by);
        eb_json_set_time(object, "created", rule->created_ms);
        json_array_add_object_element(list, object);
    }
    for (guint i = 0; place != NULL && i < place->once->len; i++) {
        const EbHostOnce *once = place->once->pdata[i];
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "host", once->host);
        eb_json_set_time(object, "until", g_get_real_time() / 1000 + (once->until_us - g_get_monotonic_time()) / 1000);
        json_array_add_object_element(list, object);
    }
    return list;
}

/* --- asking --- */

static void
on_allowed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autofree char *id = user_data;
    g_autoptr(GError) error = NULL;
    if (eb_host_desk_allow_finish(result, &error))
        return;
    EbSession *session = g_hash_table_lookup(EB_SESSION_MANAGER(source)->sessions, id);
    eb_warning("a host could not be allowed: %s", error->message);
    if (session != NULL)
        eb_session_notice(session, error->message);
}

static void
on_shown(EbHostAsk *ask, const char *message, gpointer user_data)
{
    Place *place = user_data;
    g_autofree char *by = g_strdup_printf("%d:%s", eb_host_ask_is_second(ask) ? 2 : 1, message);
    note_told(place, eb_host_ask_get_host(ask), by);
}

static void
on_answered(EbHostAsk *ask, const char *choice, const char *by, gpointer user_data)
{
    Place *place = user_data;
    EbHostDesk *self = place->desk;
    g_autofree char *host = g_strdup(eb_host_ask_get_host(ask));
    EbSessionRecord *record = g_hash_table_lookup(self->manager->records, place->session);
    g_hash_table_remove(place->asks, host);
    /* A chat that goes away with the service answers nothing: its buttons are for the next run. */
    if (choice == NULL && self->manager->closing)
        return;
    note_told(place, host, NULL);
    if (record == NULL || choice == NULL)
        return;
    gboolean once = g_str_equal(choice, EB_HOST_CHOICE_ONCE);
    if ((once || g_str_equal(choice, EB_HOST_CHOICE_SESSION)) && eb_host_desk_may_allow(self, record, by))
        eb_host_desk_allow_async(self, record, host, once, by, on_allowed, g_strdup(place->session));
    else if (g_str_equal(choice, EB_HOST_CHOICE_ASK))
        open_ask(place, record, host, TRUE, NULL);
}

static EbChatTransport *
transport_of(EbHostDesk *self, const EbSessionRecord *record)
{
    return eb_session_manager_find_transport(self->manager, record->transport);
}

static void
open_ask(Place *place, EbSessionRecord *record, const char *host, gboolean second, const char *message)
{
    EbHostDesk *self = place->desk;
    EbChatTransport *transport = transport_of(self, record);
    if (transport == NULL)
        return;
    EbHostAsk *ask = eb_host_ask_new(transport, config_of(self), record,
                                     eb_session_manager_get_policy(self->manager, record), host, second, message);
    g_hash_table_replace(place->asks, g_strdup(host), ask);
    g_signal_connect(ask, "shown", G_CALLBACK(on_shown), place);
    g_signal_connect(ask, "answered", G_CALLBACK(on_answered), place);
    eb_host_ask_open(ask, EB_HOST_ASK_MS);
}

gboolean
eb_host_desk_ask(EbHostDesk *self, EbSessionRecord *record, const char *host, GError **error)
{
    Place *place = place_of(self, record->id);
    EbHostAsk *open = g_hash_table_lookup(place->asks, host);
    if (!eb_host_ask_anybody(config_of(self), record, eb_session_manager_get_policy(self->manager, record))) {
        eb_set_error(error, EB_ERROR_DENIED, "host.nobody", "nobody here may allow a host. " EB_HOST_ADVICE);
        return FALSE;
    }
    if (open != NULL && eb_host_ask_is_second(open))
        return TRUE;
    if (open != NULL)
        eb_host_ask_replace(open);
    open_ask(place, record, host, TRUE, NULL);
    return TRUE;
}

void
eb_host_desk_share(EbHostDesk *self, const EbSessionRecord *record)
{
    Place *place = g_hash_table_lookup(self->places, record->id);
    GHashTableIter iter;
    gpointer ask;
    if (place == NULL)
        return;
    g_hash_table_iter_init(&iter, place->asks);
    while (g_hash_table_iter_next(&iter, NULL, &ask))
        eb_host_ask_share(ask, record, eb_session_manager_get_policy(self->manager, record));
}

/* --- telling --- */

static gboolean
on_pace(gpointer data)
{
    Place *place = data;
    eb_clear_source(&place->timer);
    say_next(place);
    return G_SOURCE_REMOVE;
}

static void
say(Place *place, EbSession *session, const EbHostNotice *notice)
{
    EbHostDesk *self = place->desk;
    EbSessionRecord *record = eb_session_get_record(session);
    gboolean ask = notice->offer && transport_of(self, record) != NULL &&
                   eb_host_ask_anybody(config_of(self), record, eb_session_manager_get_policy(self->manager, record));
    note_told(place, notice->key, NULL);
    if (ask) {
        eb_transcript_add(session->transcript, record->turns, "notice", notice->text, NULL);
        open_ask(place, record, notice->host, FALSE, NULL);
        return;
    }
    g_autofree char *text =
        notice->offer ? g_strconcat(notice->text, " " EB_HOST_ADVICE, NULL) : g_strdup(notice->text);
    eb_session_notice(session, text);
}

static void
say_left_out(Place *place, EbSession *session)
{
    g_autofree char *text =
        g_strdup_printf("%u more refusals are not told one by one: errand-box sessions logs %s --egress",
                        place->left_out, place->session);
    place->left_out = 0;
    eb_session_notice(session, text);
}

static void
say_next(Place *place)
{
    EbSession *session = live_of(place);
    gint64 wait_us = 0;
    while (session != NULL && place->timer == NULL && place->waiting.length > 0) {
        if (eb_host_pace_take(&place->pace, g_get_monotonic_time(), &wait_us)) {
            g_autoptr(EbHostNotice) notice = g_queue_pop_head(&place->waiting);
            say(place, session, notice);
            continue;
        }
        if (wait_us < 0) {
            g_autoptr(EbHostNotice) notice = g_queue_pop_head(&place->waiting);
            place->left_out++;
            continue;
        }
        place->timer = g_timeout_source_new((guint)(wait_us / 1000 + 1));
        g_source_set_callback(place->timer, on_pace, place, NULL);
        g_source_attach(place->timer, g_main_context_get_thread_default());
    }
}

void
eb_host_desk_refused(EbHostDesk *self, EbSession *session, const char *host, guint port, const char *code)
{
    Place *place = place_of(self, eb_session_get_record(session)->id);
    EbHostNotice *notice = eb_host_notice_new(config_of(self), host, port, code);
    if (notice == NULL)
        return;
    gboolean known = g_hash_table_contains(place->told, notice->key);
    for (GList *link = place->waiting.head; !known && link != NULL; link = link->next)
        known = g_str_equal(((EbHostNotice *)link->data)->key, notice->key);
    if (known || place->waiting.length >= EB_HOST_MAX_WAITING) {
        place->left_out += known ? 0 : 1;
        eb_host_notice_free(notice);
        return;
    }
    g_queue_push_tail(&place->waiting, notice);
    say_next(place);
}

/* --- sessions --- */

void
eb_host_desk_begun(EbHostDesk *self, EbSession *session)
{
    Place *place = place_of(self, eb_session_get_record(session)->id);
    eb_session_set_once(session, place->once);
}

void
eb_host_desk_turn_ended(EbHostDesk *self, EbSession *session)
{
    Place *place = place_of(self, eb_session_get_record(session)->id);
    if (place->left_out > 0 && live_of(place) != NULL)
        say_left_out(place, session);
    if (place->once->len == 0)
        return;
    g_ptr_array_set_size(place->once, 0);
    eb_clear_source(&place->once_timer);
    eb_session_apply_hosts(session);
}

void
eb_host_desk_forget(EbHostDesk *self, const char *id, const char *why)
{
    Place *place = g_hash_table_lookup(self->places, id);
    EbSession *session = g_hash_table_lookup(self->manager->sessions, id);
    GHashTableIter iter;
    gpointer host, ask;
    if (place == NULL)
        return;
    g_hash_table_iter_init(&iter, place->asks);
    while (g_hash_table_iter_next(&iter, &host, &ask)) {
        eb_host_ask_cancel(ask, why);
        if (why != NULL)
            note_told(place, host, NULL);
    }
    /* A live one has its list of what is allowed once from here. */
    if (session == NULL)
        g_hash_table_remove(self->places, id);
    else
        g_hash_table_remove_all(place->asks);
}

/* --- an earlier run --- */

void
eb_host_desk_load(EbHostDesk *self, const GPtrArray *rules)
{
    for (guint i = 0; i < rules->len; i++) {
        const EbSessionRule *rule = rules->pdata[i];
        EbSessionRecord *record = g_hash_table_lookup(self->manager->records, rule->session);
        if (record == NULL)
            continue;
        if (g_str_equal(rule->kind, EB_SESSION_RULE_TOLD)) {
            Place *place = place_of(self, rule->session);
            g_hash_table_replace(place->told, g_strdup(rule->rule), g_strdup(rule->by));
            place->pace.said++;
        } else if (g_str_equal(rule->kind, EB_SESSION_RULE_HOST) && record->hosts->len < EB_SESSION_RULES_MAX_HOSTS) {
            g_ptr_array_add(record->hosts, eb_session_rule_copy(rule));
        }
    }
}

static void
take_up_place(Place *place, EbSessionRecord *record)
{
    g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer key, by;
    g_hash_table_iter_init(&iter, place->told);
    while (g_hash_table_iter_next(&iter, &key, &by))
        if (by != NULL && (g_str_has_prefix(by, "1:") || g_str_has_prefix(by, "2:")) &&
            !g_hash_table_contains(place->asks, key))
            g_ptr_array_add(keys, g_strdup(key));
    for (guint i = 0; i < keys->len; i++) {
        g_autofree char *open = g_strdup(g_hash_table_lookup(place->told, keys->pdata[i]));
        open_ask(place, record, keys->pdata[i], *open == '2', open + 2);
    }
}

void
eb_host_desk_take_up(EbHostDesk *self, const char *name, EbChatTransport *transport)
{
    GHashTableIter iter;
    gpointer value;
    if ((eb_chat_transport_get_caps(transport, NULL) & EB_CHAT_CAP_HISTORY) == 0)
        return;
    g_hash_table_iter_init(&iter, self->places);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        Place *place = value;
        EbSessionRecord *record = g_hash_table_lookup(self->manager->records, place->session);
        if (record != NULL && g_strcmp0(record->transport, name) == 0)
            take_up_place(place, record);
    }
}

/* --- the desk --- */

EbHostDesk *
eb_host_desk_new(EbSessionManager *manager)
{
    EbHostDesk *self = g_new0(EbHostDesk, 1);
    self->manager = manager;
    self->places = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, place_free);
    return self;
}

void
eb_host_desk_free(EbHostDesk *self)
{
    if (self == NULL)
        return;
    g_hash_table_unref(self->places);
    g_free(self);
}
