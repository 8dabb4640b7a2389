/* SPDX-License-Identifier: MIT */
#include "core/doctor/eb-doctor.h"

#include <string.h>

#define DEFAULT_DEADLINE_MS 3000
#define MAX_DEADLINE_MS 8000

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
    gboolean told;         /* of the waiting thread: done was called */
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
    g_autoptr(GError) error = NULL;
    GThread *thread;

    job->run = run_ref(run);
    job->check = g_object_ref(EB_DOCTOR_CHECK(extension->object));
    job->host = g_object_ref(host);
    job->settings = copy_settings(settings);
    job->cancellable = g_cancellable_new();
    job->plugin = g_intern_string(extension->plugin);
    job->info = eb_doctor_check_get_info(job->check);
    job->start = g_get_monotonic_time();
    job->deadline = job->start + (gint64)eb_doctor_deadline_ms(job->info->deadline_ms) * 1000;
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
        gint64 end = job->deadline + (job->cancelled ? EB_DOCTOR_GRACE_MS * 1000 : 0);

        if (job->closed)
            continue;
        if (now < end) {
            next = MIN(next, end);
        } else if (!job->cancelled) {
            job->cancelled = TRUE;
            next = MIN(next, now + EB_DOCTOR_GRACE_MS * 1000);
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

/* Tells of what has ended since the last time. Locked; not while @done runs, which may take its time. */
static void
tell_ended(Run *run, GPtrArray *jobs, EbDoctorDone done, gpointer user_data)
{
    for (guint i = 0; i < jobs->len; i++) {
        Job *job = jobs->pdata[i];

        if (!job->closed || job->told)
            continue;
        job->told = TRUE;
        if (done == NULL)
            continue;
        g_mutex_unlock(&run->lock);
        done(job->info, job->result, job->ms, user_data);
        g_mutex_lock(&run->lock);
    }
}

static void
wait_for_jobs(Run *run, GPtrArray *jobs, EbDoctorDone done, gpointer user_data)
{
    g_mutex_lock(&run->lock);
    while (run->pending > 0) {
        gint64 next = enforce_deadlines(run, jobs);

        tell_ended(run, jobs, done, user_data);
        if (run->pending > 0)
            g_cond_wait_until(&run->changed, &run->lock, MIN(next, g_get_monotonic_time() + 100 * 1000));
    }
    tell_ended(run, jobs, done, user_data);
    g_mutex_unlock(&run->lock);
}

guint
eb_doctor_deadline_ms(guint deadline_ms)
{
    return MIN(deadline_ms > 0 ? deadline_ms : DEFAULT_DEADLINE_MS, MAX_DEADLINE_MS);
}

static gboolean
is_wanted(const char *id, const char *const *ids)
{
    return ids == NULL || ids[0] == NULL || g_strv_contains(ids, id);
}

EbDoctorReport *
eb_doctor_run(GPtrArray *checks, EbHost *host, EbConfigSection *settings, const char *const *ids, EbDoctorDone done,
              gpointer user_data, GError **error)
{
    g_autoptr(GPtrArray) jobs = NULL;
    EbDoctorReport *report;
    Run *run;

    if (checks->len > EB_DOCTOR_MAX_CHECKS) {
        eb_set_error(error, EB_ERROR_QUOTA, "doctor.too-many", "%u checks, more than %d", checks->len,
                     EB_DOCTOR_MAX_CHECKS);
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
    wait_for_jobs(run, jobs, done, user_data);

    report = eb_doctor_report_new(host);
    for (guint i = 0; i < jobs->len; i++) {
        Job *job = jobs->pdata[i];
        /* Closed, and pending is 0: no thread writes it any more. */
        eb_doctor_report_add(report, job->plugin, job->info, g_steal_pointer(&job->result), job->ms);
        g_atomic_rc_box_release_full(job, job_clear);
    }
    run_unref(run);
    eb_doctor_report_sort(report);
    return report;
}
