/* SPDX-License-Identifier: MIT */
/* What a session's agent is set to, and how things stand. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-session-private.h"

#include "core/acp/eb-acp-types.h"

/* Of a setting: agents answer at once or never. */
#define SET_DEADLINE_MS 30000
/* Models of one list; the rest is left out. */
#define MAX_MODELS 200

/* --- models --- */

static void
add_model(JsonArray *models, const char *id, const char *name, const char *current)
{
    if (id == NULL || *id == '\0' || json_array_get_length(models) >= MAX_MODELS)
        return;
    g_autofree char *shown_id = eb_log_escape(id, -1, 200);
    g_autofree char *shown_name = eb_log_escape(name != NULL && *name != '\0' ? name : id, -1, 200);
    JsonObject *model = json_object_new();
    json_object_set_string_member(model, "id", shown_id);
    json_object_set_string_member(model, "name", shown_name);
    json_object_set_boolean_member(model, "current", g_strcmp0(id, current) == 0);
    json_array_add_object_element(models, model);
}

/* A select option: values, or groups of values. */
static void
add_options(JsonArray *models, JsonArray *options, const char *current, guint depth)
{
    for (guint i = 0; options != NULL && i < json_array_get_length(options); i++) {
        JsonObject *option = eb_json_array_object(options, i);
        JsonArray *inner = eb_json_get_array(option, "options");
        if (inner != NULL && depth == 0)
            add_options(models, inner, current, depth + 1);
        else
            add_model(models, eb_json_get_string(option, "value"), eb_json_get_string(option, "name"), current);
    }
}

JsonArray *
eb_session_list_models(EbSession *self)
{
    JsonArray *models = json_array_new();
    if (self->guest == NULL)
        return models;
    JsonObject *option = eb_acp_config_option(eb_acp_client_get_config_options(self->guest->client), "model");
    if (option != NULL) {
        add_options(models, eb_json_get_array(option, "options"), eb_json_get_string(option, "currentValue"), 0);
        return models;
    }
    JsonObject *told = eb_acp_client_get_models(self->guest->client);
    JsonArray *available = eb_json_get_array(told, "availableModels");
    for (guint i = 0; available != NULL && i < json_array_get_length(available); i++) {
        JsonObject *model = eb_json_array_object(available, i);
        add_model(models, eb_json_get_string(model, "modelId"), eb_json_get_string(model, "name"),
                  eb_json_get_string(told, "currentModelId"));
    }
    return models;
}

/* (transfer full) (nullable) */
static char *
current_model(EbSession *self)
{
    g_autoptr(JsonArray) models = eb_session_list_models(self);
    for (guint i = 0; i < json_array_get_length(models); i++) {
        JsonObject *model = eb_json_array_object(models, i);
        if (eb_json_get_bool(model, "current", FALSE))
            return g_strdup(eb_json_get_string(model, "id"));
    }
    return NULL;
}

static void
on_model_set(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    EbSession *self = g_task_get_source_object(task);
    GError *error = NULL;
    if (!eb_acp_client_set_model_finish(EB_ACP_CLIENT(source), result, &error)) {
        g_task_return_error(task, error);
        return;
    }
    g_autofree char *told = self->guest != NULL ? current_model(self) : NULL;
    const char *model = told != NULL ? told : g_task_get_task_data(task);
    g_free(self->record->model);
    self->record->model = g_strdup(model);
    eb_session_save(self);
    g_signal_emit_by_name(self, "changed");
    g_task_return_pointer(task, g_strdup(model), g_free);
}

void
eb_session_set_model_async(EbSession *self, const char *model, GCancellable *cancellable, GAsyncReadyCallback callback,
                           gpointer user_data)
{
    g_return_if_fail(EB_IS_SESSION(self) && model != NULL);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_session_set_model_async);
    g_task_set_task_data(task, g_strdup(model), g_free);
    if (self->ending || self->guest == NULL) {
        g_task_return_error(task, eb_error_new(EB_ERROR_UNAVAILABLE, "session.starting", "%s",
                                               self->ending ? "the session is ending" : "the agent is not there yet"));
        return;
    }
    if (self->prompt != NULL) {
        g_task_return_error(
            task, eb_error_new(EB_ERROR_BUSY, "session.busy", "a turn is running: change the model when it is over"));
        return;
    }
    eb_acp_client_set_model_async(self->guest->client, model, SET_DEADLINE_MS, cancellable, on_model_set,
                                  g_steal_pointer(&task));
}

char *
eb_session_set_model_finish(EbSession *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- status --- */

static void
set_long_text(EbSession *self, JsonObject *status, const char *member, const char *text, gsize max)
{
    if (text == NULL)
        return;
    g_autofree char *masked =
        eb_redact_set_mask(self->guest != NULL ? self->guest->secrets : self->parts->secrets, text, -1);
    g_autofree char *shown = eb_log_escape(masked, -1, max);
    json_object_set_string_member(status, member, shown);
}

static void
set_text(EbSession *self, JsonObject *status, const char *member, const char *text)
{
    set_long_text(self, status, member, text, 200);
}

static void
add_usage(EbSession *self, JsonObject *status)
{
    if (self->context_used >= 0) {
        JsonObject *context = json_object_new();
        json_object_set_int_member(context, "used", self->context_used);
        if (self->context_size > 0)
            json_object_set_int_member(context, "size", self->context_size);
        json_object_set_object_member(status, "context", context);
    }
    if (self->cost < 0)
        return;
    json_object_set_double_member(status, "cost", self->cost);
    set_text(self, status, "currency", self->currency);
}

static void
add_agent(EbSession *self, JsonObject *status)
{
    EbGuest *guest = self->guest;
    if (guest == NULL)
        return;
    set_text(self, status, "agent_name", guest->agent_name);
    set_text(self, status, "agent_version", guest->agent_version);
    set_text(self, status, "instance", guest->instance);
    if (self->turn_us == 0)
        return;
    json_object_set_int_member(status, "turn_ms", (g_get_monotonic_time() - self->turn_us) / 1000);
    json_object_set_int_member(status, "idle_ms", (gint64)eb_acp_client_get_idle_ms(guest->client));
}

JsonObject *
eb_session_status(EbSession *self)
{
    const EbSessionRecord *record = self->record;
    JsonObject *status = json_object_new();
    set_text(self, status, "session", record->id);
    set_text(self, status, "project", record->project);
    set_text(self, status, "state", eb_session_state_to_string(self->state));
    set_text(self, status, "agent", record->agent);
    set_text(self, status, "owner", record->owner);
    set_text(self, status, "model", record->model);
    set_text(self, status, "provider", record->provider);
    set_long_text(self, status, "unroutable", self->guest != NULL ? self->guest->unroutable : NULL, 1000);
    JsonArray *guests = json_array_new();
    for (guint i = 0; i < record->guests->len; i++)
        json_array_add_string_element(guests, record->guests->pdata[i]);
    json_object_set_array_member(status, "guests", guests);
    json_object_set_int_member(status, "turns", record->turns);
    gboolean waiting = self->prompt != NULL && self->turn_us == 0;
    json_object_set_int_member(status, "waiting", self->prompts.length + (waiting ? 1 : 0));
    json_object_set_int_member(status, "questions", self->permissions->len);
    json_object_set_int_member(status, "started_ms", record->started_ms);
    json_object_set_int_member(status, "last_activity_ms", record->last_activity_ms);
    json_object_set_boolean_member(status, "steer",
                                   self->guest != NULL && eb_acp_client_get_info(self->guest->client)->steer);
    eb_session_add_budget(self, status);
    if (self->canary_seen != NULL)
        set_text(self, status, "canary", self->canary_seen);
    add_agent(self, status);
    add_usage(self, status);
    return status;
}
