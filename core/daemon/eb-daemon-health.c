/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-daemon"
#include "core/daemon/eb-daemon-health.h"

#include "core/base/eb-json-members.h"

#include "core/base/eb-source.h"
#include "core/daemon/eb-daemon-doctor.h"
#include "core/daemon/eb-daemon-health-rules.h"
#include "core/daemon/eb-daemon-maint.h"
#include "core/daemon/eb-daemon-space.h"
#include "core/session/eb-gc.h"
#include "core/session/eb-session-hold.h"

#define CONFIG_FILE "/etc/errand-box/errand-box.toml"

struct _EbDaemonHealth {
    GObject parent_instance;
    EbConfig *config;
    EbPaths *paths;
    char *config_file;         /* (nullable) */
    char *doctor;              /* (nullable): another program than our own */
    EbSessionManager *manager; /* (nullable): not before it is attached */
    gboolean relieved;         /* the state directory's file system is low, and what could go is gone */
    EbHealthRules *rules;
    GCancellable *cancellable; /* of the doctor's run */
    GPtrArray *waits;          /* (element-type GTask): for the end of a whole run, at most EB_HEALTH_MAX_WAITS */
    gboolean running, whole;   /* the doctor, all of it */
    gboolean answering;        /* the waits, when nothing is suspect any more */
    gboolean known;            /* its first run has ended */
    gboolean again;            /* somebody asked for a whole run while another was under way */
    guint runs;
    gint64 checked_ms; /* real time; 0 = never */
    EbWorker *worker;  /* reads the space left */
    GPtrArray *spaces; /* (element-type EbSpace) (nullable) */
    gboolean reading;
    GSource *doctor_timer, *space_timer, *report_timer, *suspect_timer;
    GError *wedged; /* (nullable): what the watchdog reported */
};

G_DEFINE_FINAL_TYPE(EbDaemonHealth, eb_daemon_health, G_TYPE_OBJECT)

static void begin_run(EbDaemonHealth *self, gboolean whole);
static void run_doctor(EbDaemonHealth *self, gboolean whole, const char *const *ids);

/* --- the doctor --- */

static void
apply_rules(EbDaemonHealth *self)
{
    if (self->manager == NULL)
        return;
    g_autoptr(GError) why = eb_health_rules_hold(self->rules);
    g_autofree char *warning = eb_health_rules_warn(self->rules);
    eb_session_manager_set_hold(self->manager, EB_HOLD_DOCTOR, why);
    if (warning == NULL)
        return;
    g_autofree char *text = g_strdup_printf("new sessions may soon be paused: %s", warning);
    eb_warning("%s", text);
    eb_session_manager_tell_live(self->manager, text);
}

static void
answer_waits(EbDaemonHealth *self)
{
    g_autoptr(GPtrArray) waits = g_steal_pointer(&self->waits);

    self->waits = g_ptr_array_new_with_free_func(g_object_unref);
    for (guint i = 0; i < waits->len; i++)
        g_task_return_boolean(waits->pdata[i], TRUE);
}

static gboolean
on_suspect_due(gpointer data)
{
    EbDaemonHealth *self = EB_DAEMON_HEALTH(data);
    g_auto(GStrv) ids = eb_health_rules_suspects(self->rules);

    g_clear_pointer(&self->suspect_timer, g_source_unref);
    if (!self->running && ids[0] != NULL)
        run_doctor(self, FALSE, (const char *const *)ids);
    return G_SOURCE_REMOVE;
}

/* FALSE: nothing is suspect. */
static gboolean
ask_again_soon(EbDaemonHealth *self)
{
    g_auto(GStrv) ids = eb_health_rules_suspects(self->rules);

    eb_clear_source(&self->suspect_timer);
    /* Without a manager nothing is held yet, or nothing any more. */
    if (ids[0] == NULL || self->manager == NULL)
        return FALSE;
    self->suspect_timer = g_timeout_source_new_seconds(EB_HEALTH_SUSPECT_S);
    g_source_set_callback(self->suspect_timer, on_suspect_due, self, NULL);
    g_source_attach(self->suspect_timer, NULL);
    return TRUE;
}

static void
on_report(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbDaemonHealth) self = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) report = eb_daemon_doctor_run_finish(result, &error);
    gint64 now_ms = g_get_real_time() / 1000;
    gboolean whole = self->whole;

    self->running = FALSE;
    if (report != NULL && eb_health_rules_take(self->rules, report, whole, now_ms, &error))
        self->checked_ms = now_ms;
    if (g_error_matches(error, EB_ERROR, EB_ERROR_CANCELLED)) {
        answer_waits(self);
        return;
    }
    /* Ids may have gone with another version of the checks: all of them are asked for the next time. */
    if (error != NULL)
        self->runs = 0;
    if (eb_health_rules_note_failure(self->rules, error)) {
        if (error != NULL)
            eb_warning("the checks of this host did not run: %s", error->message);
        else
            eb_info("the checks of this host run again");
    }
    self->known = TRUE;
    apply_rules(self);
    if (self->again) {
        self->again = FALSE;
        begin_run(self, TRUE);
        return;
    }
    self->answering = self->answering || whole;
    if (ask_again_soon(self) || !self->answering)
        return;
    self->answering = FALSE;
    answer_waits(self);
}

static void
run_doctor(EbDaemonHealth *self, gboolean whole, const char *const *ids)
{
    self->running = TRUE;
    self->whole = whole;
    eb_daemon_doctor_run_async(self->paths, self->doctor, self->config_file, ids, EB_DAEMON_DOCTOR_DEADLINE_MS,
                               self->cancellable, on_report, g_object_ref(self));
}

static void
begin_run(EbDaemonHealth *self, gboolean whole)
{
    g_auto(GStrv) ids = whole ? NULL : eb_health_rules_watched(self->rules);

    if (self->running) {
        self->again = self->again || whole;
        return;
    }
    if (!whole && ids[0] == NULL)
        return; /* nothing is to be asked for often */
    run_doctor(self, whole, (const char *const *)ids);
}

static gboolean
on_doctor_due(gpointer data)
{
    EbDaemonHealth *self = EB_DAEMON_HEALTH(data);

    self->runs++;
    begin_run(self, eb_health_rules_get_failure(self->rules) != NULL || self->runs % EB_HEALTH_WHOLE_EVERY == 0);
    return G_SOURCE_CONTINUE;
}

/* --- the space left --- */

static void
tell_low(EbDaemonHealth *self, const EbSpace *space)
{
    g_autofree char *what = eb_space_describe(space, eb_config_get_min_free(self->config));
    g_autofree char *text = g_strdup_printf("disk space is running low: %s", what);

    eb_warning("%s", text);
    eb_session_manager_tell_live(self->manager, text);
}

static void
on_freed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbDaemonHealth) self = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) classes = eb_session_manager_gc_finish(EB_SESSION_MANAGER(source), result, &error);

    if (classes == NULL)
        eb_warning("no space could be freed: %s", error->message);
    for (guint i = 0; classes != NULL && i < classes->len; i++) {
        const EbGcClass *class = classes->pdata[i];
        if (class->removed > 0 || class->note != NULL)
            eb_info("to free space: %u of %u %s removed (%" G_GUINT64_FORMAT " MiB)%s%s", class->removed, class->before,
                    class->name, class->bytes >> 20, class->note != NULL ? ": " : "",
                    class->note != NULL ? class->note : "");
    }
}

/* What nobody is at work with makes room, the longest unused first, until nothing is low any more. */
static void
free_some(EbDaemonHealth *self, const EbSpace *space)
{
    guint64 wanted = eb_space_relief(space, eb_config_get_min_free(self->config));

    if (wanted > 0)
        eb_session_manager_gc_async(self->manager, FALSE, wanted, on_freed, g_object_ref(self));
}

static void
apply_space(EbDaemonHealth *self)
{
    g_autoptr(GString) full = g_string_new(NULL);
    guint64 min_free = eb_config_get_min_free(self->config);

    for (guint i = 0; self->spaces != NULL && i < self->spaces->len; i++) {
        const EbSpace *space = self->spaces->pdata[i];
        if (space->level != EB_SPACE_FULL)
            continue;
        g_autofree char *what = eb_space_describe(space, min_free);
        g_string_append_printf(full, "%s%s", full->len > 0 ? "; " : "", what);
    }
    g_autoptr(GError) why = full->len > 0
                                ? eb_error_new(EB_ERROR_QUOTA, "health.space",
                                               "the disk is nearly full: %s (to do: errand-box maint gc)", full->str)
                                : NULL;
    eb_session_manager_set_hold(self->manager, EB_HOLD_SPACE, why);
}

/* Once for each time that it gets low: what could go is gone then. */
static void
relieve(EbDaemonHealth *self, const EbSpace *space)
{
    if (space->level == EB_SPACE_FINE)
        self->relieved = FALSE;
    else if (!self->relieved && self->manager != NULL) {
        self->relieved = TRUE;
        eb_daemon_maint_relieve(self->manager, space->free, eb_config_get_min_free(self->config));
    }
}

static void
on_space(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbDaemonHealth) self = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) spaces = eb_space_read_finish(result, &error);
    guint64 min_free = eb_config_get_min_free(self->config);

    self->reading = FALSE;
    if (spaces == NULL) {
        eb_warning("%s", error->message);
        return;
    }
    for (guint i = 0; i < spaces->len; i++) {
        EbSpace *space = spaces->pdata[i];
        EbSpaceLevel before = EB_SPACE_FINE;
        for (guint j = 0; self->spaces != NULL && j < self->spaces->len; j++)
            if (((EbSpace *)self->spaces->pdata[j])->device == space->device)
                before = ((EbSpace *)self->spaces->pdata[j])->level;
        eb_space_judge_all(space, before, min_free);
        if (space->level > before && self->manager != NULL)
            free_some(self, space);
        /* What is full already is told by the hold. */
        if (space->level == EB_SPACE_LOW && before == EB_SPACE_FINE && self->manager != NULL)
            tell_low(self, space);
        if (g_strcmp0(space->path, eb_config_get_state_dir(self->config)) == 0)
            relieve(self, space);
    }
    g_clear_pointer(&self->spaces, g_ptr_array_unref);
    self->spaces = g_steal_pointer(&spaces);
    if (self->manager != NULL)
        apply_space(self);
}

static void
read_space(EbDaemonHealth *self)
{
    const char *paths[] = {eb_config_get_state_dir(self->config), eb_config_get_project_root(self->config), NULL};

    if (self->reading)
        return; /* that file system does not answer; another thread in it would not help */
    self->reading = TRUE;
    eb_space_read_async(self->worker, paths, on_space, g_object_ref(self));
}

static gboolean
on_space_due(gpointer data)
{
    read_space(EB_DAEMON_HEALTH(data));
    return G_SOURCE_CONTINUE;
}

/* --- the watchdog --- */

static void
apply_report(EbDaemonHealth *self)
{
    if (self->manager != NULL)
        eb_session_manager_set_hold(self->manager, EB_HOLD_WATCHDOG, self->wedged);
}

static gboolean
on_report_stale(gpointer data)
{
    EbDaemonHealth *self = EB_DAEMON_HEALTH(data);

    g_clear_pointer(&self->report_timer, g_source_unref);
    eb_warning("the watchdog has not reported for %d s: what it said before counts no more", EB_HEALTH_REPORT_S);
    g_clear_error(&self->wedged);
    apply_report(self);
    return G_SOURCE_REMOVE;
}

gboolean
eb_daemon_health_report(EbDaemonHealth *self, JsonObject *report, GError **error)
{
    const char *state = eb_json_get_string(report, "state"), *detail = eb_json_get_string(report, "detail");
    gboolean wedged = g_strcmp0(state, "wedged") == 0, down = g_strcmp0(state, "down") == 0;

    if (!wedged && !down && g_strcmp0(state, "ok") != 0) {
        eb_set_error(error, EB_ERROR_INVALID, "health.watchdog", "state is none of ok, wedged and down");
        return FALSE;
    }
    eb_clear_source(&self->report_timer);
    g_clear_error(&self->wedged);
    if (wedged || down) {
        g_autofree char *line = eb_log_escape(detail != NULL ? detail : "", -1, 500);
        self->wedged = eb_error_new(EB_ERROR_UNAVAILABLE, "health.watchdog", "%s",
                                    *line != '\0' ? line
                                    : wedged      ? "the container daemon takes connections and does not answer"
                                                  : "the container daemon does not run");
        self->report_timer = g_timeout_source_new_seconds(EB_HEALTH_REPORT_S);
        g_source_set_callback(self->report_timer, on_report_stale, self, NULL);
        g_source_attach(self->report_timer, NULL);
    }
    apply_report(self);
    return TRUE;
}

/* --- asked for --- */

static gboolean
add_wait(EbDaemonHealth *self, GTask *task)
{
    if (self->waits->len >= EB_HEALTH_MAX_WAITS) {
        g_task_return_error(
            task, eb_error_new(EB_ERROR_BUSY, "health.busy", "%u wait for the checks already", self->waits->len));
        g_object_unref(task);
        return FALSE;
    }
    g_ptr_array_add(self->waits, task);
    return TRUE;
}

void
eb_daemon_health_check_async(EbDaemonHealth *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                             gpointer user_data)
{
    GTask *task = g_task_new(self, cancellable, callback, user_data);

    g_task_set_source_tag(task, eb_daemon_health_check_async);
    if (add_wait(self, task))
        begin_run(self, TRUE);
    read_space(self);
}

JsonObject *
eb_daemon_health_check_finish(EbDaemonHealth *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_boolean(G_TASK(result), error) ? eb_daemon_health_to_json(self) : NULL;
}

static JsonArray *
spaces_to_json(EbDaemonHealth *self)
{
    static const char *const levels[] = {"fine", "low", "full"};
    JsonArray *list = json_array_new();

    for (guint i = 0; self->spaces != NULL && i < self->spaces->len; i++) {
        const EbSpace *space = self->spaces->pdata[i];
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "path", space->path);
        json_object_set_int_member(object, "free", (gint64)space->free);
        json_object_set_int_member(object, "total", (gint64)space->total);
        json_object_set_int_member(object, "needs", (gint64)eb_config_get_min_free(self->config));
        json_object_set_string_member(object, "level", levels[space->level]);
        json_array_add_object_element(list, object);
    }
    return list;
}

JsonObject *
eb_daemon_health_to_json(EbDaemonHealth *self)
{
    JsonObject *object = json_object_new();
    g_autofree char *hold = self->manager != NULL ? eb_session_manager_describe_hold(self->manager) : NULL;
    g_autoptr(GDateTime) moment = self->checked_ms > 0 ? g_date_time_new_from_unix_utc(self->checked_ms / 1000) : NULL;
    g_autofree char *at = moment != NULL ? g_date_time_format_iso8601(moment) : NULL;

    eb_json_set_text_or_null(object, "hold", hold);
    json_object_set_array_member(object, "checks", eb_health_rules_to_json(self->rules));
    eb_json_set_text_or_null(object, "checked_at", at);
    eb_json_set_text_or_null(object, "doctor_error", eb_health_rules_get_failure(self->rules));
    json_object_set_array_member(object, "space", spaces_to_json(self));
    return object;
}

/* --- start and end --- */

void
eb_daemon_health_start(EbDaemonHealth *self, GCancellable *cancellable)
{
    g_return_if_fail(EB_IS_DAEMON_HEALTH(self) && !self->running);
    g_set_object(&self->cancellable, cancellable);
    begin_run(self, TRUE);
    read_space(self);
}

void
eb_daemon_health_known_async(EbDaemonHealth *self, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(self, NULL, callback, user_data);

    g_task_set_source_tag(task, eb_daemon_health_known_async);
    if (self->running && !self->known) {
        add_wait(self, task);
        return;
    }
    g_task_return_boolean(task, TRUE);
    g_object_unref(task);
}

void
eb_daemon_health_known_finish(EbDaemonHealth *self, GAsyncResult *result)
{
    g_return_if_fail(g_task_is_valid(result, self));
    g_task_propagate_boolean(G_TASK(result), NULL);
}

gboolean
eb_daemon_health_gate(EbDaemonHealth *self, const EbProbeReport *probe, GError **error)
{
    const char *file = self->config_file != NULL ? self->config_file : g_getenv("ERRAND_BOX_CONFIG");

    return eb_health_rules_gate(self->rules, probe, file != NULL ? file : CONFIG_FILE, error);
}

static GSource *
every(guint64 ms, GSourceFunc func, EbDaemonHealth *self)
{
    GSource *source = g_timeout_source_new((guint)CLAMP(ms, 1, G_MAXINT));

    g_source_set_callback(source, func, self, NULL);
    g_source_attach(source, NULL);
    return source;
}

void
eb_daemon_health_attach(EbDaemonHealth *self, EbSessionManager *manager)
{
    g_return_if_fail(EB_IS_DAEMON_HEALTH(self) && self->manager == NULL);
    self->manager = g_object_ref(manager);
    self->doctor_timer = every(eb_config_get_doctor_interval(self->config), on_doctor_due, self);
    self->space_timer = every(EB_HEALTH_SPACE_S * 1000, on_space_due, self);
    apply_rules(self);
    apply_space(self);
    for (guint i = 0; self->spaces != NULL && i < self->spaces->len; i++)
        if (((EbSpace *)self->spaces->pdata[i])->level != EB_SPACE_FINE)
            free_some(self, self->spaces->pdata[i]);
    apply_report(self);
}

void
eb_daemon_health_detach(EbDaemonHealth *self)
{
    eb_clear_source(&self->doctor_timer);
    eb_clear_source(&self->space_timer);
    eb_clear_source(&self->report_timer);
    eb_clear_source(&self->suspect_timer);
    if (self->cancellable != NULL)
        g_cancellable_cancel(self->cancellable);
    self->again = FALSE;
    answer_waits(self);
    g_clear_object(&self->manager);
}

static void
eb_daemon_health_finalize(GObject *object)
{
    EbDaemonHealth *self = EB_DAEMON_HEALTH(object);

    eb_clear_source(&self->doctor_timer);
    eb_clear_source(&self->space_timer);
    eb_clear_source(&self->report_timer);
    eb_clear_source(&self->suspect_timer);
    g_clear_pointer(&self->spaces, g_ptr_array_unref);
    g_clear_error(&self->wedged);
    g_clear_object(&self->cancellable);
    g_clear_object(&self->manager);
    g_object_unref(self->worker);
    g_ptr_array_unref(self->waits);
    eb_health_rules_free(self->rules);
    g_object_unref(self->config);
    g_clear_object(&self->paths);
    g_free(self->config_file);
    g_free(self->doctor);
    G_OBJECT_CLASS(eb_daemon_health_parent_class)->finalize(object);
}

static void
eb_daemon_health_class_init(EbDaemonHealthClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_daemon_health_finalize;
}

static void
eb_daemon_health_init(EbDaemonHealth *self)
{
    self->waits = g_ptr_array_new_with_free_func(g_object_unref);
    self->worker = eb_worker_new("eb-space", 4);
}

EbDaemonHealth *
eb_daemon_health_new(EbConfig *config, EbPaths *paths, const char *config_file, const char *doctor)
{
    EbDaemonHealth *self = g_object_new(EB_TYPE_DAEMON_HEALTH, NULL);

    self->config = g_object_ref(config);
    g_set_object(&self->paths, paths);
    self->config_file = g_strdup(config_file);
    self->doctor = g_strdup(doctor);
    self->rules = eb_health_rules_new(eb_config_get_accept_degraded(config));
    return self;
}
