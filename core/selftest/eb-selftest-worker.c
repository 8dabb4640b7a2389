/* SPDX-License-Identifier: MIT */
/* One service, killed again and again: a round begins with a service that was killed, looks at what the next start makes
 * of it, and ends with the next kill. */
#include "core/selftest/eb-selftest-private.h"

#include <signal.h>
#include <string.h>

/* Longest time until the service is there; until a step is reached; until all that was left open has been done. */
#define READY_MS 180000
#define STEP_MS 120000
#define SETTLE_MS 180000
/* Tries of one kill, where the backend takes longer for a guest than a service waits. */
#define MAX_TRIES 4
#define CALL_MS 60000
#define POLL_MS 100
/* Prompts that may be open when something new is begun. */
#define MAX_OPEN 1
/* A guest that the backend made late is looked for by the service itself a while after its start. */
#define LATE_GUEST_MS 90000

typedef struct {
    EbSelftestRun *run;
    EbSelftestService *service;
    EbSelftestExpected expected;
    guint number;
    guint n_prompts;
    char *after; /* (nullable): the last kill, not looked at yet */
} Worker;

/* --- what is wrong --- */

static void
report(Worker *self, const char *what)
{
    g_autofree char *text = g_strdup_printf("after %s: %s", self->after != NULL ? self->after : "the beginning", what);
    g_autofree char *log = eb_selftest_service_log(self->service);

    eb_selftest_run_violation(self->run, text, log);
}

static void
take_notes(Worker *self)
{
    GHashTableIter iter;
    gpointer id;

    g_hash_table_iter_init(&iter, self->service->opened);
    while (g_hash_table_iter_next(&iter, &id, NULL))
        if (!g_hash_table_contains(self->expected.fates, id))
            g_hash_table_insert(self->expected.fates, g_strdup(id), GUINT_TO_POINTER(EB_SELFTEST_MUST_BE));
    g_hash_table_iter_init(&iter, self->service->removed);
    while (g_hash_table_iter_next(&iter, &id, NULL))
        g_hash_table_replace(self->expected.fates, g_strdup(id), GUINT_TO_POINTER(EB_SELFTEST_GONE));
    g_hash_table_remove_all(self->service->opened);
    g_hash_table_remove_all(self->service->removed);
}

static EbSelftestLook *
look(Worker *self, GError **error)
{
    g_autofree char *home = eb_selftest_read_home(self->service->root);
    GHashTable *instances = eb_selftest_run_list(self->run, home, error);
    EbSelftestLook *seen = instances != NULL ? eb_selftest_look(self->service->root, instances, error) : NULL;

    eb_selftest_service_drain(self->service);
    take_notes(self);
    return seen;
}

static void
judge(Worker *self, EbSelftestMoment moment)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbSelftestLook) seen = look(self, &error);

    if (seen == NULL) {
        report(self, error->message);
        return;
    }
    self->expected.moment = moment;
    self->expected.touched = self->service->touched;
    self->expected.told = self->service->told;
    self->expected.late = self->service->late;
    g_autoptr(GPtrArray) wrong = eb_selftest_judge(seen, &self->expected);
    for (guint i = 0; i < wrong->len; i++)
        report(self, wrong->pdata[i]);
    g_mutex_lock(&self->run->lock);
    self->run->late_guests += g_hash_table_size(self->expected.stale);
    g_mutex_unlock(&self->run->lock);
}

/* --- what is said to the service --- */

static JsonObject *
params_of(const char *name, const char *value)
{
    JsonObject *object = json_object_new();

    if (name != NULL)
        json_object_set_string_member(object, name, value);
    return object;
}

/* @session: (nullable): continue it */
static void
say(Worker *self, const char *session)
{
    g_autofree char *text = g_strdup_printf("errand-%u-%u", self->number, self->n_prompts);
    g_autofree char *project = g_strdup_printf("p%u-%u", self->number, self->n_prompts++);
    JsonObject *params = params_of("text", text);

    if (session != NULL)
        json_object_set_string_member(params, "session", session);
    else
        json_object_set_string_member(params, "project", project);
    g_ptr_array_add(self->expected.prompts, eb_selftest_prompt_new(text, session));
    g_mutex_lock(&self->run->lock);
    self->run->prompts++;
    self->run->sessions += session == NULL;
    g_mutex_unlock(&self->run->lock);
    eb_selftest_service_send(self->service, "prompt", params);
}

/* What was said and is not done may be interrupted by what comes now. */
static void
excuse_all(Worker *self)
{
    for (guint i = 0; i < self->expected.prompts->len; i++)
        ((EbSelftestPrompt *)self->expected.prompts->pdata[i])->excused = TRUE;
}

/* (transfer full) */
static char *
subject_of(Worker *self, const char *step)
{
    return g_strdup(g_hash_table_lookup(self->service->marks, step));
}

/* (transfer full) (nullable): a session that a run before this one opened. */
static char *
choose_ended(Worker *self)
{
    GHashTableIter iter;
    gpointer id, fate;

    g_hash_table_iter_init(&iter, self->expected.fates);
    while (g_hash_table_iter_next(&iter, &id, &fate))
        if (GPOINTER_TO_UINT(fate) == EB_SELFTEST_MUST_BE && !g_hash_table_contains(self->service->touched, id))
            return g_strdup(id);
    return NULL;
}

/* @session: (transfer full) */
static void
ask_for(Worker *self, const char *method, char *session)
{
    g_autofree char *id = session;

    excuse_all(self);
    if (g_str_has_suffix(method, "remove"))
        g_hash_table_replace(self->expected.fates, g_strdup(id), GUINT_TO_POINTER(EB_SELFTEST_MAY_BE));
    eb_selftest_service_send(self->service, method, params_of("id", id));
}

/* --- a round --- */

static gboolean
begin_life(Worker *self)
{
    g_autoptr(GError) error = NULL;

    if (eb_selftest_service_start(self->service, &error))
        return TRUE;
    report(self, error->message);
    return FALSE;
}

static gboolean
never(EbSelftestService *service, gpointer data)
{
    return FALSE;
}

/* A step that comes once a prompt, before there is a session. */
static gboolean
opens_session(const EbSelftestTarget *target)
{
    return g_str_has_prefix(target->step, "message.");
}

static gboolean
is_ready(EbSelftestService *service, gpointer data)
{
    return service->ready;
}

/* A service that takes no sessions has no steps to be killed at. */
static gboolean
is_on_hold(Worker *self)
{
    g_autoptr(JsonNode) status =
        eb_selftest_service_call(self->service, "status", params_of(NULL, NULL), CALL_MS, NULL);
    const char *why = eb_json_get_string(eb_json_get_object(eb_json_node_object(status), "health"), "hold");

    return why != NULL && eb_selftest_run_refuse(self->run, why);
}

/* Up again, and looked at. */
static gboolean
come_up(Worker *self)
{
    if (!begin_life(self))
        return FALSE;
    if (!eb_selftest_service_wait(self->service, is_ready, NULL, READY_MS)) {
        const char *last = g_queue_peek_tail(&self->service->lines);
        if (!g_cancellable_is_cancelled(self->run->cancellable) &&
            !(self->service->dead && eb_selftest_run_refuse(self->run, last != NULL ? last : "it says nothing")))
            report(self, self->service->dead ? "the service ended instead of starting"
                                             : "the service did not come up in time");
        return FALSE;
    }
    gint64 took_us = g_get_monotonic_time() - self->service->started_us;
    if (is_on_hold(self))
        return FALSE;
    eb_selftest_run_started(self->run, (guint)(took_us / 1000), self->after);
    judge(self, EB_SELFTEST_RUNNING);
    return TRUE;
}

typedef struct {
    const char *step;
    const char *session;
} Place;

static gboolean
is_at(EbSelftestService *service, gpointer data)
{
    const Place *place = data;

    return g_strcmp0(g_hash_table_lookup(service->marks, place->step), place->session) == 0;
}

/*
 * Says something new and waits until its session has come to @step. Others have been there before in this life: theirs is
 * not the mark that is meant.
 * Returns: (transfer full) (nullable): the session
 */
static char *
say_up_to(Worker *self, const char *step)
{
    eb_selftest_service_drain(self->service);
    g_hash_table_remove(self->service->marks, "message.given");
    say(self, NULL);
    if (!eb_selftest_service_wait_mark(self->service, "message.given", STEP_MS))
        return NULL;
    g_autofree char *session = subject_of(self, "message.given");
    Place place = {step, session};
    return eb_selftest_service_wait(self->service, is_at, &place, STEP_MS) ? g_steal_pointer(&session) : NULL;
}

/* FALSE: there is nothing to stop, remove or continue: make it first. */
static gboolean
bring_to(Worker *self, const char *step)
{
    /* What the kill before left open is taken up by the service itself. */
    if (g_hash_table_size(self->service->touched) == 0)
        say(self, NULL);
    return eb_selftest_service_wait_mark(self->service, step, STEP_MS);
}

/* (transfer full) (nullable) */
static char *
make_ended(Worker *self)
{
    char *ended = choose_ended(self);

    if (ended != NULL)
        return ended;
    self->service->answers = TRUE;
    if (!bring_to(self, "turn.settled"))
        return NULL;
    take_notes(self);
    g_autofree char *session = subject_of(self, "turn.settled");
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) answer =
        eb_selftest_service_call(self->service, "sessions.stop", params_of("id", session), CALL_MS, &error);
    return answer != NULL ? g_steal_pointer(&session) : NULL;
}

static gboolean
act(Worker *self, const EbSelftestKill *kill)
{
    const EbSelftestTarget *target = kill->target;
    EbSelftestService *service = self->service;
    g_autofree char *session = NULL;

    switch (target->way) {
    case EB_SELFTEST_PROMPT:
        service->answers = TRUE;
        eb_selftest_service_arm(service, target->step, kill->delay_us, FALSE);
        say(self, NULL);
        return TRUE;
    case EB_SELFTEST_CONTINUE:
        session = make_ended(self);
        service->answers = TRUE;
        eb_selftest_service_arm(service, target->step, kill->delay_us, FALSE);
        if (session != NULL)
            say(self, session);
        return session != NULL;
    case EB_SELFTEST_ABORT:
    case EB_SELFTEST_STOP:
        /* Of a prompt that somebody stands behind: nobody else is asked, and the turn would go on. */
        session = say_up_to(self, target->way == EB_SELFTEST_ABORT ? "launch.exec" : "turn.question");
        if (session == NULL)
            return FALSE;
        eb_selftest_service_arm(service, target->step, kill->delay_us, FALSE);
        ask_for(self, "sessions.stop", g_steal_pointer(&session));
        return TRUE;
    case EB_SELFTEST_REMOVE:
        service->answers = TRUE;
        if (!bring_to(self, "turn.settled"))
            return FALSE;
        eb_selftest_service_arm(service, target->step, kill->delay_us, FALSE);
        ask_for(self, "sessions.remove", subject_of(self, "turn.settled"));
        return TRUE;
    case EB_SELFTEST_STOP_ENDED:
    case EB_SELFTEST_REMOVE_ENDED:
        session = make_ended(self);
        if (session == NULL)
            return FALSE;
        eb_selftest_service_arm(service, target->step, kill->delay_us, FALSE);
        ask_for(self, target->way == EB_SELFTEST_STOP_ENDED ? "sessions.stop" : "sessions.remove",
                g_steal_pointer(&session));
        return TRUE;
    case EB_SELFTEST_CLOSE:
        if (!bring_to(self, "turn.question"))
            return FALSE;
        eb_selftest_service_arm(service, target->step, kill->delay_us, FALSE);
        excuse_all(self);
        eb_child_kill(service->child, SIGTERM);
        return TRUE;
    default:
        return FALSE;
    }
}

/* What the service that is dead now takes up again by itself when it starts. */
static guint
count_open(Worker *self)
{
    g_autoptr(EbSelftestLook) seen =
        eb_selftest_look(self->service->root, g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free), NULL);
    guint open = 0;

    for (guint i = 0; seen != NULL && i < seen->messages->len; i++)
        open += strcmp(((EbSelftestMessage *)seen->messages->pdata[i])->state, "received") == 0;
    return open;
}

/* Its launch begins with the start, so the kill is armed before: what it left is looked at when it stands still. */
static gboolean
kill_what_is_taken_up(Worker *self, const EbSelftestKill *kill)
{
    if (!begin_life(self))
        return FALSE;
    self->service->answers = TRUE;
    eb_selftest_service_arm(self->service, kill->target->step, kill->delay_us, TRUE);
    if (!eb_selftest_service_wait_frozen(self->service, READY_MS))
        return FALSE;
    judge(self, EB_SELFTEST_RUNNING);
    eb_selftest_service_kill_frozen(self->service);
    return TRUE;
}

/* Several at once would all be launched with every start. */
static void
finish_open(Worker *self, guint open, guint allowed)
{
    gint64 until_us = g_get_monotonic_time() + STEP_MS * G_GINT64_CONSTANT(1000);

    self->service->answers = TRUE;
    while (open > allowed && g_get_monotonic_time() < until_us && !self->service->dead &&
           !g_cancellable_is_cancelled(self->run->cancellable)) {
        eb_selftest_service_wait(self->service, never, NULL, POLL_MS);
        open = count_open(self);
    }
    self->service->answers = FALSE;
}

static gboolean
begin(Worker *self, const EbSelftestKill *kill)
{
    const EbSelftestTarget *target = kill->target;
    guint open = count_open(self);

    if (target->way == EB_SELFTEST_START) {
        gboolean begun = begin_life(self);
        eb_selftest_service_arm(self->service, target->step, kill->delay_us, FALSE);
        return begun;
    }
    if (target->way == EB_SELFTEST_PROMPT && open > 0 && !opens_session(target))
        return kill_what_is_taken_up(self, kill);
    if (!come_up(self))
        return FALSE;
    /* Where what comes of another session would be taken for what comes of the one that is meant. */
    gboolean alone =
        target->way == EB_SELFTEST_ABORT || target->way == EB_SELFTEST_STOP || target->way == EB_SELFTEST_CLOSE;
    finish_open(self, open, alone ? 0 : MAX_OPEN);
    return act(self, kill);
}

/* FALSE also when the service never came to the step, because the backend was slower than its deadlines. */
static gboolean
try_kill(Worker *self, const EbSelftestKill *kill, gboolean *missed)
{
    guint late = g_hash_table_size(self->service->late);
    gboolean killed = begin(self, kill) && eb_selftest_service_wait_killed(self->service, STEP_MS);

    *missed = !killed && g_hash_table_size(self->service->late) > late;
    return killed;
}

static void
play(Worker *self, const EbSelftestKill *kill)
{
    const EbSelftestTarget *target = kill->target;
    gboolean missed = FALSE, killed = try_kill(self, kill, &missed);

    for (guint tries = 1; missed && tries < MAX_TRIES && !g_cancellable_is_cancelled(self->run->cancellable); tries++) {
        eb_selftest_run_missed(self->run);
        eb_selftest_service_end(self->service, SIGKILL, 0, NULL);
        take_notes(self);
        killed = try_kill(self, kill, &missed);
    }
    if (g_cancellable_is_cancelled(self->run->cancellable))
        return;
    take_notes(self);
    if (killed) {
        eb_selftest_run_killed(self->run, target);
    } else {
        g_autofree char *text =
            g_strdup_printf("step %s of \"%s\" was never seen", target->step, eb_selftest_way_to_string(target->way));
        report(self, text);
    }
    g_free(self->after);
    self->after = g_strdup_printf("kill %u at %s + %u us of \"%s\"", kill->number, target->step, kill->delay_us,
                                  eb_selftest_way_to_string(target->way));
}

/* --- the end --- */

static gboolean
is_settled(Worker *self)
{
    g_autoptr(EbSelftestLook) seen = look(self, NULL);

    for (guint i = 0; seen != NULL && i < seen->messages->len; i++)
        if (strcmp(((EbSelftestMessage *)seen->messages->pdata[i])->state, "done") != 0)
            return FALSE;
    return seen != NULL;
}

/* All that was left open is done by the service by itself. */
static void
settle(Worker *self)
{
    gint64 until_us = g_get_monotonic_time() + SETTLE_MS * G_GINT64_CONSTANT(1000);

    self->service->answers = TRUE;
    while (!is_settled(self)) {
        if (g_get_monotonic_time() > until_us || self->service->dead) {
            report(self, "what was said is still not done");
            return;
        }
        eb_selftest_service_wait(self->service, never, NULL, POLL_MS);
    }
    judge(self, EB_SELFTEST_RUNNING);
}

static void
remove_all(Worker *self)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) answer =
        eb_selftest_service_call(self->service, "sessions.list", params_of(NULL, NULL), CALL_MS, &error);
    JsonArray *sessions = eb_json_get_array(eb_json_node_object(answer), "sessions");

    if (answer == NULL)
        report(self, error->message);
    for (guint i = 0; sessions != NULL && i < json_array_get_length(sessions); i++) {
        const char *id = eb_json_get_string(eb_json_array_object(sessions, i), "id");
        g_autoptr(GError) failed = NULL;
        g_autoptr(JsonNode) removed = id != NULL ? eb_selftest_service_call(self->service, "sessions.remove",
                                                                            params_of("id", id), CALL_MS, &failed)
                                                 : NULL;
        if (failed != NULL) {
            g_autofree char *text = g_strdup_printf("session %s cannot be removed: %s", id, failed->message);
            report(self, text);
        }
    }
}

/* A guest that came to be late is the running service's to find. */
static void
wait_for_guests(Worker *self)
{
    gint64 until_us = g_get_monotonic_time() + LATE_GUEST_MS * G_GINT64_CONSTANT(1000);

    while (g_get_monotonic_time() < until_us && !self->service->dead) {
        g_autoptr(EbSelftestLook) seen = look(self, NULL);
        if (seen != NULL && g_hash_table_size(seen->instances) == 0)
            return;
        eb_selftest_service_wait(self->service, never, NULL, POLL_MS);
    }
}

static void
finish(Worker *self)
{
    int status = 0;

    if (!come_up(self))
        return;
    settle(self);
    remove_all(self);
    wait_for_guests(self);
    if (!eb_selftest_service_end(self->service, SIGTERM, CALL_MS, &status) || status != 0) {
        g_autofree char *how = eb_child_describe_status(status);
        g_autofree char *text = g_strdup_printf("told to end, the service %s", how);
        report(self, text);
    }
    excuse_all(self);
    g_hash_table_remove_all(self->service->touched);
    judge(self, EB_SELFTEST_OVER);
}

gpointer
eb_selftest_worker(gpointer data)
{
    EbSelftestJob *job = data;
    g_autoptr(GMainContext) context = g_main_context_new();
    EbSelftestKill kill;

    g_main_context_push_thread_default(context);
    Worker self = {.run = job->run, .number = job->number};
    self.service = eb_selftest_service_new(job->run, job->root, job->config);
    self.expected.fates = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self.expected.prompts = g_ptr_array_new_with_free_func((GDestroyNotify)eb_selftest_prompt_free);
    self.expected.stale = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    while (!g_cancellable_is_cancelled(job->run->cancellable) && eb_selftest_plan_next(job->run->plan, &kill)) {
        play(&self, &kill);
        eb_selftest_service_end(self.service, SIGKILL, 0, NULL);
    }
    if (!g_cancellable_is_cancelled(job->run->cancellable))
        finish(&self);
    eb_selftest_service_end(self.service, SIGKILL, 0, NULL);
    eb_selftest_service_free(self.service);
    g_hash_table_unref(self.expected.fates);
    g_ptr_array_unref(self.expected.prompts);
    g_hash_table_unref(self.expected.stale);
    g_free(self.after);
    g_main_context_pop_thread_default(context);
    return NULL;
}
