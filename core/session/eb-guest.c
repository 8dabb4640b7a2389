/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-guest.h"
#include "core/base/eb-source.h"

#include "core/session/eb-dir-lock.h"
#include "core/state/eb-session-store.h"

#include <signal.h>

#define STOP_DEADLINE_MS 30000
#define BROKER_DEADLINE_MS 10000
#define CLEANUP_DEADLINE_MS 10000
#define STORE_DEADLINE_MS 20000
#define DISK_DEADLINE_MS (6 * 60 * 1000)

EbGuest *
eb_guest_new(EbSessionParts *parts, const char *id, const char *project)
{
    EbGuest *self = g_new0(EbGuest, 1);
    self->ref_count = 1;
    self->parts = eb_session_parts_ref(parts);
    self->id = g_strdup(id);
    self->project = g_strdup(project);
    /* A name of its own each time: the daemon may still be making or removing the guest that a killed run had asked for,
     * and what it does to one would meet the other. */
    self->instance = g_strdup_printf("eb-%s-%05x", id, (guint)g_random_int_range(0, 1 << 20));
    self->origin = "cold";
    self->secrets = eb_redact_set_copy(parts->secrets);
    self->undo = eb_undo_new();
    self->begun_us = g_get_monotonic_time();
    return self;
}

EbGuest *
eb_guest_ref(EbGuest *self)
{
    g_atomic_int_inc(&self->ref_count);
    return self;
}

void
eb_guest_unref(EbGuest *self)
{
    if (self == NULL || !g_atomic_int_dec_and_test(&self->ref_count))
        return;
    g_clear_object(&self->client);
    g_clear_object(&self->exec);
    g_clear_object(&self->broker);
    g_clear_pointer(&self->rules, eb_broker_rules_free);
    g_clear_pointer(&self->dirs, eb_session_dirs_free);
    g_clear_pointer(&self->profile, eb_agent_profile_unref);
    eb_secret_unref(self->nonce);
    eb_secret_unref(self->canary);
    eb_redact_set_unref(self->secrets);
    eb_undo_free(self->undo);
    g_free(self->id);
    g_free(self->project);
    g_free(self->instance);
    g_free(self->agent_session);
    g_free(self->agent_name);
    g_free(self->agent_version);
    g_free(self->notice);
    g_free(self->provider);
    g_free(self->unroutable);
    g_free(self->model);
    eb_session_parts_unref(self->parts);
    g_free(self);
}

/* Compensations borrow the guest: eb_guest_end_async() holds it while they run, and what outlives a deadline holds
 * what it needs by itself. */

/* --- the project's lock --- */

static void
release_in_worker(GTask *task)
{
    eb_dir_lock_release(g_task_get_task_data(task));
    g_task_return_boolean(task, TRUE);
}

typedef struct {
    EbWorker *disk;
    gpointer lock;
} EbHeldLock;

static void
held_lock_free(gpointer data)
{
    EbHeldLock *held = data;
    eb_dir_lock_release(held->lock);
    g_object_unref(held->disk);
    g_free(held);
}

static void
undo_lock(gpointer data, GTask *task)
{
    EbHeldLock *held = data;
    g_task_set_task_data(task, g_steal_pointer(&held->lock), NULL);
    eb_worker_run(held->disk, task, release_in_worker);
}

void
eb_guest_push_lock(EbGuest *self, gpointer lock)
{
    EbHeldLock *held = g_new0(EbHeldLock, 1);
    held->disk = g_object_ref(self->parts->disk);
    held->lock = lock;
    eb_undo_push(self->undo, "lock", DISK_DEADLINE_MS, undo_lock, held, held_lock_free);
}

/* --- the record of a session that never became one --- */

static void
on_record_removed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    GError *error = NULL;
    if (eb_session_store_finish(EB_STORE(source), result, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

static void
undo_record(gpointer data, GTask *task)
{
    EbGuest *self = data;
    eb_session_store_remove_async(self->parts->store, self->id, NULL, on_record_removed, task);
}

void
eb_guest_push_record(EbGuest *self)
{
    eb_undo_push(self->undo, "record", STORE_DEADLINE_MS, undo_record, self, NULL);
}

/* --- directories --- */

typedef struct {
    char *state_root, *project_root, *id, *project;
    gboolean whole;
} EbDirsRemoval;

static void
removal_free(gpointer data)
{
    EbDirsRemoval *removal = data;
    g_free(removal->state_root);
    g_free(removal->project_root);
    g_free(removal->id);
    g_free(removal->project);
    g_free(removal);
}

static void
remove_in_worker(GTask *task)
{
    EbDirsRemoval *removal = g_task_get_task_data(task);
    GError *error = NULL;
    gboolean ok = removal->whole ? eb_session_dirs_remove(removal->state_root, removal->id, &error)
                                 : eb_session_dirs_remove_run(removal->state_root, removal->id, &error);
    if (removal->project != NULL)
        eb_session_dirs_remove_empty_project(removal->project_root, removal->project);
    if (ok)
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

static void
start_removal(EbGuest *self, gboolean whole, gboolean project, GTask *task)
{
    EbDirsRemoval *removal = g_new0(EbDirsRemoval, 1);
    removal->state_root = g_strdup(self->parts->state_root);
    removal->id = g_strdup(self->id);
    removal->whole = whole;
    if (project) {
        removal->project_root = g_strdup(eb_config_get_project_root(self->parts->config));
        removal->project = g_strdup(self->project);
    }
    g_task_set_task_data(task, removal, removal_free);
    eb_worker_run(self->parts->disk, task, remove_in_worker);
}

static void
undo_directories(gpointer data, GTask *task)
{
    EbGuest *self = data;
    start_removal(self, TRUE, self->dirs != NULL && self->dirs->made_project, task);
}

static void
undo_run(gpointer data, GTask *task)
{
    start_removal(data, FALSE, FALSE, task);
}

void
eb_guest_push_directories(EbGuest *self, gboolean fresh)
{
    if (fresh)
        eb_undo_push(self->undo, "directories", DISK_DEADLINE_MS, undo_directories, self, NULL);
    eb_undo_push(self->undo, "run directory", DISK_DEADLINE_MS, undo_run, self, NULL);
}

/* --- the broker --- */

static void
on_broker_stopped(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    const EbBrokerOps *ops = g_task_get_task_data(task);
    GError *error = NULL;
    if (ops->stop_finish(source, result, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

static void
undo_broker(gpointer data, GTask *task)
{
    EbGuest *self = data;
    g_task_set_task_data(task, (gpointer)self->parts->broker, NULL);
    self->parts->broker->stop_async(self->broker, NULL, on_broker_stopped, task);
}

void
eb_guest_push_broker(EbGuest *self)
{
    eb_undo_push(self->undo, "broker", BROKER_DEADLINE_MS, undo_broker, self, NULL);
}

/* --- the instance --- */

static void
on_instance_stopped(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    GError *error = NULL;
    if (eb_container_backend_stop_finish(EB_CONTAINER_BACKEND(source), result, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

static void
undo_instance(gpointer data, GTask *task)
{
    EbGuest *self = data;
    /* The agent was ended before, and the directories it wrote are the host's: nothing is lost by force. */
    eb_container_backend_stop_async(self->parts->backend, self->instance, EB_STOP_FORCE | EB_STOP_DESTROY, 0,
                                    STOP_DEADLINE_MS, NULL, on_instance_stopped, task);
}

void
eb_guest_push_instance(EbGuest *self)
{
    eb_undo_push(self->undo, "guest", STOP_DEADLINE_MS + 5000, undo_instance, self, NULL);
}

/* --- the agent: end of its input, then TERM to the launcher, then the guest goes --- */

typedef struct {
    EbExec *exec;
    EbAcpClient *client;
    GCancellable *cancellable;
    GSource *timer;
    guint term_ms;
    gboolean termed;
} EbAgentEnd;

/* A turn is only just over. */
typedef struct {
    EbGuest *guest;
    GTask *task;
} EbSettling;

static void
settling_free(gpointer data)
{
    EbSettling *settling = data;
    eb_guest_unref(settling->guest);
    g_object_unref(settling->task);
    g_free(settling);
}

static void
agent_end_free(gpointer data)
{
    EbAgentEnd *end = data;
    if (end->timer != NULL) {
        g_source_destroy(end->timer);
        g_source_unref(end->timer);
    }
    g_clear_object(&end->client);
    g_clear_object(&end->exec);
    g_clear_object(&end->cancellable);
    g_free(end);
}

static gboolean
on_agent_late(gpointer data)
{
    GTask *task = G_TASK(data);
    EbAgentEnd *end = g_task_get_task_data(task);
    g_clear_pointer(&end->timer, g_source_unref);
    if (end->termed) {
        g_cancellable_cancel(end->cancellable);
        return G_SOURCE_REMOVE;
    }
    end->termed = TRUE;
    g_autoptr(GError) error = NULL;
    if (!eb_exec_send_signal(end->exec, SIGTERM, &error))
        eb_debug("the agent could not be told to end: %s", error->message);
    end->timer = g_timeout_source_new(end->term_ms);
    g_source_set_callback(end->timer, on_agent_late, task, NULL);
    g_source_attach(end->timer, g_main_context_get_thread_default());
    return G_SOURCE_REMOVE;
}

static void
on_agent_ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    eb_exec_wait_finish(EB_EXEC(source), result, NULL);
    /* An agent that lingers is no failure: its guest ends now and the agent with it. */
    EbAgentEnd *end = g_task_get_task_data(task);
    eb_clear_source(&end->timer);
    g_task_return_boolean(task, TRUE);
}

static void
close_agent(EbGuest *self, GTask *task)
{
    if (self->client != NULL)
        eb_acp_client_close(self->client);
    if (self->abrupt) {
        g_task_return_boolean(task, TRUE);
        g_object_unref(task);
        return;
    }
    guint64 grace_ms = eb_config_get_session(self->parts->config)->grace_ms;
    EbAgentEnd *end = g_new0(EbAgentEnd, 1);
    end->exec = g_object_ref(self->exec);
    end->cancellable = g_cancellable_new();
    end->term_ms = (guint)MIN(self->profile->term_ms > 0 ? self->profile->term_ms : 3000, grace_ms);
    end->timer = g_timeout_source_new((guint)MIN(self->profile->eof_ms > 0 ? self->profile->eof_ms : 3000, grace_ms));
    g_task_set_task_data(task, end, agent_end_free);
    g_source_set_callback(end->timer, on_agent_late, task, NULL);
    g_source_attach(end->timer, g_main_context_get_thread_default());
    eb_exec_wait_async(self->exec, end->cancellable, on_agent_ended, task);
}

static gboolean
on_settled(gpointer data)
{
    EbSettling *settling = data;
    close_agent(settling->guest, g_object_ref(settling->task));
    return G_SOURCE_REMOVE;
}

static void
undo_agent(gpointer data, GTask *task)
{
    EbGuest *self = data;
    gint64 since_ms = (g_get_monotonic_time() - self->turn_over_us) / 1000;
    gint64 settle_ms = self->profile != NULL && !self->abrupt && self->turn_over_us > 0
                           ? (gint64)self->profile->settle_ms - since_ms
                           : 0;
    if (settle_ms <= 0) {
        close_agent(self, task);
        return;
    }
    EbSettling *settling = g_new0(EbSettling, 1);
    settling->guest = eb_guest_ref(self);
    settling->task = task;
    g_autoptr(GSource) timer = g_timeout_source_new((guint)settle_ms);
    g_source_set_callback(timer, on_settled, settling, settling_free);
    g_source_attach(timer, g_main_context_get_thread_default());
}

void
eb_guest_push_agent(EbGuest *self)
{
    guint64 grace_ms = eb_config_get_session(self->parts->config)->grace_ms;
    eb_undo_push(self->undo, "agent", (guint)(2 * grace_ms) + 5000, undo_agent, self, NULL);
}

/* --- files of further uids --- */

static void
on_cleaned(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    GError *error = NULL;
    int code = eb_exec_wait_finish(EB_EXEC(source), result, &error);
    if (error != NULL)
        g_task_return_error(task, error);
    else if (code != 0)
        g_task_return_error(task, eb_error_new(EB_ERROR_FAILED, "guest.cleanup", "chown ended with code %d", code));
    else
        g_task_return_boolean(task, TRUE);
}

static void
on_cleanup_started(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    GError *error = NULL;
    EbExec *exec = eb_container_backend_exec_finish(EB_CONTAINER_BACKEND(source), result, &error);
    if (exec == NULL) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    g_task_set_task_data(task, exec, g_object_unref);
    eb_exec_wait_async(exec, NULL, on_cleaned, task);
}

static void
undo_ownership(gpointer data, GTask *task)
{
    EbGuest *self = data;
    const char *const argv[] = {"/bin/chown", "-hR", "--", "1000:1000", "/state", NULL};
    g_autoptr(EbExecSpec) spec = eb_exec_spec_new(argv);
    eb_container_backend_exec_async(self->parts->backend, self->instance, spec, CLEANUP_DEADLINE_MS, NULL,
                                    on_cleanup_started, task);
}

void
eb_guest_push_cleanup(EbGuest *self)
{
    eb_undo_push(self->undo, "ownership of files", CLEANUP_DEADLINE_MS, undo_ownership, self, NULL);
}

/* --- all of it --- */

void
eb_guest_keep(EbGuest *self)
{
    eb_undo_drop(self->undo, "directories");
    eb_undo_drop(self->undo, "record");
}

static void
on_undone(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    EbGuest *self = g_task_get_task_data(task);
    GError *error = NULL;
    /* A call the agent never answered would hold the client for ever. */
    if (self->client != NULL)
        eb_acp_client_agent_ended(self->client, "was ended with its guest");
    if (eb_undo_run_finish(result, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

void
eb_guest_end_async(EbGuest *self, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(NULL, NULL, callback, user_data);
    g_task_set_source_tag(task, eb_guest_end_async);
    g_task_set_task_data(task, eb_guest_ref(self), (GDestroyNotify)eb_guest_unref);
    eb_undo_run_async(self->undo, on_undone, task);
}

gboolean
eb_guest_end_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_guest_end_async), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

GError *
eb_guest_explain_exit(EbGuest *self, int code, const char *stderr_tail)
{
    g_autofree char *masked = eb_redact_set_mask(self->secrets, stderr_tail != NULL ? stderr_tail : "", -1);
    g_strstrip(masked);
    const char *line = strrchr(masked, '\n');
    g_autofree char *last = eb_log_escape(line != NULL ? line + 1 : masked, -1, 300);
    const char *agent = self->profile->name;
    const EbSessionConfig *config = eb_config_get_session(self->parts->config);
    /* The launcher's last words for a command that is in no directory, or went away: guest/PROTOCOL.md promises them. */
    gboolean absent = code == 125 && (strstr(last, "is in no directory of PATH") != NULL ||
                                      (strstr(last, "cannot run ") != NULL && strstr(last, "No such file") != NULL));
    if (absent)
        return eb_error_new(
            EB_ERROR_NOT_FOUND, "agent.not-installed",
            "the agent %s is not installed in the guest image: there is no %s (choose another agent, or "
            "put it in with errand-box image build --agents)",
            agent, self->profile->command[0]);
    /* The launcher never ends with these: the guest has no such program, or one that it cannot run. */
    if (code == 126 || code == 127)
        return eb_error_new(EB_ERROR_FAILED, "agent.launcher",
                            "the guest could not be made ready for the agent %s: its launcher is not there or does not "
                            "run (code %d)",
                            agent, code);
    if (code == 125)
        return eb_error_new(EB_ERROR_FAILED, "agent.launcher", "the guest could not be made ready for the agent %s: %s",
                            agent, *last != '\0' ? last : "the launcher gave no reason");
    if (strstr(masked, "No space left on device") != NULL || strstr(masked, "ENOSPC") != NULL)
        return eb_error_new(EB_ERROR_QUOTA, "agent.disk-full",
                            "the agent %s ended: no space left in its guest ([session] disk or tmp)", agent);
    if (code == 137)
        return eb_error_new(EB_ERROR_QUOTA, "agent.killed",
                            "the agent %s was killed, most likely by the memory limit of %" G_GUINT64_FORMAT
                            " MiB ([session] memory)",
                            agent, config->memory >> 20);
    if (code < 0)
        return eb_error_new(EB_ERROR_UNAVAILABLE, "agent.lost", "the connection to the agent %s in its guest was lost",
                            agent);
    return eb_error_new(EB_ERROR_FAILED, "agent.exited", "the agent %s ended with code %d%s%s", agent, code,
                        *last != '\0' ? ": " : "", last);
}
