/* SPDX-License-Identifier: MIT */
#include "core/doctor/eb-doctor-collect.h"

#include <string.h>
#include <unistd.h>

#include "core/doctor/eb-doctor-catalogue.h"
#include "core/doctor/eb-doctor-child.h"

/* A second run of a check that has less time than this tells nothing. */
#define LEAST_MS 300

typedef struct {
    int program_fd;
    char **arguments, **ids;
    gboolean list, watch, service;
    EbDoctorReport *report; /* (unowned) */
    GPtrArray *known;       /* (element-type utf8) (owned): every id that was named */
    GPtrArray *problems;    /* (element-type utf8) (owned): for EB_DOCTOR_PLUGINS_CHECK */
    GPtrArray *plugins;     /* (element-type utf8) (owned): ours first */
    GPtrArray *outcomes;    /* (element-type EbDoctorOutcome) (owned): by plugin, NULL = none yet */
    guint taken; /* so many outcomes were made rows of: in order, so that of two checks with one id ours stays */
    gboolean own_failed; /* of our own plugin: nothing is known of this host */
    GQueue again;        /* (element-type Again) (owned) */
    guint running;
    gint64 start, end; /* monotonic microseconds */
} Collect;

/* One check that is run again by itself. */
typedef struct {
    guint plugin;
    EbCheckInfo *info;
    char *fault; /* of the process it was in first */
} Again;

/* What a process was started for; @again NULL: all checks of a plugin. */
typedef struct {
    GTask *task;  /* (owned) */
    guint plugin; /* index */
    Again *again;
} Job;

static void
again_free(gpointer data)
{
    Again *again = data;

    eb_doctor_info_free(again->info);
    g_free(again->fault);
    g_free(again);
}

static void
collect_free(gpointer data)
{
    Collect *self = data;

    if (self->program_fd >= 0)
        close(self->program_fd);
    g_strfreev(self->arguments);
    g_strfreev(self->ids);
    g_ptr_array_unref(self->known);
    g_ptr_array_unref(self->problems);
    g_ptr_array_unref(self->plugins);
    g_ptr_array_unref(self->outcomes);
    g_queue_clear_full(&self->again, again_free);
    g_free(self);
}

static void
job_free(Job *job)
{
    g_object_unref(job->task);
    if (job->again != NULL)
        again_free(job->again);
    g_free(job);
}

static gboolean
is_wanted(Collect *self, const char *id)
{
    return self->ids == NULL || self->ids[0] == NULL || g_strv_contains((const char *const *)self->ids, id);
}

static gboolean
is_known(Collect *self, const char *id)
{
    return g_ptr_array_find_with_equal_func(self->known, id, g_str_equal, NULL);
}

static void G_GNUC_PRINTF(3, 4) add_problem(Collect *self, const char *plugin, const char *format, ...)
{
    g_autofree char *what = NULL;
    va_list args;

    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    g_ptr_array_add(self->problems, g_strdup_printf("plugin %s %s", plugin, what));
}

static void run_more(GTask *task);
static void on_child(GObject *source, GAsyncResult *result, gpointer user_data);

static void
start_job(GTask *task, guint plugin, Again *again)
{
    Collect *self = g_task_get_task_data(task);
    g_autoptr(GPtrArray) arguments = g_ptr_array_new();
    EbDoctorChildSpec spec = {.program_fd = self->program_fd, .end = self->end};
    Job *job = g_new0(Job, 1);

    job->task = g_object_ref(task);
    job->plugin = plugin;
    job->again = again;
    for (guint i = 0; self->arguments[i] != NULL; i++)
        g_ptr_array_add(arguments, self->arguments[i]);
    for (guint i = 0; again == NULL && self->ids != NULL && self->ids[i] != NULL; i++) {
        g_ptr_array_add(arguments, (gpointer) "--check");
        g_ptr_array_add(arguments, self->ids[i]);
    }
    if (again != NULL) {
        g_ptr_array_add(arguments, (gpointer) "--check");
        g_ptr_array_add(arguments, (gpointer)again->info->id);
    }
    if (self->list)
        g_ptr_array_add(arguments, (gpointer) "--list");
    if (self->watch)
        g_ptr_array_add(arguments, (gpointer) "--watch");
    if (self->service)
        g_ptr_array_add(arguments, (gpointer) "--service");
    g_ptr_array_add(arguments, self->plugins->pdata[plugin]);
    g_ptr_array_add(arguments, NULL);
    spec.arguments = (const char *const *)arguments->pdata;
    self->running++;
    eb_doctor_child_run_async(&spec, g_task_get_cancellable(task), on_child, job);
}

/* --- what came of a process --- */

static void
add_row(Collect *self, guint plugin, const EbCheckInfo *info, const EbDoctorLine *line)
{
    EbCheckResult *result = eb_check_result_new(line->result->status, "%s", line->result->observed);

    if (line->result->remedy != NULL)
        eb_check_result_set_remedy(result, "%s", line->result->remedy);
    eb_doctor_report_add(self->report, self->plugins->pdata[plugin], info, result, line->ms);
}

static void
add_broken(Collect *self, guint index, const EbCheckInfo *info, const char *what)
{
    const char *plugin = self->plugins->pdata[index];
    EbCheckResult *result = eb_check_result_new(EB_CHECK_FAIL, "the check of plugin %s %s", plugin, what);

    eb_check_result_set_remedy(
        result, "tell the makers of plugin %s; until it is mended take it out of [plugins] enabled", plugin);
    eb_doctor_report_add(self->report, plugin, info, result, 0);
}

static void
run_again(Collect *self, guint plugin, const EbCheckInfo *info, const char *fault)
{
    Again *again = g_new0(Again, 1);

    again->plugin = plugin;
    again->info = eb_doctor_info_copy(info);
    again->fault = g_strdup(fault);
    g_queue_push_tail(&self->again, again);
}

/* All checks of @plugin ran in this process. */
static void
take_plugin(Collect *self, guint index, const EbDoctorOutcome *outcome)
{
    const char *plugin = self->plugins->pdata[index];
    gboolean own = strcmp(plugin, EB_DOCTOR_OWN_PLUGIN) == 0;

    if (outcome->problem != NULL || (outcome->fault != NULL && !outcome->described)) {
        if (outcome->problem != NULL)
            add_problem(self, plugin, "brings no checks: %s", outcome->problem);
        else
            add_problem(self, plugin, "%s while it was loaded and asked what it checks", outcome->fault);
        self->own_failed = self->own_failed || own;
        return;
    }
    if (outcome->fault != NULL)
        add_problem(self, plugin, "%s while it ran its checks", outcome->fault);
    for (guint i = 0; i < outcome->infos->len; i++) {
        const EbCheckInfo *info = outcome->infos->pdata[i];
        const EbDoctorLine *line = eb_doctor_outcome_result(outcome, info->id);

        if (is_known(self, info->id) || strcmp(info->id, EB_DOCTOR_PLUGINS_CHECK) == 0) {
            add_problem(self, plugin, "brings check %s, which is there already", info->id);
            continue;
        }
        g_ptr_array_add(self->known, g_strdup(info->id));
        if (!is_wanted(self, info->id))
            continue;
        if (self->list)
            eb_doctor_report_add(self->report, plugin, info, NULL, 0);
        else if (line != NULL)
            add_row(self, index, info, line);
        else if (outcome->fault != NULL)
            run_again(self, index, info, outcome->fault);
        else
            add_broken(self, index, info, "was left out by it");
    }
}

static void
take_again(Collect *self, const Again *again, const EbDoctorOutcome *outcome)
{
    const EbDoctorLine *line = eb_doctor_outcome_result(outcome, again->info->id);
    g_autofree char *what = NULL;

    if (line != NULL) {
        add_row(self, again->plugin, again->info, line);
        return;
    }
    if (outcome->fault != NULL)
        what = g_strdup(outcome->fault);
    else
        what =
            g_strdup_printf("did not come back: %s", outcome->problem != NULL ? outcome->problem : "nothing was said");
    add_broken(self, again->plugin, again->info, what);
}

static void
on_child(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Job *job = user_data;
    g_autoptr(GTask) task = g_object_ref(job->task);
    Collect *self = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;
    g_autoptr(EbDoctorOutcome) outcome = eb_doctor_child_run_finish(result, &error);

    self->running--;
    if (outcome == NULL) {
        outcome = eb_doctor_outcome_new();
        outcome->problem = g_strdup_printf("cannot be run: %s", error->message);
    }
    if (job->again != NULL) {
        take_again(self, job->again, outcome);
    } else {
        self->outcomes->pdata[job->plugin] = g_steal_pointer(&outcome);
        for (; self->taken < self->outcomes->len && self->outcomes->pdata[self->taken] != NULL; self->taken++)
            take_plugin(self, self->taken, self->outcomes->pdata[self->taken]);
    }
    job_free(job);
    run_more(task);
}

/* --- the end --- */

static char *
join_problems(Collect *self)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < self->problems->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? "; " : "", (const char *)self->problems->pdata[i]);
    return g_string_free(text, FALSE);
}

static void
add_plugins_row(Collect *self)
{
    const EbDoctorEntry *entry = eb_doctor_entry_find(EB_DOCTOR_PLUGINS_CHECK);
    static const char *const READS[] = {"plugins", NULL};
    const EbCheckInfo info = {.id = entry->id,
                              .title = entry->title,
                              .expected = entry->expected,
                              .remedy = entry->remedy,
                              .doc = "docs/doctor-checks.md#e-75",
                              .reads = READS};
    g_autofree char *text = NULL;
    EbCheckResult *result = NULL;

    g_ptr_array_add(self->known, g_strdup(entry->id));
    if (!is_wanted(self, entry->id) || (self->watch && !entry->watch))
        return;
    text = join_problems(self);
    if (!self->list && *text == '\0')
        result = eb_check_result_new(EB_CHECK_OK, "%u plugins with checks", self->plugins->len);
    else if (!self->list)
        result = eb_check_result_new(self->own_failed ? EB_CHECK_FAIL : EB_CHECK_DEGRADED, "%s. Cost: %s", text,
                                     entry->cost);
    eb_doctor_report_add(self->report, EB_DOCTOR_OWN_PLUGIN, &info, result, 0);
}

/* Every id asked for must exist; the nearest known one is named otherwise, and the plugins that brought none. */
static gboolean
check_ids(Collect *self, GError **error)
{
    g_autofree char *problems = join_problems(self);

    g_ptr_array_add(self->known, NULL);
    for (guint i = 0; self->ids != NULL && self->ids[i] != NULL; i++) {
        const char *nearest;
        if (g_strv_contains((const char *const *)self->known->pdata, self->ids[i]))
            continue;
        nearest = eb_config_nearest(self->ids[i], (const char *const *)self->known->pdata);
        eb_set_error(error, EB_ERROR_NOT_FOUND, "doctor.unknown-check", "there is no check \"%s\"%s%s%s%s%s",
                     self->ids[i], nearest != NULL ? " (did you mean " : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "?)" : "", *problems != '\0' ? ", but " : "", problems);
        return FALSE;
    }
    return TRUE;
}

static void
finish(GTask *task)
{
    Collect *self = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;

    add_plugins_row(self);
    eb_doctor_report_sort(self->report);
    self->report->ms = (guint)((g_get_monotonic_time() - self->start) / 1000);
    if (check_ids(self, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, g_steal_pointer(&error));
}

/* Starts what waits, as far as there is room and time; the last one to end finishes the run. */
static void
run_more(GTask *task)
{
    Collect *self = g_task_get_task_data(task);

    while (self->again.length > 0 && self->running < EB_DOCTOR_AT_ONCE) {
        Again *again = g_queue_pop_head(&self->again);

        if (self->end - g_get_monotonic_time() >= LEAST_MS * 1000) {
            start_job(task, again->plugin, again);
        } else {
            g_autofree char *what =
                g_strdup_printf("was at work when its process %s, and no time was left to run it again", again->fault);
            add_broken(self, again->plugin, again->info, what);
            again_free(again);
        }
    }
    if (self->running == 0)
        finish(task);
}

void
eb_doctor_collect_async(const EbDoctorCollect *order, GCancellable *cancellable, GAsyncReadyCallback callback,
                        gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(NULL, cancellable, callback, user_data);
    Collect *self = g_new0(Collect, 1);

    self->program_fd = dup(order->program_fd);
    self->arguments = g_strdupv((char **)order->arguments);
    self->ids = g_strdupv((char **)order->ids);
    self->list = order->list;
    self->watch = order->watch;
    self->service = order->service;
    self->report = order->report;
    self->known = g_ptr_array_new_with_free_func(g_free);
    self->problems = g_ptr_array_new_with_free_func(g_free);
    self->plugins = g_ptr_array_new_with_free_func(g_free);
    self->start = g_get_monotonic_time();
    self->end = self->start + (gint64)EB_DOCTOR_TOTAL_MS * 1000;
    g_task_set_source_tag(task, eb_doctor_collect_async);
    g_task_set_task_data(task, self, collect_free);
    for (guint i = 0; order->problems != NULL && order->problems[i] != NULL; i++)
        g_ptr_array_add(self->problems, g_strdup(order->problems[i]));
    self->own_failed = !g_strv_contains(order->plugins, EB_DOCTOR_OWN_PLUGIN);
    if (!self->own_failed)
        g_ptr_array_add(self->plugins, g_strdup(EB_DOCTOR_OWN_PLUGIN));
    else if (self->problems->len == 0)
        add_problem(self, EB_DOCTOR_OWN_PLUGIN, "is not there");
    for (guint i = 0; order->plugins[i] != NULL; i++)
        if (strcmp(order->plugins[i], EB_DOCTOR_OWN_PLUGIN) != 0)
            g_ptr_array_add(self->plugins, g_strdup(order->plugins[i]));
    self->outcomes = g_ptr_array_new_with_free_func((GDestroyNotify)eb_doctor_outcome_free);
    g_ptr_array_set_size(self->outcomes, (int)self->plugins->len);
    for (guint i = 0; i < self->plugins->len; i++)
        start_job(task, i, NULL);
    run_more(task);
}

gboolean
eb_doctor_collect_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, NULL), FALSE);
    if (g_task_propagate_boolean(G_TASK(result), error))
        return TRUE;
    eb_error_convert(error, NULL, NULL);
    return FALSE;
}
