/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-plugin"

#include "core/plugin/eb-plugin-registry-private.h"

typedef struct _Phase Phase;

/* One plugin on its way. Lives until the plugin called back, which a stuck one never does. */
typedef struct {
    gatomicrefcount ref_count;
    Phase *phase;              /* (unowned) (nullable): NULL when decided: what comes later is ignored */
    EbPluginRecord *record;    /* (unowned): valid while phase is not NULL */
    GCancellable *cancellable; /* (owned) */
    GSource *timer;            /* (owned) (nullable) */
} PhaseCall;

struct _Phase {
    EbPluginPhaseKind kind;
    GTask *task;           /* (owned) */
    GPtrArray *calls;      /* (element-type PhaseCall) (owned) */
    GSource *cancel_watch; /* (owned) (nullable) */
    guint n_open;
    guint deadline_ms;
};

static void
phase_call_unref(gpointer data)
{
    PhaseCall *call = data;

    if (!g_atomic_ref_count_dec(&call->ref_count))
        return;
    g_object_unref(call->cancellable);
    g_free(call);
}

static void
drop_source(GSource **source)
{
    if (*source != NULL)
        g_source_destroy(*source);
    g_clear_pointer(source, g_source_unref);
}

static void
phase_finish(Phase *phase, GError *error)
{
    drop_source(&phase->cancel_watch);
    if (error != NULL)
        g_task_return_error(phase->task, error);
    else
        g_task_return_boolean(phase->task, TRUE);
    g_object_unref(phase->task);
    g_ptr_array_unref(phase->calls);
    g_free(phase);
}

/* The call's outcome is known: @error: (transfer full) (nullable). */
static void
decide(PhaseCall *call, GError *error)
{
    Phase *phase = g_steal_pointer(&call->phase);

    drop_source(&call->timer);
    if (error != NULL)
        eb_plugin_record_fail(call->record, error);
    else
        call->record->state = phase->kind == EB_PLUGIN_PHASE_START ? EB_PLUGIN_STATE_RUNNING : EB_PLUGIN_STATE_STOPPED;
    call->record = NULL;
    if (--phase->n_open == 0)
        phase_finish(phase, NULL);
}

static void
on_plugin_done(GObject *source, GAsyncResult *result, gpointer user_data)
{
    PhaseCall *call = user_data;
    g_autoptr(GError) error = NULL;
    gboolean done;

    if (call->phase != NULL) {
        const char *name = call->record->name;

        if (call->phase->kind == EB_PLUGIN_PHASE_START)
            done = eb_plugin_start_finish(EB_PLUGIN(source), result, &error);
        else
            done = eb_plugin_stop_finish(EB_PLUGIN(source), result, &error);
        if (!done && error == NULL)
            error = eb_error_new(EB_ERROR_FAILED, "plugin.no-reason", "plugin %s failed without saying why", name);
        decide(call, g_steal_pointer(&error));
    }
    phase_call_unref(call);
}

static gboolean
on_deadline(gpointer user_data)
{
    PhaseCall *call = user_data;
    Phase *phase = call->phase;
    gboolean start = phase->kind == EB_PLUGIN_PHASE_START;
    GError *error = eb_error_new(EB_ERROR_TIMEOUT, start ? "plugin.start-timeout" : "plugin.stop-timeout",
                                 "plugin %s did not %s within %u ms and is dropped", call->record->name,
                                 start ? "start" : "stop", phase->deadline_ms);

    g_cancellable_cancel(call->cancellable);
    decide(call, error);
    return G_SOURCE_REMOVE;
}

/* The caller gives up: plugins are told, and those that did not end yet are quarantined. */
static gboolean
on_cancelled(GCancellable *cancellable, gpointer user_data)
{
    Phase *phase = user_data;
    g_autoptr(GPtrArray) calls = g_ptr_array_ref(phase->calls);
    guint kind = phase->kind;

    phase->n_open++; /* phase_finish() is ours to call */
    for (guint i = 0; i < calls->len; i++) {
        PhaseCall *call = g_ptr_array_index(calls, i);

        if (call->phase == NULL)
            continue;
        g_cancellable_cancel(call->cancellable);
        if (call->phase != NULL)
            decide(call, eb_error_new(EB_ERROR_CANCELLED, "plugin.cancelled", "%s of plugin %s was cancelled",
                                      kind == EB_PLUGIN_PHASE_START ? "start" : "stop", call->record->name));
    }
    phase_finish(phase, eb_error_new(EB_ERROR_CANCELLED, "plugin.cancelled", "%s of the plugins was cancelled",
                                     kind == EB_PLUGIN_PHASE_START ? "start" : "stop"));
    return G_SOURCE_REMOVE;
}

static PhaseCall *
phase_call_new(Phase *phase, EbPluginRecord *record)
{
    PhaseCall *call = g_new0(PhaseCall, 1);

    g_atomic_ref_count_init(&call->ref_count);
    call->phase = phase;
    call->record = record;
    call->cancellable = g_cancellable_new();
    call->timer = g_timeout_source_new(phase->deadline_ms);
    g_source_set_callback(call->timer, on_deadline, call, NULL);
    g_source_attach(call->timer, g_main_context_get_thread_default());
    return call;
}

void
eb_plugin_phase_run(EbPluginPhaseKind kind, GPtrArray *records, guint deadline_ms, GTask *task)
{
    EbPluginState from = kind == EB_PLUGIN_PHASE_START ? EB_PLUGIN_STATE_LOADED : EB_PLUGIN_STATE_RUNNING;
    Phase *phase = g_new0(Phase, 1);
    g_autoptr(GPtrArray) calls = g_ptr_array_new_with_free_func(phase_call_unref);
    GCancellable *cancellable = g_task_get_cancellable(task);

    phase->kind = kind;
    phase->task = task;
    phase->deadline_ms = deadline_ms;
    phase->calls = g_ptr_array_ref(calls);
    /* A plugin may call back before its start returns; the count keeps the phase open until all were told. */
    phase->n_open = 1;
    for (guint i = 0; i < records->len; i++) {
        EbPluginRecord *record = g_ptr_array_index(records, i);

        if (record->state == from && record->plugin != NULL)
            g_ptr_array_add(calls, phase_call_new(phase, record));
    }
    phase->n_open += calls->len;
    if (cancellable != NULL) {
        phase->cancel_watch = g_cancellable_source_new(cancellable);
        g_source_set_callback(phase->cancel_watch, G_SOURCE_FUNC(on_cancelled), phase, NULL);
        g_source_attach(phase->cancel_watch, g_main_context_get_thread_default());
    }
    for (guint i = 0; i < calls->len; i++) {
        PhaseCall *call = g_ptr_array_index(calls, i);

        g_atomic_ref_count_inc(&call->ref_count);
        if (kind == EB_PLUGIN_PHASE_START)
            eb_plugin_start_async(call->record->plugin, call->cancellable, on_plugin_done, call);
        else
            eb_plugin_stop_async(call->record->plugin, call->cancellable, on_plugin_done, call);
    }
    if (--phase->n_open == 0)
        phase_finish(phase, NULL);
}
