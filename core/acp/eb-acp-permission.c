/* SPDX-License-Identifier: MIT */
#include "core/acp/eb-acp-permission.h"

#include "core/acp/eb-acp-tool.h"

#include <string.h>

struct _EbAcpPermission {
    GObject parent_instance;
    EbAcpTool *tool;
    GPtrArray *options; /* (element-type EbAcpOption) */
    JsonObject *raw;
    EbAcpPermissionAnswered answered; /* NULL once answered */
    gpointer user_data;
};

G_DEFINE_FINAL_TYPE(EbAcpPermission, eb_acp_permission, G_TYPE_OBJECT)

static guint signal_withdrawn;

EbAcpPermission *
eb_acp_permission_new(EbAcpTool *tool, GPtrArray *options, JsonObject *raw, EbAcpPermissionAnswered answered,
                      gpointer user_data)
{
    EbAcpPermission *self = g_object_new(EB_TYPE_ACP_PERMISSION, NULL);

    self->tool = tool;
    self->options = options;
    self->raw = json_object_ref(raw);
    self->answered = answered;
    self->user_data = user_data;
    return self;
}

static void
answer(EbAcpPermission *self, const char *option_id)
{
    EbAcpPermissionAnswered answered = g_steal_pointer(&self->answered);

    if (answered != NULL)
        answered(self, option_id, self->user_data);
}

const EbAcpTool *
eb_acp_permission_get_tool(EbAcpPermission *self)
{
    g_return_val_if_fail(EB_IS_ACP_PERMISSION(self), NULL);
    return self->tool;
}

GPtrArray *
eb_acp_permission_get_options(EbAcpPermission *self)
{
    g_return_val_if_fail(EB_IS_ACP_PERMISSION(self), NULL);
    return self->options;
}

JsonObject *
eb_acp_permission_get_raw(EbAcpPermission *self)
{
    g_return_val_if_fail(EB_IS_ACP_PERMISSION(self), NULL);
    return self->raw;
}

gboolean
eb_acp_permission_is_open(EbAcpPermission *self)
{
    g_return_val_if_fail(EB_IS_ACP_PERMISSION(self), FALSE);
    return self->answered != NULL;
}

gboolean
eb_acp_permission_answer(EbAcpPermission *self, const char *option_id, GError **error)
{
    gboolean offered = option_id == NULL;

    g_return_val_if_fail(EB_IS_ACP_PERMISSION(self), FALSE);
    if (self->answered == NULL) {
        eb_set_error(error, EB_ERROR_EXISTS, "acp.permission-closed", "this question has been answered already");
        return FALSE;
    }
    for (guint i = 0; !offered && i < self->options->len; i++)
        offered = strcmp(((EbAcpOption *)g_ptr_array_index(self->options, i))->id, option_id) == 0;
    if (!offered) {
        eb_set_error(error, EB_ERROR_INVALID, "acp.permission-option", "the agent did not offer the answer \"%s\"",
                     option_id);
        return FALSE;
    }
    answer(self, option_id);
    return TRUE;
}

void
eb_acp_permission_withdraw(EbAcpPermission *self)
{
    g_autoptr(EbAcpPermission) keep G_GNUC_UNUSED = g_object_ref(self);

    if (self->answered == NULL)
        return;
    answer(self, NULL);
    g_signal_emit(self, signal_withdrawn, 0);
}

void
eb_acp_permission_detach(EbAcpPermission *self)
{
    g_autoptr(EbAcpPermission) keep G_GNUC_UNUSED = g_object_ref(self);

    if (self->answered == NULL)
        return;
    self->answered = NULL;
    g_signal_emit(self, signal_withdrawn, 0);
}

static void
eb_acp_permission_dispose(GObject *object)
{
    answer(EB_ACP_PERMISSION(object), NULL);
    G_OBJECT_CLASS(eb_acp_permission_parent_class)->dispose(object);
}

static void
eb_acp_permission_finalize(GObject *object)
{
    EbAcpPermission *self = EB_ACP_PERMISSION(object);

    g_clear_pointer(&self->tool, eb_acp_tool_free);
    g_clear_pointer(&self->options, g_ptr_array_unref);
    g_clear_pointer(&self->raw, json_object_unref);
    G_OBJECT_CLASS(eb_acp_permission_parent_class)->finalize(object);
}

static void
eb_acp_permission_init(EbAcpPermission *self)
{
}

static void
eb_acp_permission_class_init(EbAcpPermissionClass *klass)
{
    G_OBJECT_CLASS(klass)->dispose = eb_acp_permission_dispose;
    G_OBJECT_CLASS(klass)->finalize = eb_acp_permission_finalize;
    signal_withdrawn =
        g_signal_new("withdrawn", EB_TYPE_ACP_PERMISSION, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}
