/* SPDX-License-Identifier: MIT */
/* What sessions there are, for the control socket and `status`. */
#include "core/session/eb-session-manager-private.h"

#include "core/base/eb-json-members.h"

JsonObject *
eb_session_record_to_json(const EbSessionRecord *record)
{
    JsonObject *object = json_object_new();
    json_object_set_string_member(object, "id", record->id);
    json_object_set_string_member(object, "project", record->project);
    json_object_set_string_member(object, "state", record->state);
    json_object_set_string_member(object, "agent", record->agent);
    eb_json_set_text_or_null(object, "guest", record->instance);
    eb_json_set_text_or_null(object, "thread", record->thread);
    eb_json_set_text_or_null(object, "owner", record->owner);
    eb_json_set_time(object, "started", record->started_ms);
    eb_json_set_time(object, "last_activity", record->last_activity_ms);
    json_object_set_int_member(object, "turns", record->turns);
    eb_json_set_text_or_null(object, "transport", record->transport);
    eb_json_set_text_or_null(object, "model", record->model);
    eb_json_set_text_or_null(object, "provider", record->provider);
    eb_json_set_text_or_null(object, "end_reason", record->end_reason);
    json_object_set_boolean_member(object, "pinned", record->pinned);
    return object;
}

/* What it used, and of how much. */
static JsonObject *
record_to_json(EbSessionManager *self, const EbSessionRecord *record)
{
    JsonObject *object = eb_session_record_to_json(record);
    if (self->parts->budget == NULL)
        return object;
    g_autoptr(JsonObject) budget =
        eb_budget_desk_to_json(self->parts->budget, record->id, record->turns, record->owner);
    json_object_set_object_member(object, "used", json_object_ref(eb_json_get_object(budget, "session")));
    return object;
}

static JsonNode *
to_node(JsonObject *object)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(node, object);
    return node;
}

static int
by_activity(gconstpointer a, gconstpointer b)
{
    const EbSessionRecord *left = *(EbSessionRecord *const *)a;
    const EbSessionRecord *right = *(EbSessionRecord *const *)b;
    gboolean left_ended = g_strcmp0(left->state, "ended") == 0;
    gboolean right_ended = g_strcmp0(right->state, "ended") == 0;
    if (left_ended != right_ended)
        return left_ended ? 1 : -1;
    if (left->last_activity_ms != right->last_activity_ms)
        return left->last_activity_ms > right->last_activity_ms ? -1 : 1;
    return strcmp(left->id, right->id);
}

JsonNode *
eb_session_manager_list_json(EbSessionManager *self)
{
    g_autoptr(GPtrArray) records = g_ptr_array_new();
    GHashTableIter iter;
    gpointer record;
    g_hash_table_iter_init(&iter, self->records);
    while (g_hash_table_iter_next(&iter, NULL, &record))
        g_ptr_array_add(records, record);
    g_ptr_array_sort(records, by_activity);
    JsonArray *array = json_array_new();
    for (guint i = 0; i < records->len; i++)
        json_array_add_object_element(array, record_to_json(self, records->pdata[i]));
    JsonObject *object = json_object_new();
    json_object_set_array_member(object, "sessions", array);
    return to_node(object);
}

JsonNode *
eb_session_manager_show_json(EbSessionManager *self, const char *id, GError **error)
{
    g_autofree char *whole = eb_session_manager_resolve(self, id, error);
    if (whole == NULL)
        return NULL;
    const EbSessionRecord *record = g_hash_table_lookup(self->records, whole);
    JsonObject *object = record_to_json(self, record);
    g_autofree char *state = g_build_filename(self->parts->state_root, "sessions", whole, NULL);
    g_autofree char *project = g_build_filename(eb_config_get_project_root(self->parts->config), record->project, NULL);
    json_object_set_string_member(object, "directory", state);
    json_object_set_string_member(object, "project_directory", project);
    eb_json_set_text_or_null(object, "agent_session", record->agent_session);
    json_object_set_array_member(object, "hosts", eb_host_desk_list(self->desk, record));
    return to_node(object);
}

static guint
count_idle(EbSessionManager *self)
{
    GHashTableIter iter;
    gpointer record;
    guint n = 0;
    g_hash_table_iter_init(&iter, self->records);
    while (g_hash_table_iter_next(&iter, NULL, &record))
        n += g_strcmp0(((EbSessionRecord *)record)->state, "idle") == 0;
    return n;
}

JsonNode *
eb_session_manager_status_json(EbSessionManager *self)
{
    const EbSessionConfig *config = eb_config_get_session(self->parts->config);
    JsonObject *object = json_object_new();
    json_object_set_int_member(object, "live", g_hash_table_size(self->sessions));
    json_object_set_int_member(object, "max_live", config->max_live);
    json_object_set_int_member(object, "waiting_sessions", eb_admission_get_waiting(self->parts->live));
    json_object_set_int_member(object, "turns", eb_admission_get_held(self->parts->turns));
    json_object_set_int_member(object, "max_turns", config->max_turns);
    json_object_set_int_member(object, "waiting_turns", eb_admission_get_waiting(self->parts->turns));
    json_object_set_int_member(object, "known", g_hash_table_size(self->records));
    json_object_set_int_member(object, "idle", count_idle(self));
    json_object_set_boolean_member(object, "swept", self->swept);
    if (self->parts->budget != NULL) {
        JsonObject *budget = eb_budget_desk_to_json(self->parts->budget, NULL, 0, NULL);
        g_autofree char *text = eb_budget_json_to_text(budget);
        json_object_set_object_member(object, "budget", budget);
        json_object_set_string_member(object, "budget_text", text);
    }
    JsonArray *errors = json_array_new();
    for (GList *link = self->errors.head; link != NULL; link = link->next)
        json_array_add_string_element(errors, link->data);
    json_object_set_array_member(object, "last_errors", errors);
    return to_node(object);
}
