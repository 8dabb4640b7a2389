/* SPDX-License-Identifier: MIT */
#include "core/session/eb-gap-check.h"

#define PROBE_DEADLINE_MS 20000

struct _EbGapCheck {
    GObject parent_instance;
    EbContainerBackend *backend;
    char **accepted;
    gboolean accept_all;
    EbProbeReport *report;
    gint64 known_until_us;
    gboolean probing;
    GPtrArray *waiting; /* (element-type GTask): starts that came while one probe runs; admission bounds them */
};

G_DEFINE_FINAL_TYPE(EbGapCheck, eb_gap_check, G_TYPE_OBJECT)

/* (transfer full) (nullable): the gaps nobody accepted, one line. */
static char *
describe_gaps(EbGapCheck *self)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < self->report->items->len; i++) {
        const EbProbeItem *item = self->report->items->pdata[i];
        if (item->enforced)
            continue;
        const char *id = item->degraded_id != NULL ? item->degraded_id : item->guarantee;
        if (g_strv_contains((const char *const *)self->accepted, id))
            continue;
        g_string_append_printf(text, "%s%s: %s (%s)", text->len > 0 ? "; " : "", id, item->guarantee,
                               item->detail != NULL ? item->detail : "not enforced");
    }
    return text->len > 0 ? g_string_free(g_steal_pointer(&text), FALSE) : NULL;
}

static void
answer(EbGapCheck *self, GTask *task)
{
    g_autofree char *gaps = describe_gaps(self);
    if (gaps == NULL || self->accept_all) {
        g_task_return_pointer(task, g_steal_pointer(&gaps), g_free);
        return;
    }
    g_task_return_error(task,
                        eb_error_new(EB_ERROR_DEGRADED, "backend.degraded",
                                     "not enforced on this host: %s (fix it, or add the id to accept_degraded)", gaps));
}

static void
on_probed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbGapCheck) self = EB_GAP_CHECK(user_data);
    g_autoptr(GError) error = NULL;
    EbProbeReport *report = eb_container_backend_probe_finish(EB_CONTAINER_BACKEND(source), result, &error);
    self->probing = FALSE;
    if (report != NULL) {
        g_clear_pointer(&self->report, eb_probe_report_free);
        self->report = report;
        self->known_until_us = g_get_monotonic_time() + EB_GAP_CHECK_KEEP_S * G_USEC_PER_SEC;
    }
    g_autoptr(GPtrArray) waiting = g_steal_pointer(&self->waiting);
    self->waiting = g_ptr_array_new_with_free_func(g_object_unref);
    for (guint i = 0; i < waiting->len; i++) {
        if (report != NULL)
            answer(self, waiting->pdata[i]);
        else
            g_task_return_error(waiting->pdata[i], g_error_copy(error));
    }
}

void
eb_gap_check_run_async(EbGapCheck *self, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_GAP_CHECK(self));
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_gap_check_run_async);
    if (self->report != NULL && g_get_monotonic_time() < self->known_until_us) {
        answer(self, task);
        return;
    }
    g_ptr_array_add(self->waiting, g_steal_pointer(&task));
    if (self->probing)
        return;
    self->probing = TRUE;
    eb_container_backend_probe_async(self->backend, PROBE_DEADLINE_MS, NULL, on_probed, g_object_ref(self));
}

const EbProbeReport *
eb_gap_check_run_finish(EbGapCheck *self, GAsyncResult *result, char **notice, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    GError *local = NULL;
    g_autofree char *gaps = g_task_propagate_pointer(G_TASK(result), &local);
    if (local != NULL) {
        g_propagate_error(error, local);
        return NULL;
    }
    if (notice != NULL)
        *notice = g_steal_pointer(&gaps);
    return self->report;
}

const EbProbeReport *
eb_gap_check_get_report(EbGapCheck *self)
{
    return self->report;
}

void
eb_gap_check_set_accept_all(EbGapCheck *self, gboolean accept)
{
    self->accept_all = accept;
}

void
eb_gap_check_forget(EbGapCheck *self)
{
    self->known_until_us = 0;
}

static void
eb_gap_check_finalize(GObject *object)
{
    EbGapCheck *self = EB_GAP_CHECK(object);
    g_clear_object(&self->backend);
    g_strfreev(self->accepted);
    g_clear_pointer(&self->report, eb_probe_report_free);
    g_ptr_array_unref(self->waiting);
    G_OBJECT_CLASS(eb_gap_check_parent_class)->finalize(object);
}

static void
eb_gap_check_class_init(EbGapCheckClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_gap_check_finalize;
}

static void
eb_gap_check_init(EbGapCheck *self)
{
    self->waiting = g_ptr_array_new_with_free_func(g_object_unref);
}

EbGapCheck *
eb_gap_check_new(EbContainerBackend *backend, const char *const *accepted)
{
    EbGapCheck *self = g_object_new(EB_TYPE_GAP_CHECK, NULL);
    self->backend = g_object_ref(backend);
    self->accepted = accepted != NULL ? g_strdupv((char **)accepted) : g_new0(char *, 1);
    return self;
}
