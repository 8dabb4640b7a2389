/* SPDX-License-Identifier: MIT */
#include "core/session/eb-session-parts.h"

const char *
eb_launch_state_to_string(EbLaunchState state)
{
    static const char *const names[] = {"check", "credential", "lock",       "record", "directories", "broker",
                                        "guest", "exec",       "initialize", "open",   "model",       "ready"};
    return (guint)state < G_N_ELEMENTS(names) ? names[state] : "ready";
}

static GObject *
broker_start_finish(GAsyncResult *result, GError **error)
{
    EbBrokerCtl *broker = eb_broker_ctl_start_finish(result, error);
    return broker != NULL ? G_OBJECT(broker) : NULL;
}

static void
broker_stop_async(GObject *broker, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_broker_ctl_stop_async(EB_BROKER_CTL(broker), cancellable, callback, user_data);
}

static gboolean
broker_stop_finish(GObject *broker, GAsyncResult *result, GError **error)
{
    return eb_broker_ctl_stop_finish(EB_BROKER_CTL(broker), result, error);
}

static void
broker_update_async(GObject *broker, const EbBrokerRules *rules, GCancellable *cancellable,
                    GAsyncReadyCallback callback, gpointer user_data)
{
    eb_broker_ctl_update_async(EB_BROKER_CTL(broker), rules, cancellable, callback, user_data);
}

static gboolean
broker_update_finish(GObject *broker, GAsyncResult *result, GError **error)
{
    return eb_broker_ctl_update_finish(EB_BROKER_CTL(broker), result, error);
}

const EbBrokerOps EB_BROKER_OPS_DEFAULT = {eb_broker_ctl_start_async, broker_start_finish, broker_stop_async,
                                           broker_stop_finish,        broker_update_async, broker_update_finish};

EbSessionParts *
eb_session_parts_new(void)
{
    EbSessionParts *self = g_new0(EbSessionParts, 1);
    self->ref_count = 1;
    self->secrets = eb_redact_set_new();
    self->questions = eb_questions_new();
    return self;
}

EbSessionParts *
eb_session_parts_ref(EbSessionParts *self)
{
    g_atomic_int_inc(&self->ref_count);
    return self;
}

void
eb_session_parts_unref(EbSessionParts *self)
{
    if (self == NULL || !g_atomic_int_dec_and_test(&self->ref_count))
        return;
    g_clear_object(&self->config);
    g_clear_object(&self->paths);
    g_clear_object(&self->backend);
    g_clear_pointer(&self->launch, g_bytes_unref);
    g_clear_pointer(&self->relay, g_bytes_unref);
    g_clear_object(&self->budget);
    g_clear_object(&self->egress);
    g_clear_object(&self->store);
    g_clear_object(&self->disk);
    g_free(self->state_root);
    g_free(self->locks_dir);
    g_free(self->run_id);
    g_free(self->home_id);
    g_free(self->image);
    eb_redact_set_unref(self->secrets);
    g_clear_object(&self->live);
    g_clear_object(&self->turns);
    g_clear_object(&self->gaps);
    g_clear_object(&self->questions);
    g_clear_object(&self->owner);
    g_free(self);
}
