/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-selftest"
#include "core/selftest/eb-selftest-private.h"

#include "core/base/eb-source.h"
#include "core/selftest/eb-selftest-scratch.h"
#include "core/selftest/eb-selftest-strays.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define LIST_DEADLINE_MS 20000
#define STOP_DEADLINE_MS 30000
#define STRAYS_MS 300
#define PROGRESS_EVERY 10
/* A guest whose maker was killed while the daemon made it appears when it is made: so often in a row there must be none. */
#define QUIET_LOOKS 5
#define QUIET_EVERY_MS 2000
#define MAX_LOOKS 60

typedef struct {
    EbSelftestRun run;
    EbSelftestScratch *scratch;
    GPtrArray *dead;    /* (nullable) (element-type EbSelftestScratch): of killed runs, while they are cleared away */
    GPtrArray *jobs;    /* (element-type EbSelftestJob) */
    GPtrArray *threads; /* (element-type GThread) */
    guint left;         /* workers that have not ended */
    EbSelftestStrays *strays;
    GSource *timer; /* looks for processes of dead services */
    GPtrArray *homes;
    GPtrArray *doomed; /* (element-type utf8): guests that are still there in the end */
    guint looks;       /* for such guests */
    guint quiet;       /* looks in a row without one */
    gint64 begun_us;
} Selftest;

static void next_doomed(GTask *task);
static gboolean look_again(gpointer data);
static void start_workers(GTask *task);

void
eb_selftest_report_free(EbSelftestReport *self)
{
    if (self == NULL)
        return;
    g_free(self->slowest);
    g_hash_table_unref(self->groups);
    g_hash_table_unref(self->killed_at);
    g_ptr_array_unref(self->violations);
    g_free(self);
}

static void
job_free(gpointer data)
{
    EbSelftestJob *job = data;
    g_free(job->root);
    g_free(job->config);
    g_free(job);
}

static void
selftest_free(gpointer data)
{
    Selftest *self = data;

    eb_clear_source(&self->timer);
    g_clear_pointer(&self->strays, eb_selftest_strays_free);
    g_clear_pointer(&self->scratch, eb_selftest_scratch_free);
    g_clear_pointer(&self->dead, g_ptr_array_unref);
    g_clear_pointer(&self->run.plan, eb_selftest_plan_free);
    g_clear_object(&self->run.cancellable);
    g_clear_pointer(&self->run.killed_at, g_hash_table_unref);
    g_clear_pointer(&self->run.groups, g_hash_table_unref);
    g_clear_pointer(&self->run.violations, g_ptr_array_unref);
    g_clear_pointer(&self->run.starts_ms, g_array_unref);
    g_free(self->run.slowest);
    g_free(self->run.refusal);
    g_mutex_clear(&self->run.lock);
    g_clear_pointer(&self->jobs, g_ptr_array_unref);
    g_clear_pointer(&self->threads, g_ptr_array_unref);
    g_clear_pointer(&self->homes, g_ptr_array_unref);
    g_clear_pointer(&self->doomed, g_ptr_array_unref);
    g_free(self);
}

/* Calls @func once from the main context's loop. */
static void
in_main(GSourceFunc func, gpointer data)
{
    g_autoptr(GSource) source = g_idle_source_new();

    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, func, data, NULL);
    g_source_attach(source, NULL);
}

/* --- what workers tell --- */

static void
count(GHashTable *table, const char *key)
{
    guint n = GPOINTER_TO_UINT(g_hash_table_lookup(table, key));
    g_hash_table_replace(table, g_strdup(key), GUINT_TO_POINTER(n + 1));
}

void
eb_selftest_run_killed(EbSelftestRun *run, const EbSelftestTarget *target)
{
    g_autofree char *where = g_strdup_printf("%s %s", eb_selftest_way_to_string(target->way), target->step);

    g_mutex_lock(&run->lock);
    run->kills++;
    count(run->killed_at, where);
    count(run->groups, eb_selftest_target_group(target));
    if (run->kills % PROGRESS_EVERY == 0)
        g_printerr("  %u of %u kills, %u starts, %u prompts, %u violations\n", run->kills, run->options.kills,
                   run->starts, run->prompts, run->violations->len);
    g_mutex_unlock(&run->lock);
}

void
eb_selftest_run_missed(EbSelftestRun *run)
{
    g_mutex_lock(&run->lock);
    run->missed++;
    g_mutex_unlock(&run->lock);
}

void
eb_selftest_run_started(EbSelftestRun *run, guint ms, const char *after)
{
    g_mutex_lock(&run->lock);
    run->starts++;
    g_array_append_val(run->starts_ms, ms);
    if (ms > run->slowest_ms) {
        run->slowest_ms = ms;
        g_free(run->slowest);
        run->slowest = g_strdup(after);
    }
    g_mutex_unlock(&run->lock);
}

/* Called with the lock held. */
static void
keep_log(EbSelftestRun *run, const char *text, const char *log)
{
    g_autofree char *name = g_strdup_printf("violation-%02u.log", run->violations->len);
    g_autofree char *path = g_build_filename(run->options.reports, name, NULL);
    g_autofree char *whole = g_strdup_printf("%s\n\n%s", text, log);
    g_autoptr(GError) error = NULL;

    if ((mkdir(run->options.reports, 0700) != 0 && errno != EEXIST) ||
        !g_file_set_contents_full(path, whole, -1, G_FILE_SET_CONTENTS_NONE, 0600, &error))
        eb_warning("%s: %s", path, error != NULL ? error->message : g_strerror(errno));
}

void
eb_selftest_run_violation(EbSelftestRun *run, const char *text, const char *log)
{
    g_mutex_lock(&run->lock);
    g_ptr_array_add(run->violations, g_strdup(text));
    g_printerr("  VIOLATION %s\n", text);
    if (log != NULL && run->violations->len <= EB_SELFTEST_MAX_REPORTS)
        keep_log(run, text, log);
    g_mutex_unlock(&run->lock);
}

gboolean
eb_selftest_run_refuse(EbSelftestRun *run, const char *last_words)
{
    g_mutex_lock(&run->lock);
    gboolean never = run->starts == 0;
    if (never && run->refusal == NULL)
        run->refusal = g_strdup(last_words);
    g_mutex_unlock(&run->lock);
    if (never)
        g_cancellable_cancel(run->cancellable);
    return never;
}

void
eb_selftest_run_know(EbSelftestRun *run, int pid, gboolean known)
{
    eb_selftest_strays_know(run->strays, pid, known);
}

/* --- instances, asked for in the main context --- */

typedef struct {
    EbSelftestRun *run;
    const char *home;
    GMutex lock;
    GCond over_cond;
    gboolean over;
    GHashTable *instances;
    GError *error;
} Listing;

static GHashTable *
instances_of(GPtrArray *found, const char *home)
{
    GHashTable *instances = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);

    for (guint i = 0; i < found->len; i++) {
        const EbInstanceInfo *info = found->pdata[i];
        const char *run = g_hash_table_lookup(info->labels, "run");
        if (home != NULL && g_strcmp0(g_hash_table_lookup(info->labels, "home"), home) == 0)
            g_hash_table_insert(instances, g_strdup(info->name), g_strdup(run != NULL ? run : ""));
    }
    return instances;
}

static void
on_listed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Listing *listing = user_data;
    GError *error = NULL;
    g_autoptr(GPtrArray) found = eb_container_backend_list_finish(EB_CONTAINER_BACKEND(source), result, &error);

    g_mutex_lock(&listing->lock);
    listing->error = error;
    listing->instances = found != NULL ? instances_of(found, listing->home) : NULL;
    listing->over = TRUE;
    g_cond_signal(&listing->over_cond);
    g_mutex_unlock(&listing->lock);
}

static gboolean
begin_listing(gpointer data)
{
    Listing *listing = data;

    eb_container_backend_list_async(listing->run->options.backend, NULL, LIST_DEADLINE_MS, NULL, on_listed, listing);
    return G_SOURCE_REMOVE;
}

GHashTable *
eb_selftest_run_list(EbSelftestRun *run, const char *home, GError **error)
{
    Listing listing = {.run = run, .home = home};

    g_mutex_init(&listing.lock);
    g_cond_init(&listing.over_cond);
    in_main(begin_listing, &listing);
    g_mutex_lock(&listing.lock);
    while (!listing.over)
        g_cond_wait(&listing.over_cond, &listing.lock);
    g_mutex_unlock(&listing.lock);
    g_mutex_clear(&listing.lock);
    g_cond_clear(&listing.over_cond);
    if (listing.error != NULL)
        g_propagate_error(error, listing.error);
    return listing.instances;
}

/* --- the end: nothing of it stays --- */

static int
compare_uints(gconstpointer a, gconstpointer b)
{
    guint left = *(const guint *)a, right = *(const guint *)b;
    return (left > right) - (left < right);
}

static EbSelftestReport *
make_report(Selftest *self)
{
    EbSelftestRun *run = &self->run;
    EbSelftestReport *report = g_new0(EbSelftestReport, 1);

    g_array_sort(run->starts_ms, compare_uints);
    report->kills = run->kills;
    report->starts = run->starts;
    report->prompts = run->prompts;
    report->sessions = run->sessions;
    report->late_guests = run->late_guests;
    report->missed = run->missed;
    report->start_median_ms =
        run->starts_ms->len > 0 ? g_array_index(run->starts_ms, guint, run->starts_ms->len / 2) : 0;
    report->start_slowest_ms = run->slowest_ms;
    report->slowest = g_steal_pointer(&run->slowest);
    report->groups = g_steal_pointer(&run->groups);
    report->killed_at = g_steal_pointer(&run->killed_at);
    report->violations = g_steal_pointer(&run->violations);
    report->us = g_get_monotonic_time() - self->begun_us;
    return report;
}

static void
check_kernel(Selftest *self)
{
    const char *dir = eb_selftest_scratch_get_dir(self->scratch);
    g_autofree char *mounts = NULL;
    g_autofree char *sockets = NULL;

    g_file_get_contents("/proc/self/mountinfo", &mounts, NULL, NULL);
    g_file_get_contents("/proc/net/unix", &sockets, NULL, NULL);
    g_autoptr(GPtrArray) left = eb_selftest_list_mounts(mounts != NULL ? mounts : "", dir);
    g_autoptr(GPtrArray) bound = eb_selftest_list_sockets(sockets != NULL ? sockets : "", dir);
    g_ptr_array_extend_and_steal(left, g_ptr_array_ref(bound));
    for (guint i = 0; i < left->len; i++) {
        g_autofree char *text = g_strdup_printf("in the end: %s is still there", (char *)left->pdata[i]);
        eb_selftest_run_violation(&self->run, text, NULL);
    }
}

static void
conclude(GTask *task)
{
    Selftest *self = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;

    check_kernel(self);
    if (!eb_selftest_scratch_remove(self->scratch, &error))
        eb_selftest_run_violation(&self->run, error->message, NULL);
    if (self->run.refusal != NULL)
        g_task_return_error(task, eb_error_new(EB_ERROR_CONFIG, "selftest.start", "no service can do its work here: %s",
                                               self->run.refusal));
    else if (g_cancellable_is_cancelled(self->run.cancellable))
        g_task_return_error(task,
                            eb_error_new(EB_ERROR_CANCELLED, "selftest.cancelled",
                                         "interrupted after %u kills; what it made is taken back", self->run.kills));
    else
        g_task_return_pointer(task, make_report(self), (GDestroyNotify)eb_selftest_report_free);
    g_object_unref(task);
}

/* The guests of killed runs are gone: their directories go, and the work begins. */
static void
end_dead(GTask *task)
{
    Selftest *self = g_task_get_task_data(task);

    for (guint i = 0; i < self->dead->len; i++) {
        g_autoptr(GError) error = NULL;
        if (!eb_selftest_scratch_remove(self->dead->pdata[i], &error))
            eb_warning("what a killed selftest left cannot be removed: %s", error->message);
    }
    g_clear_pointer(&self->dead, g_ptr_array_unref);
    g_ptr_array_set_size(self->homes, 0);
    start_workers(task);
}

static void
on_doomed_gone(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Selftest *self = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;

    if (!eb_container_backend_stop_finish(EB_CONTAINER_BACKEND(source), result, &error))
        eb_selftest_run_violation(&self->run, error->message, NULL);
    next_doomed(task);
}

/* A run to its end leaves nothing behind; one that was killed, interrupted or refused may still be sent guests. */
static gboolean
may_get_more(Selftest *self)
{
    gboolean broken_off = self->dead != NULL
                              ? self->dead->len > 0
                              : self->run.refusal != NULL || g_cancellable_is_cancelled(self->run.cancellable);

    return broken_off && self->homes->len > 0 && self->quiet < QUIET_LOOKS && self->looks < MAX_LOOKS;
}

static void
next_doomed(GTask *task)
{
    Selftest *self = g_task_get_task_data(task);

    if (self->doomed->len == 0 && may_get_more(self)) {
        self->timer = g_timeout_source_new(QUIET_EVERY_MS);
        g_source_set_callback(self->timer, look_again, task, NULL);
        g_source_attach(self->timer, NULL);
        return;
    }
    if (self->doomed->len == 0) {
        self->looks = self->quiet = 0;
        (self->dead != NULL ? end_dead : conclude)(task);
        return;
    }
    g_autofree char *name = g_ptr_array_steal_index(self->doomed, self->doomed->len - 1);
    eb_container_backend_stop_async(self->run.options.backend, name, EB_STOP_FORCE | EB_STOP_DESTROY, 0,
                                    STOP_DEADLINE_MS, NULL, on_doomed_gone, task);
}

static void
on_last_list(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Selftest *self = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) found = eb_container_backend_list_finish(EB_CONTAINER_BACKEND(source), result, &error);

    if (found == NULL)
        eb_selftest_run_violation(&self->run, error->message, NULL);
    for (guint i = 0; found != NULL && i < found->len; i++) {
        const EbInstanceInfo *info = found->pdata[i];
        const char *home = g_hash_table_lookup(info->labels, "home");
        if (home != NULL && g_ptr_array_find_with_equal_func(self->homes, home, g_str_equal, NULL))
            g_ptr_array_add(self->doomed, g_strdup(info->name));
    }
    self->looks++;
    self->quiet = self->doomed->len == 0 ? self->quiet + 1 : 0;
    next_doomed(task);
}

static gboolean
look_again(gpointer data)
{
    GTask *task = data;
    Selftest *self = g_task_get_task_data(task);

    eb_clear_source(&self->timer);
    eb_container_backend_list_async(self->run.options.backend, NULL, LIST_DEADLINE_MS, NULL, on_last_list, task);
    return G_SOURCE_REMOVE;
}

static gboolean
on_worker_ended(gpointer data)
{
    GTask *task = data;
    Selftest *self = g_task_get_task_data(task);

    if (--self->left > 0)
        return G_SOURCE_REMOVE;
    for (guint i = 0; i < self->threads->len; i++)
        g_thread_join(self->threads->pdata[i]);
    eb_clear_source(&self->timer);
    eb_selftest_strays_end(self->strays);
    for (guint i = 0; i < self->jobs->len; i++) {
        char *home = eb_selftest_read_home(((EbSelftestJob *)self->jobs->pdata[i])->root);
        if (home != NULL)
            g_ptr_array_add(self->homes, home);
    }
    /* After a run to its end there are none: what broke off left some. */
    eb_container_backend_list_async(self->run.options.backend, NULL, LIST_DEADLINE_MS, NULL, on_last_list, task);
    return G_SOURCE_REMOVE;
}

/* --- the beginning --- */

typedef struct {
    GTask *task;
    EbSelftestJob *job;
} Start;

static gpointer
run_worker(gpointer data)
{
    g_autofree Start *start = data;

    eb_selftest_worker(start->job);
    in_main(on_worker_ended, start->task);
    return NULL;
}

static gboolean
on_strays(gpointer data)
{
    Selftest *self = data;
    g_autoptr(GPtrArray) found = eb_selftest_strays_look(self->strays);

    for (guint i = 0; i < found->len; i++)
        eb_selftest_run_violation(&self->run, found->pdata[i], NULL);
    return G_SOURCE_CONTINUE;
}

void
eb_selftest_run_async(const EbSelftestOptions *options, GCancellable *cancellable, GAsyncReadyCallback callback,
                      gpointer user_data)
{
    GTask *task = g_task_new(NULL, NULL, callback, user_data);
    Selftest *self = g_new0(Selftest, 1);

    g_task_set_source_tag(task, eb_selftest_run_async);
    g_task_set_task_data(task, self, selftest_free);
    self->begun_us = g_get_monotonic_time();
    self->run.options = *options;
    self->run.plan = eb_selftest_plan_new(options->kills, options->seed);
    self->run.cancellable = cancellable != NULL ? g_object_ref(cancellable) : g_cancellable_new();
    g_mutex_init(&self->run.lock);
    self->run.killed_at = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->run.groups = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->run.violations = g_ptr_array_new_with_free_func(g_free);
    self->run.starts_ms = g_array_new(FALSE, FALSE, sizeof(guint));
    self->jobs = g_ptr_array_new_with_free_func(job_free);
    self->threads = g_ptr_array_new();
    self->homes = g_ptr_array_new_with_free_func(g_free);
    self->doomed = g_ptr_array_new_with_free_func(g_free);
    self->strays = self->run.strays = eb_selftest_strays_new();
    self->dead = eb_selftest_scratch_take_dead(eb_config_get_state_dir(options->config), self->homes);
    eb_container_backend_list_async(options->backend, NULL, LIST_DEADLINE_MS, NULL, on_last_list, task);
}

static void
start_workers(GTask *task)
{
    Selftest *self = g_task_get_task_data(task);
    const EbSelftestOptions *options = &self->run.options;
    GError *error = NULL;

    self->scratch = eb_selftest_scratch_new(options, &error);
    if (self->scratch == NULL) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    self->timer = g_timeout_source_new(STRAYS_MS);
    g_source_set_callback(self->timer, on_strays, self, NULL);
    g_source_attach(self->timer, NULL);
    self->left = options->jobs;
    for (guint i = 0; i < options->jobs; i++) {
        EbSelftestJob *job = g_new0(EbSelftestJob, 1);
        Start *start = g_new0(Start, 1);
        job->run = &self->run;
        job->number = i;
        job->root = eb_selftest_scratch_get_root(self->scratch, i);
        job->config = eb_selftest_scratch_get_config(self->scratch, i);
        start->task = task;
        start->job = job;
        g_ptr_array_add(self->jobs, job);
        g_ptr_array_add(self->threads, g_thread_new("eb-selftest", run_worker, start));
    }
}

EbSelftestReport *
eb_selftest_run_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_selftest_run_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
