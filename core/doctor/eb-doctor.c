/* SPDX-License-Identifier: MIT */
#include "core/doctor/eb-doctor.h"

#include <string.h>

#define DEFAULT_DEADLINE_MS 3000
/* A check may not ask for more than this, so that a whole run stays below ten seconds on the sickest host. */
#define MAX_DEADLINE_MS 8000
/* After its deadline a check has this long to notice that it was cancelled and say what it saw. */
#define GRACE_MS 250
/* Threads of one run; a plugin that brings more checks is reported, not served. */
#define MAX_CHECKS 256

/* What a run shares with its threads: a check that never returns keeps it for ever, the run goes on without. */
typedef struct {
    gatomicrefcount refs;
    GMutex lock;
    GCond changed;
    guint pending; /* jobs that are neither done nor given up */
} Run;

typedef struct {
    Run *run;
    EbDoctorCheck *check;
    EbHost *host;
    EbConfigSection *settings;
    GCancellable *cancellable;
    const char *plugin;
    const EbCheckInfo *info;
    gint64 start, deadline; /* monotonic microseconds */
    gboolean cancelled;
    gboolean closed;       /* under the lock: result is final */
    EbCheckResult *result; /* under the lock */
    guint ms;
} Job;

static Run *
run_ref(Run *run)
{
    g_atomic_ref_count_inc(&run->refs);
    return run;
}

static void
run_unref(Run *run)
{
    if (!g_atomic_ref_count_dec(&run->refs))
        return;
    g_mutex_clear(&run->lock);
    g_cond_clear(&run->changed);
    g_free(run);
}

static void
job_clear(gpointer data)
{
    Job *job = data;

    g_clear_object(&job->check);
    g_clear_object(&job->host);
    g_clear_object(&job->settings);
    g_clear_object(&job->cancellable);
    g_clear_pointer(&job->result, eb_check_result_free);
    g_clear_pointer(&job->run, run_unref);
}

/* A section remembers which keys were read, so every thread gets one of its own. */
static EbConfigSection *
copy_settings(EbConfigSection *settings)
{
    EbConfigSection *copy = eb_config_section_new(settings != NULL ? eb_config_section_get_path(settings) : "doctor");
    g_autoptr(GPtrArray) keys = settings != NULL ? eb_config_section_get_keys(settings) : NULL;

    for (guint i = 0; keys != NULL && i < keys->len; i++) {
        const char *key = keys->pdata[i];
        g_autofree char *where = eb_config_section_where(settings, key);
        eb_config_section_set(copy, key, eb_config_section_get_value(settings, key), where, 0);
    }
    return copy;
}

static gpointer
check_thread(gpointer data)
{
    Job *job = data;
    EbCheckResult *result = eb_doctor_check_run(job->check, job->host, job->settings, job->cancellable);

    g_mutex_lock(&job->run->lock);
    if (!job->closed) {
        job->closed = TRUE;
        job->result = g_steal_pointer(&result);
        job->ms = (guint)((g_get_monotonic_time() - job->start) / 1000);
        job->run->pending--;
        g_cond_signal(&job->run->changed);
    }
    g_mutex_unlock(&job->run->lock);
    eb_check_result_free(result);
    g_atomic_rc_box_release_full(job, job_clear);
    return NULL;
}

static Job *
job_start(Run *run, const EbExtension *extension, EbHost *host, EbConfigSection *settings)
{
    Job *job = g_atomic_rc_box_new0(Job);
    guint deadline_ms;
    g_autoptr(GError) error = NULL;
    GThread *thread;

    job->run = run_ref(run);
    job->check = g_object_ref(EB_DOCTOR_CHECK(extension->object));
    job->host = g_object_ref(host);
    job->settings = copy_settings(settings);
    job->cancellable = g_cancellable_new();
    job->plugin = g_intern_string(extension->plugin);
    job->info = eb_doctor_check_get_info(job->check);
    deadline_ms = job->info->deadline_ms > 0 ? job->info->deadline_ms : DEFAULT_DEADLINE_MS;
    job->start = g_get_monotonic_time();
    job->deadline = job->start + (gint64)MIN(deadline_ms, MAX_DEADLINE_MS) * 1000;
    g_mutex_lock(&run->lock);
    run->pending++;
    g_mutex_unlock(&run->lock);
    thread = g_thread_try_new("doctor-check", check_thread, g_atomic_rc_box_acquire(job), &error);
    if (thread != NULL) {
        g_thread_unref(thread);
        return job;
    }
    g_mutex_lock(&run->lock);
    run->pending--;
    job->closed = TRUE;
    job->result = eb_check_result_new(EB_CHECK_SKIPPED, "no thread for it: %s", error->message);
    g_mutex_unlock(&run->lock);
    g_atomic_rc_box_release_full(job, job_clear);
    return job;
}

/* Cancels what is over its deadline, gives up what ignores that. Returns the next moment to look again. Locked. */
static gint64
enforce_deadlines(Run *run, GPtrArray *jobs)
{
    gint64 now = g_get_monotonic_time(), next = now + (gint64)MAX_DEADLINE_MS * 1000;

    for (guint i = 0; i < jobs->len; i++) {
        Job *job = jobs->pdata[i];
        gint64 end = job->deadline + (job->cancelled ? GRACE_MS * 1000 : 0);

        if (job->closed)
            continue;
        if (now < end) {
            next = MIN(next, end);
        } else if (!job->cancelled) {
            job->cancelled = TRUE;
            next = MIN(next, now + GRACE_MS * 1000);
            /* Without the lock: a handler of the check's own runs in here. */
            g_mutex_unlock(&run->lock);
            g_cancellable_cancel(job->cancellable);
            g_mutex_lock(&run->lock);
        } else {
            job->closed = TRUE;
            job->ms = (guint)((now - job->start) / 1000);
            job->result = eb_check_result_new(EB_CHECK_FAIL, "the check of plugin %s did not come back within %u ms",
                                              job->plugin, job->ms);
            run->pending--;
        }
    }
    return next;
}

static void
wait_for_jobs(Run *run, GPtrArray *jobs, GCancellable *cancellable)
{
    g_mutex_lock(&run->lock);
    while (run->pending > 0) {
        gint64 next = enforce_deadlines(run, jobs);

        if (g_cancellable_is_cancelled(cancellable)) {
            /* The caller has lost interest: no grace, every check still at work is given up. */
            for (guint i = 0; i < jobs->len; i++)
                ((Job *)jobs->pdata[i])->deadline = 0;
            next = g_get_monotonic_time() + 10 * 1000;
        }
        if (run->pending > 0)
            g_cond_wait_until(&run->changed, &run->lock, MIN(next, g_get_monotonic_time() + 100 * 1000));
    }
    g_mutex_unlock(&run->lock);
}

static void
row_free(gpointer data)
{
    EbDoctorRow *row = data;

    eb_check_result_free(row->result);
    g_free(row);
}

void
eb_doctor_report_free(EbDoctorReport *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->rows);
    g_free(self->kernel);
    g_free(self->system);
    g_free(self);
}

/* "E-5" before "E-17", ours before others'. */
static int
compare_ids(const char *a, const char *b)
{
    for (; *a != '\0' && *b != '\0'; a++, b++) {
        if (g_ascii_isdigit(*a) && g_ascii_isdigit(*b)) {
            char *end_a, *end_b;
            guint64 number_a = g_ascii_strtoull(a, &end_a, 10), number_b = g_ascii_strtoull(b, &end_b, 10);
            if (number_a != number_b)
                return number_a < number_b ? -1 : 1;
            a = end_a - 1;
            b = end_b - 1;
        } else if (*a != *b) {
            return (guchar)*a < (guchar)*b ? -1 : 1;
        }
    }
    return (int)(guchar)*a - (int)(guchar)*b;
}

static int
compare_rows(gconstpointer a, gconstpointer b)
{
    const EbDoctorRow *first = *(const EbDoctorRow *const *)a, *second = *(const EbDoctorRow *const *)b;
    int order = compare_ids(first->info->id, second->info->id);

    return order != 0 ? order : strcmp(first->plugin, second->plugin);
}

static char *
read_system(EbHost *host)
{
    g_autofree char *text = eb_host_read_file(host, "/etc/os-release", NULL, NULL);
    const char *name = text != NULL ? strstr(text, "PRETTY_NAME=\"") : NULL;
    const char *end = name != NULL ? strchr(name + 13, '"') : NULL;

    return end != NULL ? g_strndup(name + 13, (gsize)(end - name - 13)) : NULL;
}

static void
count(EbDoctorReport *report, EbCheckStatus status)
{
    switch (status) {
    case EB_CHECK_OK:
        report->ok++;
        break;
    case EB_CHECK_DEGRADED:
        report->degraded++;
        break;
    case EB_CHECK_FAIL:
        report->fail++;
        break;
    case EB_CHECK_SKIPPED:
        report->skipped++;
        break;
    }
}

static gboolean
is_wanted(const char *id, const char *const *ids)
{
    return ids == NULL || ids[0] == NULL || g_strv_contains(ids, id);
}

/* Every id asked for must exist; the nearest known one is named otherwise. */
static gboolean
check_ids(GPtrArray *checks, const char *const *ids, GError **error)
{
    g_autoptr(GPtrArray) known = g_ptr_array_new();

    for (guint i = 0; i < checks->len; i++)
        g_ptr_array_add(
            known, (gpointer)eb_doctor_check_get_info(EB_DOCTOR_CHECK(((EbExtension *)checks->pdata[i])->object))->id);
    g_ptr_array_add(known, NULL);
    for (guint i = 0; ids != NULL && ids[i] != NULL; i++) {
        const char *nearest;
        if (g_strv_contains((const char *const *)known->pdata, ids[i]))
            continue;
        nearest = eb_config_nearest(ids[i], (const char *const *)known->pdata);
        eb_set_error(error, EB_ERROR_NOT_FOUND, "doctor.unknown-check", "there is no check \"%s\"%s%s%s", ids[i],
                     nearest != NULL ? " (did you mean " : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "?)" : "");
        return FALSE;
    }
    return TRUE;
}

static EbDoctorReport *
run_checks(GPtrArray *checks, EbHost *host, EbConfigSection *settings, const char *const *ids,
           GCancellable *cancellable, GError **error)
{
    g_autoptr(GPtrArray) jobs = NULL;
    EbDoctorReport *report;
    Run *run;

    if (!check_ids(checks, ids, error))
        return NULL;
    if (checks->len > MAX_CHECKS) {
        eb_set_error(error, EB_ERROR_QUOTA, "doctor.too-many", "%u checks, more than %d", checks->len, MAX_CHECKS);
        return NULL;
    }
    run = g_new0(Run, 1);
    g_atomic_ref_count_init(&run->refs);
    g_mutex_init(&run->lock);
    g_cond_init(&run->changed);
    jobs = g_ptr_array_new();
    for (guint i = 0; i < checks->len; i++) {
        const EbExtension *extension = checks->pdata[i];
        if (is_wanted(eb_doctor_check_get_info(EB_DOCTOR_CHECK(extension->object))->id, ids))
            g_ptr_array_add(jobs, job_start(run, extension, host, settings));
    }
    wait_for_jobs(run, jobs, cancellable);

    report = g_new0(EbDoctorReport, 1);
    report->rows = g_ptr_array_new_with_free_func(row_free);
    report->kernel = eb_host_uname_release(host);
    report->system = read_system(host);
    for (guint i = 0; i < jobs->len; i++) {
        Job *job = jobs->pdata[i];
        EbDoctorRow *row = g_new0(EbDoctorRow, 1);
        row->info = job->info;
        row->plugin = job->plugin;
        /* Closed, and pending is 0: no thread writes it any more. */
        row->result = g_steal_pointer(&job->result);
        row->ms = job->ms;
        count(report, row->result->status);
        g_ptr_array_add(report->rows, row);
        g_atomic_rc_box_release_full(job, job_clear);
    }
    run_unref(run);
    g_ptr_array_sort(report->rows, compare_rows);
    return report;
}

EbDoctorReport *
eb_doctor_run(GPtrArray *checks, EbHost *host, EbConfigSection *settings, const char *const *ids, GError **error)
{
    return run_checks(checks, host, settings, ids, NULL, error);
}

/* --- the same in the background --- */

typedef struct {
    GPtrArray *checks;
    EbHost *host;
    EbConfigSection *settings;
    char **ids;
} Request;

static void
request_free(gpointer data)
{
    Request *request = data;

    g_ptr_array_unref(request->checks);
    g_object_unref(request->host);
    g_object_unref(request->settings);
    g_strfreev(request->ids);
    g_free(request);
}

static void
extension_free(gpointer data)
{
    EbExtension *extension = data;

    g_object_unref(extension->object);
    g_free(extension);
}

static void
run_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    Request *request = data;
    g_autoptr(GError) error = NULL;
    EbDoctorReport *report = run_checks(request->checks, request->host, request->settings,
                                        (const char *const *)request->ids, cancellable, &error);

    if (report != NULL)
        g_task_return_pointer(task, report, (GDestroyNotify)eb_doctor_report_free);
    else
        g_task_return_error(task, g_steal_pointer(&error));
}

void
eb_doctor_run_async(GPtrArray *checks, EbHost *host, EbConfigSection *settings, const char *const *ids,
                    GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(NULL, cancellable, callback, user_data);
    Request *request = g_new0(Request, 1);

    /* The caller's list may go away while a thread works on it. */
    request->checks = g_ptr_array_new_with_free_func(extension_free);
    for (guint i = 0; i < checks->len; i++) {
        const EbExtension *extension = checks->pdata[i];
        EbExtension *copy = g_new0(EbExtension, 1);
        copy->plugin = g_intern_string(extension->plugin);
        copy->name = g_intern_string(extension->name);
        copy->object = g_object_ref(extension->object);
        g_ptr_array_add(request->checks, copy);
    }
    request->host = g_object_ref(host);
    request->settings = copy_settings(settings);
    request->ids = g_strdupv((char **)ids);
    g_task_set_source_tag(task, eb_doctor_run_async);
    g_task_set_task_data(task, request, request_free);
    g_task_run_in_thread(task, run_in_thread);
}

EbDoctorReport *
eb_doctor_run_finish(GAsyncResult *result, GError **error)
{
    EbDoctorReport *report;

    g_return_val_if_fail(g_task_is_valid(result, NULL), NULL);
    report = g_task_propagate_pointer(G_TASK(result), error);
    if (report == NULL)
        eb_error_convert(error, NULL, NULL);
    return report;
}
