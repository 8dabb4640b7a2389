/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-pin-progress.h"

typedef struct {
    EbPinProgress progress;
    gpointer progress_data;
    char *what;
} Report;

void
eb_pin_progress_relay_init(EbPinProgressRelay *self, EbPinProgress progress, gpointer progress_data)
{
    self->progress = progress;
    self->progress_data = progress_data;
    self->context = g_main_context_ref_thread_default();
}

void
eb_pin_progress_relay_clear(EbPinProgressRelay *self)
{
    g_clear_pointer(&self->context, g_main_context_unref);
}

static gboolean
deliver(gpointer data)
{
    Report *report = data;

    report->progress(report->what, report->progress_data);
    return G_SOURCE_REMOVE;
}

static void
report_free(gpointer data)
{
    Report *report = data;

    g_free(report->what);
    g_free(report);
}

void
eb_pin_progress_relay_tell(const char *what, gpointer relay)
{
    EbPinProgressRelay *self = relay;
    Report *report;

    if (self->progress == NULL)
        return;
    report = g_new0(Report, 1);
    report->progress = self->progress;
    report->progress_data = self->progress_data;
    report->what = g_strdup(what);
    g_main_context_invoke_full(self->context, G_PRIORITY_DEFAULT, deliver, report, report_free);
}
