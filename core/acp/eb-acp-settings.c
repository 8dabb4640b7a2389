/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-acp"

#include "core/acp/eb-acp-client-private.h"

#include <string.h>

void
eb_acp_client_take_settings(EbAcpClient *self, JsonObject *object)
{
    JsonArray *options = eb_json_get_array(object, "configOptions");
    JsonObject *modes = eb_json_get_object(object, "modes");
    JsonObject *models = eb_json_get_object(object, "models");
    const char *mode = eb_json_get_string(object, "currentModeId");

    if (options != NULL) {
        g_clear_pointer(&self->config_options, json_array_unref);
        self->config_options = json_array_ref(options);
    }
    if (modes != NULL) {
        g_clear_pointer(&self->modes, json_object_unref);
        self->modes = json_object_ref(modes);
    }
    if (models != NULL) {
        g_clear_pointer(&self->models, json_object_unref);
        self->models = json_object_ref(models);
    }
    if (mode != NULL && self->modes != NULL)
        json_object_set_string_member(self->modes, "currentModeId", mode);
}

JsonArray *
eb_acp_client_get_config_options(EbAcpClient *self)
{
    return self->config_options;
}

JsonObject *
eb_acp_client_get_modes(EbAcpClient *self)
{
    return self->modes;
}

JsonObject *
eb_acp_client_get_models(EbAcpClient *self)
{
    return self->models;
}

static void
decode_config(EbAcpClient *self, GTask *task, JsonObject *result)
{
    eb_acp_client_take_settings(self, result);
    g_task_return_boolean(task, TRUE);
}

static void
decode_legacy(EbAcpClient *self, GTask *task, JsonObject *result)
{
    const gboolean is_mode = g_task_get_source_tag(task) == eb_acp_client_set_mode_async;
    JsonObject *object = is_mode ? self->modes : self->models;
    const char *value = g_task_get_task_data(task);

    if (object != NULL)
        json_object_set_string_member(object, is_mode ? "currentModeId" : "currentModelId", value);
    g_task_return_boolean(task, TRUE);
}

/* What the two settings differ in. */
typedef struct {
    const char *category;
    const char *method;
    const char *key;
} Setting;

static void
set(EbAcpClient *self, const Setting *setting, const char *wanted, gboolean legacy, guint deadline_ms, GTask *task)
{
    JsonObject *option = eb_acp_config_option(self->config_options, setting->category);
    g_autoptr(GTask) owned = task;
    g_autoptr(GError) error = NULL;
    g_autofree char *value = NULL;

    if (self->session_id == NULL || self->opening) {
        g_task_return_error(task, eb_error_new(EB_ERROR_INVALID, "acp.state", "no session is open"));
        return;
    }
    if (option != NULL) {
        value = eb_acp_config_choose(option, wanted, &error);
        if (value == NULL)
            g_task_return_error(task, g_steal_pointer(&error));
        else if (g_strcmp0(eb_json_get_string(option, "currentValue"), value) == 0)
            g_task_return_boolean(task, TRUE);
        else
            eb_acp_client_call(self, "session/set_config_option",
                               eb_acp_encode_session(self->session_id, "configId", eb_json_get_string(option, "id"),
                                                     "value", value, NULL),
                               deadline_ms, g_steal_pointer(&owned), decode_config);
        return;
    }
    if (!legacy) {
        g_task_return_error(task, eb_error_new(EB_ERROR_NOT_SUPPORTED, "acp.not-offered",
                                               "the agent offers no choice of %s", setting->category));
        return;
    }
    g_task_set_task_data(task, g_strdup(wanted), g_free);
    eb_acp_client_call(self, setting->method, eb_acp_encode_session(self->session_id, setting->key, wanted, NULL),
                       deadline_ms, g_steal_pointer(&owned), decode_legacy);
}

static GTask *
new_task(EbAcpClient *self, gpointer tag, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(self, cancellable, callback, user_data);

    g_task_set_source_tag(task, tag);
    return task;
}

void
eb_acp_client_set_model_async(EbAcpClient *self, const char *model, guint deadline_ms, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data)
{
    static const Setting setting = {"model", "session/set_model", "modelId"};

    g_return_if_fail(EB_IS_ACP_CLIENT(self) && model != NULL);
    set(self, &setting, model, self->models != NULL, deadline_ms,
        new_task(self, eb_acp_client_set_model_async, cancellable, callback, user_data));
}

gboolean
eb_acp_client_set_model_finish(EbAcpClient *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

void
eb_acp_client_set_mode_async(EbAcpClient *self, const char *mode, guint deadline_ms, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data)
{
    static const Setting setting = {"mode", "session/set_mode", "modeId"};

    g_return_if_fail(EB_IS_ACP_CLIENT(self) && mode != NULL);
    set(self, &setting, mode, self->modes != NULL, deadline_ms,
        new_task(self, eb_acp_client_set_mode_async, cancellable, callback, user_data));
}

gboolean
eb_acp_client_set_mode_finish(EbAcpClient *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}
