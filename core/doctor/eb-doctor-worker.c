/* SPDX-License-Identifier: MIT */
#include "core/doctor/eb-doctor-worker.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/doctor/eb-doctor-catalogue.h"
#include "core/doctor/eb-doctor-line.h"

/* Stacks of 256 threads, and as much again for what the checks read. */
#define MEMORY_MAX (2ul << 30)

typedef struct {
    gboolean closed; /* the doctor has gone */
} Pipe;

void
eb_doctor_worker_confine(void)
{
    const struct rlimit none = {0, 0};

    setrlimit(RLIMIT_CORE, &none);
#ifndef __SANITIZE_ADDRESS__
    {
        const struct rlimit memory = {MEMORY_MAX, MEMORY_MAX};
        setrlimit(RLIMIT_DATA, &memory);
    }
#endif
}

/* @line: (transfer full) */
static void
tell(Pipe *to, char *line)
{
    gsize length = strlen(line), at = 0;

    while (!to->closed && at < length) {
        ssize_t n = write(EB_DOCTOR_WORKER_FD, line + at, length - at);
        if (n > 0)
            at += (gsize)n;
        else if (errno != EINTR)
            to->closed = TRUE;
    }
    g_free(line);
}

static void
tell_result(const EbCheckInfo *info, const EbCheckResult *result, guint ms, gpointer user_data)
{
    tell(user_data, eb_doctor_line_result(info->id, result, ms));
}

static const EbPluginRecord *
find_record(EbPluginRegistry *registry, const char *name)
{
    GPtrArray *records = eb_plugin_registry_get_records(registry);

    for (guint i = 0; i < records->len; i++) {
        const EbPluginRecord *record = records->pdata[i];
        if (strcmp(record->name, name) == 0)
            return record;
    }
    return NULL;
}

/* (transfer full) (element-type EbExtension): @order's checks out of all that were loaded with it */
static GPtrArray *
select_checks(EbPluginRegistry *registry, const EbDoctorWorkerOrder *order)
{
    g_autoptr(GPtrArray) all = eb_plugin_registry_list(registry, EB_EXTENSION_DOCTOR_CHECK);
    GPtrArray *own = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < all->len; i++) {
        const EbExtension *extension = all->pdata[i];
        const char *id = eb_doctor_check_get_info(EB_DOCTOR_CHECK(extension->object))->id;
        if (strcmp(extension->plugin, order->plugin) == 0 && (!order->watch || eb_doctor_entry_watches(id)) &&
            (!order->service || strcmp(eb_doctor_entry_hold(id), "never") != 0))
            g_ptr_array_add(own, g_memdup2(extension, sizeof *extension));
    }
    return own;
}

gboolean
eb_doctor_worker_run(EbPluginRegistry *registry, const EbDoctorWorkerOrder *order, EbHost *host,
                     EbConfigSection *settings)
{
    const EbPluginRecord *record = find_record(registry, order->plugin);
    g_autoptr(GPtrArray) checks = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(EbDoctorReport) report = NULL;
    Pipe to = {FALSE};

    if (record == NULL || record->error != NULL) {
        tell(&to, eb_doctor_line_problem(record != NULL ? record->error->message : "it is not there"));
        return !to.closed;
    }
    checks = select_checks(registry, order);
    for (guint i = 0; i < checks->len; i++) {
        const EbExtension *extension = checks->pdata[i];
        tell(&to, eb_doctor_line_check(eb_doctor_check_get_info(EB_DOCTOR_CHECK(extension->object))));
    }
    tell(&to, eb_doctor_line_mark(EB_DOCTOR_LINE_BEGIN));
    if (!order->list && !to.closed) {
        report = eb_doctor_run(checks, host, settings, order->ids, tell_result, &to, &error);
        if (report == NULL)
            tell(&to, eb_doctor_line_problem(error->message));
    }
    tell(&to, eb_doctor_line_mark(EB_DOCTOR_LINE_END));
    return !to.closed;
}
