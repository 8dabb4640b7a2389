/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-launch-op.h"
#include "core/base/eb-source.h"

#include "core/session/eb-dir-lock.h"
#include "core/session/eb-guest-egress.h"
#include "core/session/eb-host-rules.h"
#include "core/session/eb-launch-plan.h"
#include "core/session/eb-project-name.h"
#include "core/session/eb-session-canary.h"

#define BROKER_DEADLINE_MS 15000
#define GUEST_DEADLINE_MS 60000
#define EXEC_DEADLINE_MS 20000
#define MODEL_DEADLINE_MS 20000
/* After a start that failed: how long the process may take to tell its exit code. */
#define DIAGNOSE_MS 3000
/* Agents with load_after_turn_unsafe lose a session that is loaded within a minute of its last turn. */
#define LOAD_PAUSE_MS 61000
#define NONCE_BYTES 32

typedef struct {
    GTask *task; /* the whole launch; each step's callback brings it along */
    EbGuest *guest;
    EbSessionRecord *record;
    gboolean fresh;
    EbLaunchState state;
    EbLaunchProgress progress;
    gpointer user_data;
    EbLaunchPlan *plan;
    EbSecret *key;
    GString *unroutable; /* (nullable): the providers that were passed over, each with why */
    guint n_unroutable;
    GBytes *block;
    EbAcpOpen how;
    GError *error; /* while the compensations run */
    GSource *timer;
    GCancellable *diagnosis;
} EbLaunchOp;

static void enter(EbLaunchOp *op, EbLaunchState state);

static void
op_free(gpointer data)
{
    EbLaunchOp *op = data;
    if (op->timer != NULL) {
        g_source_destroy(op->timer);
        g_source_unref(op->timer);
    }
    g_clear_pointer(&op->guest, eb_guest_unref);
    g_clear_pointer(&op->plan, eb_launch_plan_free);
    g_clear_pointer(&op->block, g_bytes_unref);
    g_clear_object(&op->diagnosis);
    g_clear_error(&op->error);
    eb_secret_unref(op->key);
    if (op->unroutable != NULL)
        g_string_free(op->unroutable, TRUE);
    eb_session_record_unref(op->record);
    g_free(op);
}

/* --- failure --- */

static void
on_undone(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbLaunchOp *op = user_data;
    g_autoptr(GError) error = NULL;
    if (!eb_guest_end_finish(result, &error))
        eb_warning("a start that failed left something behind: %s", error->message);
    GTask *task = op->task;
    g_task_return_error(task, g_steal_pointer(&op->error));
    g_object_unref(task);
}

static void
undo(EbLaunchOp *op)
{
    op->guest->abrupt = TRUE;
    eb_guest_end_async(op->guest, on_undone, op);
}

static void
on_exit_known(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbLaunchOp *op = user_data;
    eb_clear_source(&op->timer);
    int code = eb_exec_wait_finish(EB_EXEC(source), result, NULL);
    if (code >= 0) {
        g_autofree char *tail =
            op->guest->client != NULL ? eb_acp_client_get_stderr_tail(op->guest->client) : g_strdup("");
        g_clear_error(&op->error);
        op->error = eb_guest_explain_exit(op->guest, code, tail);
    }
    undo(op);
}

static gboolean
on_diagnosis_late(gpointer data)
{
    EbLaunchOp *op = data;
    g_clear_pointer(&op->timer, g_source_unref);
    g_cancellable_cancel(op->diagnosis);
    return G_SOURCE_REMOVE;
}

/* @error: (transfer full). An agent that went away says why by its exit code and last words. */
static void
fail(EbLaunchOp *op, GError *error)
{
    eb_error_convert(&error, NULL, NULL);
    eb_log_event(G_LOG_LEVEL_INFO, G_LOG_DOMAIN, "a session could not start", "EB_SESSION", op->guest->id, "EB_OP",
                 eb_launch_state_to_string(op->state), "EB_REASON", eb_error_get_reason(error), NULL);
    if (error->code == EB_ERROR_TIMEOUT)
        eb_log_step("launch.late", "EB_SESSION", op->guest->id);
    op->error = error;
    gboolean agent_failed = op->state >= EB_LAUNCH_EXEC && op->guest->exec != NULL &&
                            error->code != EB_ERROR_CANCELLED && error->code != EB_ERROR_TIMEOUT;
    if (!agent_failed) {
        undo(op);
        return;
    }
    op->diagnosis = g_cancellable_new();
    op->timer = g_timeout_source_new(DIAGNOSE_MS);
    g_source_set_callback(op->timer, on_diagnosis_late, op, NULL);
    g_source_attach(op->timer, g_main_context_get_thread_default());
    eb_exec_wait_async(op->guest->exec, op->diagnosis, on_exit_known, op);
}

static GCancellable *
cancellable_of(EbLaunchOp *op)
{
    return g_task_get_cancellable(op->task);
}

static guint
start_deadline(EbLaunchOp *op)
{
    guint64 startup_ms = eb_config_get_session(op->guest->parts->config)->startup_ms;
    guint64 whole_ms = MAX(startup_ms, op->guest->profile->start_timeout_ms);
    guint64 used_ms = (guint64)(g_get_monotonic_time() - op->guest->guest_us) / 1000;
    return (guint)(whole_ms > used_ms ? whole_ms - used_ms : 1);
}

/* --- the steps, last first --- */

static void
on_model_set(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbLaunchOp *op = user_data;
    GError *error = NULL;
    if (!eb_acp_client_set_model_finish(EB_ACP_CLIENT(source), result, &error)) {
        g_prefix_error(&error, "the agent %s does not take the model %s: ", op->guest->profile->name, op->plan->model);
        fail(op, error);
        return;
    }
    enter(op, EB_LAUNCH_READY);
}

static void
do_model(EbLaunchOp *op)
{
    if (op->plan->model == NULL || op->guest->profile->model_via != EB_MODEL_VIA_CONFIG) {
        enter(op, EB_LAUNCH_READY);
        return;
    }
    eb_acp_client_set_model_async(op->guest->client, op->plan->model, MODEL_DEADLINE_MS, cancellable_of(op),
                                  on_model_set, op);
}

static void
add_notice(EbGuest *guest, const char *text)
{
    char *joined = guest->notice != NULL ? g_strdup_printf("%s\n%s", guest->notice, text) : g_strdup(text);
    g_free(guest->notice);
    guest->notice = joined;
}

static void open_session(EbLaunchOp *op);

static void
on_opened(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbLaunchOp *op = user_data;
    GError *error = NULL;
    guint replayed = 0;
    char *session = eb_acp_client_open_finish(EB_ACP_CLIENT(source), result, &replayed, &error);
    if (session == NULL && op->how != EB_ACP_OPEN_NEW && error->code != EB_ERROR_CANCELLED &&
        error->code != EB_ERROR_TIMEOUT && error->code != EB_ERROR_UNAVAILABLE) {
        /* The project and what the agent wrote there are untouched; its memory of the talk is what is lost. */
        g_autofree char *why = eb_redact_set_mask(op->guest->secrets, error->message, -1);
        g_autofree char *text =
            g_strdup_printf("the agent could not continue its earlier conversation (%s); it starts a new one", why);
        add_notice(op->guest, text);
        g_clear_error(&error);
        op->how = EB_ACP_OPEN_NEW;
        open_session(op);
        return;
    }
    if (session == NULL) {
        fail(op, error);
        return;
    }
    if (op->how == EB_ACP_OPEN_LOAD && replayed == 0 && op->record->turns > 0)
        add_notice(op->guest, "the agent says it continues its earlier conversation but showed none of it");
    op->guest->agent_session = session;
    enter(op, EB_LAUNCH_MODEL);
}

static void
open_session(EbLaunchOp *op)
{
    const char *id = op->how != EB_ACP_OPEN_NEW ? op->record->agent_session : NULL;
    eb_acp_client_open_async(op->guest->client, op->how, id, EB_GUEST_WORKSPACE, start_deadline(op), cancellable_of(op),
                             on_opened, op);
}

static gboolean
on_load_pause_over(gpointer data)
{
    EbLaunchOp *op = data;
    g_clear_pointer(&op->timer, g_source_unref);
    op->guest->guest_us = g_get_monotonic_time();
    open_session(op);
    return G_SOURCE_REMOVE;
}

static void
do_open(EbLaunchOp *op)
{
    if (op->record->agent_session == NULL) {
        op->how = EB_ACP_OPEN_NEW;
        open_session(op);
        return;
    }
    gint64 since_ms = g_get_real_time() / 1000 - op->record->last_activity_ms;
    if (op->how == EB_ACP_OPEN_LOAD && op->guest->profile->load_after_turn_unsafe && since_ms >= 0 &&
        since_ms < LOAD_PAUSE_MS) {
        op->timer = g_timeout_source_new((guint)(LOAD_PAUSE_MS - since_ms));
        g_source_set_callback(op->timer, on_load_pause_over, op, NULL);
        g_source_attach(op->timer, g_main_context_get_thread_default());
        return;
    }
    open_session(op);
}

static void
on_initialized(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbLaunchOp *op = user_data;
    GError *error = NULL;
    const EbAcpAgentInfo *info = eb_acp_client_initialize_finish(EB_ACP_CLIENT(source), result, &error);
    if (info == NULL) {
        fail(op, error);
        return;
    }
    op->guest->agent_name = eb_log_escape(info->name != NULL ? info->name : op->guest->profile->name, -1, 80);
    op->guest->agent_version = eb_log_escape(info->version != NULL ? info->version : "", -1, 80);
    op->how = EB_ACP_OPEN_NEW;
    if (op->record->agent_session != NULL) {
        if (info->load)
            op->how = EB_ACP_OPEN_LOAD;
        else if (info->resume)
            op->how = EB_ACP_OPEN_RESUME;
        else
            add_notice(op->guest, "this agent cannot continue an earlier conversation; it starts a new one");
    }
    enter(op, EB_LAUNCH_OPEN);
}

static void
do_initialize(EbLaunchOp *op)
{
    EbExec *exec = op->guest->exec;
    op->guest->client = eb_acp_client_new(eb_exec_get_stdin(exec), eb_exec_get_stdout(exec), eb_exec_get_stderr(exec));
    eb_acp_client_initialize_async(op->guest->client, start_deadline(op), cancellable_of(op), on_initialized, op);
}

static void
on_block_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbLaunchOp *op = user_data;
    g_autoptr(GError) error = NULL;
    gboolean written = g_output_stream_write_all_finish(G_OUTPUT_STREAM(source), result, NULL, &error);
    g_clear_pointer(&op->block, g_bytes_unref);
    if (!written) {
        /* The process is gone or never was; its words are on stderr, which the client reads. */
        op->guest->client = eb_acp_client_new(eb_exec_get_stdin(op->guest->exec), eb_exec_get_stdout(op->guest->exec),
                                              eb_exec_get_stderr(op->guest->exec));
        fail(op, eb_error_new(EB_ERROR_UNAVAILABLE, "agent.start", "the launcher in the guest took no input: %s",
                              error->message));
        return;
    }
    enter(op, EB_LAUNCH_INITIALIZE);
}

static void
on_exec(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbLaunchOp *op = user_data;
    GError *error = NULL;
    op->guest->exec = eb_container_backend_exec_finish(EB_CONTAINER_BACKEND(source), result, &error);
    if (op->guest->exec == NULL) {
        fail(op, error);
        return;
    }
    eb_guest_push_agent(op->guest);
    eb_log_step("launch.block", "EB_SESSION", op->guest->id);
    gsize length = 0;
    const void *bytes = g_bytes_get_data(op->block, &length);
    g_output_stream_write_all_async(eb_exec_get_stdin(op->guest->exec), bytes, length, G_PRIORITY_DEFAULT,
                                    cancellable_of(op), on_block_written, op);
}

static void
do_exec(EbLaunchOp *op)
{
    GError *error = NULL;
    EbSessionParts *parts = op->guest->parts;
    EbSessionEnv env = eb_launch_plan_env(op->plan, parts->config, op->guest->nonce);
    env.canary = op->guest->canary;
    op->block = eb_session_env_bytes(&env, &error);
    g_autoptr(EbExecSpec) spec = op->block != NULL ? eb_launch_plan_exec(op->plan, parts->config, &error) : NULL;
    if (spec == NULL) {
        fail(op, error);
        return;
    }
    eb_container_backend_exec_async(parts->backend, op->guest->instance, spec, EXEC_DEADLINE_MS, cancellable_of(op),
                                    on_exec, op);
}

static void
on_launched(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbLaunchOp *op = user_data;
    GError *error = NULL;
    if (!eb_container_backend_launch_finish(EB_CONTAINER_BACKEND(source), result, &error)) {
        fail(op, error);
        return;
    }
    op->guest->guest_us = g_get_monotonic_time();
    enter(op, EB_LAUNCH_EXEC);
}

static void
do_guest(EbLaunchOp *op)
{
    g_autoptr(EbContainerSpec) spec = eb_launch_plan_spec(op->guest);
    /* Pushed before: a backend that fails half-way may have left something, and ending what is not there succeeds. */
    eb_guest_push_instance(op->guest);
    eb_container_backend_launch_async(op->guest->parts->backend, spec, GUEST_DEADLINE_MS, cancellable_of(op),
                                      on_launched, op);
}

static void
on_broker(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbLaunchOp *op = user_data;
    GError *error = NULL;
    op->guest->broker = op->guest->parts->broker->start_finish(result, &error);
    if (op->guest->broker == NULL) {
        fail(op, error);
        return;
    }
    eb_guest_listen_egress(op->guest);
    if (EB_IS_BROKER_CTL(op->guest->broker) && op->guest->parts->budget != NULL)
        op->guest->budget = eb_budget_desk_serve(op->guest->parts->budget, op->guest->broker, op->guest->id);
    eb_guest_push_broker(op->guest);
    enter(op, EB_LAUNCH_GUEST);
}

static void
do_broker(EbLaunchOp *op)
{
    EbGuest *guest = op->guest;
    guest->nonce = eb_secret_new_random("nonce", NONCE_BYTES);
    eb_redact_set_add(guest->secrets, guest->nonce);
    guest->rules = eb_launch_plan_rules(op->plan, guest->parts->config, guest->id, op->key, guest->nonce);
    g_autoptr(GPtrArray) none = eb_host_once_list_new();
    eb_host_rules_set(guest->rules, eb_config_get_session(guest->parts->config), op->record->hosts, none);
    if (eb_config_get_session(guest->parts->config)->canary) {
        guest->canary = eb_canary_new(op->plan->provider != NULL ? op->plan->provider->kind : NULL);
        guest->rules->canary = eb_secret_ref(guest->canary);
        eb_redact_set_add(guest->secrets, guest->canary);
    }
    guest->parts->broker->start_async(guest->parts->paths, guest->dirs->run, guest->rules, BROKER_DEADLINE_MS,
                                      cancellable_of(op), on_broker, op);
}

static void
make_dirs(GTask *task)
{
    EbLaunchOp *op = g_task_get_task_data(task);
    EbGuest *guest = op->guest;
    const EbSessionConfig *config = eb_config_get_session(guest->parts->config);
    gboolean volumes = g_strcmp0(config->workspace, "volume") == 0;
    EbSessionDirsPlan plan = {
        .state_root = guest->parts->state_root,
        .project_root = volumes ? NULL : eb_config_get_project_root(guest->parts->config),
        .id = guest->id,
        .project = guest->project,
        .launch = guest->parts->launch,
        .relay = guest->parts->relay,
        .uid = guest->parts->uid,
        .gid = guest->parts->gid,
        .resume = !op->fresh,
        .min_free = eb_config_get_min_free(guest->parts->config),
    };
    GError *error = NULL;
    EbSessionDirs *dirs = eb_session_dirs_make(&plan, &error);
    if (dirs == NULL)
        g_task_return_error(task, error);
    else
        g_task_return_pointer(task, dirs, (GDestroyNotify)eb_session_dirs_free);
}

static void
on_dirs(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbLaunchOp *op = user_data;
    GError *error = NULL;
    op->guest->dirs = g_task_propagate_pointer(G_TASK(result), &error);
    if (op->guest->dirs == NULL) {
        fail(op, error);
        return;
    }
    eb_guest_push_directories(op->guest, op->fresh);
    enter(op, EB_LAUNCH_BROKER);
}

static void
do_directories(EbLaunchOp *op)
{
    GTask *task = g_task_new(NULL, NULL, on_dirs, op);
    g_task_set_task_data(task, op, NULL); /* waits for the answer, so it outlives the job */
    eb_worker_run(op->guest->parts->disk, task, make_dirs);
}

static void
on_saved(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbLaunchOp *op = user_data;
    GError *error = NULL;
    if (!eb_session_store_finish(EB_STORE(source), result, &error)) {
        fail(op, error);
        return;
    }
    if (op->fresh)
        eb_guest_push_record(op->guest);
    enter(op, EB_LAUNCH_DIRECTORIES);
}

static void
do_record(EbLaunchOp *op)
{
    g_autoptr(EbSessionRecord) record = eb_session_record_copy(op->record);
    g_free(record->state);
    record->state = g_strdup("starting");
    g_free(record->instance);
    record->instance = g_strdup(op->guest->instance);
    g_free(record->run);
    record->run = g_strdup(op->guest->parts->run_id);
    eb_session_store_save_async(op->guest->parts->store, record, NULL, on_saved, op);
}

static void
take_lock(GTask *task)
{
    EbLaunchOp *op = g_task_get_task_data(task);
    GError *error = NULL;
    g_autofree char *name = g_strdup_printf("project-%s.lock", op->guest->project);
    EbDirLock *lock = eb_dir_lock_take(op->guest->parts->locks_dir, name, &error);
    if (lock == NULL)
        g_task_return_error(task, error);
    else
        g_task_return_pointer(task, lock, (GDestroyNotify)eb_dir_lock_release);
}

static void
on_lock(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbLaunchOp *op = user_data;
    g_autoptr(GError) error = NULL;
    EbDirLock *lock = g_task_propagate_pointer(G_TASK(result), &error);
    if (lock == NULL && error->code == EB_ERROR_LOCKED) {
        fail(op, eb_error_new(EB_ERROR_BUSY, "project.busy", "the project %s has a live session already (%s)",
                              op->guest->project, error->message));
        return;
    }
    if (lock == NULL) {
        fail(op, g_steal_pointer(&error));
        return;
    }
    eb_guest_push_lock(op->guest, lock);
    enter(op, EB_LAUNCH_RECORD);
}

static void
do_lock(EbLaunchOp *op)
{
    GTask *task = g_task_new(NULL, NULL, on_lock, op);
    g_task_set_task_data(task, op, NULL);
    eb_worker_run(op->guest->parts->disk, task, take_lock);
}

static void do_credential(EbLaunchOp *op);

/* @error: (transfer full). A provider without its key is none: another one that the agent speaks will do, and it is said. */
static void
pass_provider_over(EbLaunchOp *op, GError *error)
{
    const char *name = op->plan->provider->name;
    if (op->unroutable == NULL)
        op->unroutable = g_string_new(NULL);
    g_string_append_printf(op->unroutable, "%s%s (%s)", op->n_unroutable++ > 0 ? "; " : "", name, error->message);
    if (error->code != EB_ERROR_CANCELLED && eb_launch_plan_next_provider(op->plan, op->guest->parts->config)) {
        g_error_free(error);
        do_credential(op);
        return;
    }
    if (op->n_unroutable > 1) {
        GError *all = eb_error_new((EbErrorCode)error->code, "provider.unroutable",
                                   "no model provider of the agent %s can be used: %s", op->plan->profile->name,
                                   op->unroutable->str);
        g_error_free(error);
        error = all;
    } else {
        g_prefix_error(&error, "the key of provider %s: ", name);
    }
    fail(op, error);
}

static void
tell_unroutable(EbLaunchOp *op)
{
    if (op->unroutable == NULL)
        return;
    g_autofree char *text =
        g_strdup_printf("this session uses the model provider %s and has no settings for what cannot be used: %s",
                        op->plan->provider->name, op->unroutable->str);
    add_notice(op->guest, text);
    eb_log_event(G_LOG_LEVEL_WARNING, G_LOG_DOMAIN, text, "EB_SESSION", op->guest->id, NULL);
    op->guest->unroutable = g_strdup(op->unroutable->str);
}

static void
on_key(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbLaunchOp *op = user_data;
    GError *error = NULL;
    op->key = g_task_propagate_pointer(G_TASK(result), &error);
    if (op->key != NULL) {
        eb_redact_set_add(op->guest->secrets, op->key);
        if (!eb_broker_rules_check_key(op->key, op->plan->provider->key_name, &error))
            g_clear_pointer(&op->key, eb_secret_unref);
    }
    if (op->key == NULL) {
        pass_provider_over(op, error);
        return;
    }
    g_free(op->guest->provider);
    op->guest->provider = g_strdup(op->plan->provider->name);
    tell_unroutable(op);
    enter(op, EB_LAUNCH_LOCK);
}

static void
do_credential(EbLaunchOp *op)
{
    if (op->plan->provider == NULL) {
        enter(op, EB_LAUNCH_LOCK);
        return;
    }
    EbSessionParts *parts = op->guest->parts;
    GTask *task = g_task_new(NULL, cancellable_of(op), on_key, op);
    parts->lookup(op->plan->provider->key_name, task, parts->lookup_data);
}

static void
on_gaps(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbLaunchOp *op = user_data;
    GError *error = NULL;
    g_autofree char *gaps = NULL;
    if (eb_gap_check_run_finish(EB_GAP_CHECK(source), result, &gaps, &error) == NULL) {
        fail(op, error);
        return;
    }
    if (gaps != NULL) {
        g_autofree char *text = g_strdup_printf("NOT ENFORCED ON THIS HOST: %s", gaps);
        add_notice(op->guest, text);
    }
    enter(op, EB_LAUNCH_CREDENTIAL);
}

static void
do_check(EbLaunchOp *op)
{
    GError *error = NULL;
    EbSessionParts *parts = op->guest->parts;
    op->plan = eb_launch_plan_new(parts->config, op->record->agent, op->record->model, op->record->provider, &error);
    if (op->plan == NULL || !eb_project_name_check(op->record->project, &error)) {
        fail(op, error);
        return;
    }
    op->guest->profile = eb_agent_profile_ref(op->plan->profile);
    op->guest->model = g_strdup(op->plan->model);
    op->guest->provider = g_strdup(op->plan->provider != NULL ? op->plan->provider->name : NULL);
    eb_gap_check_run_async(parts->gaps, cancellable_of(op), on_gaps, op);
}

static void
do_ready(EbLaunchOp *op)
{
    op->guest->ready_us = g_get_monotonic_time();
    eb_guest_keep(op->guest);
    GTask *task = op->task;
    g_task_return_pointer(task, eb_guest_ref(op->guest), (GDestroyNotify)eb_guest_unref);
    g_object_unref(task);
}

static void
enter(EbLaunchOp *op, EbLaunchState state)
{
    static void (*const steps[])(EbLaunchOp *) = {do_check,       do_credential, do_lock,  do_record,
                                                  do_directories, do_broker,     do_guest, do_exec,
                                                  do_initialize,  do_open,       do_model, do_ready};
    op->state = state;
    GError *error = NULL;
    if (state != EB_LAUNCH_READY && g_cancellable_is_cancelled(cancellable_of(op))) {
        fail(op, eb_error_new(EB_ERROR_CANCELLED, "session.cancelled", "the start was cancelled"));
        return;
    }
    g_autofree char *step = g_strconcat("launch.", eb_launch_state_to_string(state), NULL);
    eb_log_step(step, "EB_SESSION", op->guest->id);
    EbSessionParts *parts = op->guest->parts;
    if (parts->step_hook != NULL && !parts->step_hook(state, parts->step_hook_data, &error)) {
        fail(op, error);
        return;
    }
    if (op->progress != NULL)
        op->progress(state, op->guest, op->user_data);
    steps[state](op);
}

static gboolean
begin(gpointer data)
{
    enter(data, EB_LAUNCH_CHECK);
    return G_SOURCE_REMOVE;
}

void
eb_launch_op_run_async(EbSessionParts *parts, const EbSessionRecord *record, gboolean fresh, EbLaunchProgress progress,
                       GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    EbLaunchOp *op = g_new0(EbLaunchOp, 1);
    op->task = g_task_new(NULL, cancellable, callback, user_data);
    g_task_set_source_tag(op->task, eb_launch_op_run_async);
    g_task_set_check_cancellable(op->task, FALSE);
    g_task_set_task_data(op->task, op, op_free);
    op->guest = eb_guest_new(parts, record->id, record->project);
    op->record = eb_session_record_copy(record);
    op->fresh = fresh;
    op->progress = progress;
    op->user_data = user_data;
    /* From the loop, so that nothing is told before this call has returned. */
    g_autoptr(GSource) source = g_idle_source_new();
    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, begin, op, NULL);
    g_source_attach(source, g_main_context_get_thread_default());
}

EbGuest *
eb_launch_op_run_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_launch_op_run_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
