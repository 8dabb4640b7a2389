/* SPDX-License-Identifier: MIT */
#include "eb-fake-backend.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

/* --- a process --- */

#define EB_TYPE_FAKE_EXEC (eb_fake_exec_get_type())
G_DECLARE_FINAL_TYPE(EbFakeExec, eb_fake_exec, EB, FAKE_EXEC, GObject)
struct _EbFakeExec {
    GObject parent_instance;
    GSubprocess *process;
};
static void eb_fake_exec_iface(EbExecInterface *iface);
G_DEFINE_FINAL_TYPE_WITH_CODE(EbFakeExec, eb_fake_exec, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_EXEC, eb_fake_exec_iface))

static GOutputStream *
exec_get_stdin(EbExec *exec)
{
    return g_subprocess_get_stdin_pipe(EB_FAKE_EXEC(exec)->process);
}

static GInputStream *
exec_get_stdout(EbExec *exec)
{
    return g_subprocess_get_stdout_pipe(EB_FAKE_EXEC(exec)->process);
}

static GInputStream *
exec_get_stderr(EbExec *exec)
{
    return g_subprocess_get_stderr_pipe(EB_FAKE_EXEC(exec)->process);
}

static gboolean
exec_send_signal(EbExec *exec, int signum, GError **error)
{
    g_subprocess_send_signal(EB_FAKE_EXEC(exec)->process, signum);
    return TRUE;
}

static void
on_process_exit(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    GSubprocess *process = G_SUBPROCESS(source);
    GError *error = NULL;
    if (!g_subprocess_wait_finish(process, result, &error))
        g_task_return_error(task, error);
    else if (g_subprocess_get_if_exited(process))
        g_task_return_int(task, g_subprocess_get_exit_status(process));
    else
        g_task_return_int(task, 128 + g_subprocess_get_term_sig(process));
}

static void
exec_wait_async(EbExec *exec, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(exec, cancellable, callback, user_data);
    g_subprocess_wait_async(EB_FAKE_EXEC(exec)->process, cancellable, on_process_exit, task);
}

static int
exec_wait_finish(EbExec *exec, GAsyncResult *result, GError **error)
{
    GError *local = NULL;
    int code = (int)g_task_propagate_int(G_TASK(result), &local);
    if (local != NULL) {
        g_propagate_error(error, local);
        return -1;
    }
    return code;
}

static void
eb_fake_exec_iface(EbExecInterface *iface)
{
    iface->get_stdin = exec_get_stdin;
    iface->get_stdout = exec_get_stdout;
    iface->get_stderr = exec_get_stderr;
    iface->send_signal = exec_send_signal;
    iface->wait_async = exec_wait_async;
    iface->wait_finish = exec_wait_finish;
}

static void
eb_fake_exec_finalize(GObject *object)
{
    EbFakeExec *self = EB_FAKE_EXEC(object);
    g_subprocess_force_exit(self->process);
    g_object_unref(self->process);
    G_OBJECT_CLASS(eb_fake_exec_parent_class)->finalize(object);
}

static void
eb_fake_exec_class_init(EbFakeExecClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_fake_exec_finalize;
}

static void
eb_fake_exec_init(EbFakeExec *self)
{
}

/* --- the backend --- */

static void eb_fake_backend_iface(EbContainerBackendInterface *iface);
G_DEFINE_FINAL_TYPE_WITH_CODE(EbFakeBackend, eb_fake_backend, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CONTAINER_BACKEND, eb_fake_backend_iface))

static void
probe_async(EbContainerBackend *backend, guint deadline_ms, GCancellable *cancellable, GAsyncReadyCallback callback,
            gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(backend, cancellable, callback, user_data);
    EbProbeReport *report = eb_probe_report_new("fake 1", "files");
    eb_probe_report_add(report, "memory-limit", TRUE, NULL, NULL);
    if (EB_FAKE_BACKEND(backend)->degraded)
        eb_probe_report_add(report, "disk-quota", FALSE, "E-05", "files have no quota");
    g_task_return_pointer(task, report, (GDestroyNotify)eb_probe_report_free);
}

static gpointer
pointer_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static EbProbeReport *
probe_finish(EbContainerBackend *backend, GAsyncResult *result, GError **error)
{
    return pointer_finish(result, error);
}

static gboolean
boolean_finish(EbContainerBackend *backend, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static char *
instance_path(EbFakeBackend *self, const char *name)
{
    return g_build_filename(self->dir, name, NULL);
}

static void
launch_async(EbContainerBackend *backend, const EbContainerSpec *spec, guint deadline_ms, GCancellable *cancellable,
             GAsyncReadyCallback callback, gpointer user_data)
{
    EbFakeBackend *self = EB_FAKE_BACKEND(backend);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    GError *error = NULL;
    if (!eb_container_spec_validate(spec, &error)) {
        g_task_return_error(task, error);
        return;
    }
    for (guint i = 0; i < spec->mounts->len; i++) {
        const EbContainerMount *mount = spec->mounts->pdata[i];
        g_assert_true(mount->source == NULL || g_file_test(mount->source, G_FILE_TEST_IS_DIR));
    }
    if (!self->fail_launch || self->half_launch) {
        g_autofree char *path = instance_path(self, spec->name);
        g_autofree char *labels = g_strdup_printf("%s\n%s\n%s", (char *)g_hash_table_lookup(spec->labels, "session"),
                                                  (char *)g_hash_table_lookup(spec->labels, "run"),
                                                  (char *)g_hash_table_lookup(spec->labels, "home"));
        g_assert_true(g_file_set_contents(path, labels, -1, NULL));
        self->launched++;
    }
    if (self->fail_launch)
        g_task_return_new_error(task, EB_ERROR, EB_ERROR_QUOTA, "the pool is full");
    else
        g_task_return_boolean(task, TRUE);
}

static void
exec_async(EbContainerBackend *backend, const char *name, const EbExecSpec *spec, guint deadline_ms,
           GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    EbFakeBackend *self = EB_FAKE_BACKEND(backend);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    if (self->fail_exec) {
        g_task_return_new_error(task, EB_ERROR, EB_ERROR_UNAVAILABLE, "no exec today");
        return;
    }
    if (g_str_equal(spec->argv[0], "/bin/chown")) {
        GSubprocess *done = g_subprocess_new(G_SUBPROCESS_FLAGS_NONE, NULL, "true", NULL);
        EbFakeExec *chown = g_object_new(EB_TYPE_FAKE_EXEC, NULL);
        chown->process = done;
        self->cleanups++;
        g_task_return_pointer(task, chown, g_object_unref);
        return;
    }
    guint at = 0;
    while (spec->argv[at] != NULL && !g_str_equal(spec->argv[at], "--"))
        at++;
    g_assert_nonnull(spec->argv[at]);
    const char *mode = g_str_equal(spec->argv[at + 1], "test-agent") ? spec->argv[at + 2] : NULL;
    g_autofree char *store = g_build_filename(self->dir, "..", "agent-sessions", NULL);
    g_mkdir_with_parents(store, 0700);
    const char *argv[] = {"python3", self->agent, store, mode, NULL};
    GError *error = NULL;
    GSubprocess *process = g_subprocess_newv(
        argv, G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE, &error);
    g_assert_no_error(error);
    EbFakeExec *exec = g_object_new(EB_TYPE_FAKE_EXEC, NULL);
    exec->process = process;
    GPtrArray *execs = g_hash_table_lookup(self->execs, name);
    if (execs == NULL) {
        execs = g_ptr_array_new_with_free_func(g_object_unref);
        g_hash_table_insert(self->execs, g_strdup(name), execs);
    }
    g_ptr_array_add(execs, g_object_ref(process));
    g_task_return_pointer(task, exec, g_object_unref);
}

static EbExec *
exec_finish(EbContainerBackend *backend, GAsyncResult *result, GError **error)
{
    return pointer_finish(result, error);
}

static void
end_instance(EbFakeBackend *self, const char *name)
{
    g_autofree char *path = instance_path(self, name);
    GPtrArray *execs = g_hash_table_lookup(self->execs, name);
    for (guint i = 0; execs != NULL && i < execs->len; i++)
        g_subprocess_force_exit(execs->pdata[i]);
    g_hash_table_remove(self->execs, name);
    g_unlink(path);
}

static void
stop_async(EbContainerBackend *backend, const char *name, EbStopFlags flags, guint grace_ms, guint deadline_ms,
           GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    EbFakeBackend *self = EB_FAKE_BACKEND(backend);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    end_instance(self, name);
    self->stopped++;
    g_task_return_boolean(task, TRUE);
}

static EbInstanceInfo *
read_instance(EbFakeBackend *self, const char *name)
{
    g_autofree char *path = instance_path(self, name);
    g_autofree char *content = NULL;
    if (!g_file_get_contents(path, &content, NULL, NULL))
        return NULL;
    g_auto(GStrv) lines = g_strsplit(content, "\n", 3);
    /* What a killed run was just writing never became an instance. */
    if (g_strv_length(lines) < 3)
        return NULL;
    EbInstanceInfo *info = eb_instance_info_new(name);
    info->state = EB_INSTANCE_RUNNING;
    info->memory_limit = (guint64)1 << 30;
    info->memory_usage = self->full ? info->memory_limit : info->memory_limit / 4;
    g_hash_table_replace(info->labels, g_strdup("session"), g_strdup(lines[0]));
    g_hash_table_replace(info->labels, g_strdup("run"), g_strdup(lines[1]));
    g_hash_table_replace(info->labels, g_strdup("home"), g_strdup(lines[2]));
    return info;
}

static void
list_async(EbContainerBackend *backend, const char *name, guint deadline_ms, GCancellable *cancellable,
           GAsyncReadyCallback callback, gpointer user_data)
{
    EbFakeBackend *self = EB_FAKE_BACKEND(backend);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    if (self->fail_list) {
        g_task_return_new_error(task, EB_ERROR, EB_ERROR_UNAVAILABLE, "nobody answers");
        return;
    }
    GPtrArray *found = g_ptr_array_new_with_free_func((GDestroyNotify)eb_instance_info_free);
    g_autoptr(GDir) dir = g_dir_open(self->dir, 0, NULL);
    const char *entry;
    while ((entry = g_dir_read_name(dir)) != NULL) {
        EbInstanceInfo *info = name == NULL || g_str_equal(name, entry) ? read_instance(self, entry) : NULL;
        if (info != NULL)
            g_ptr_array_add(found, info);
    }
    g_task_return_pointer(task, found, (GDestroyNotify)g_ptr_array_unref);
}

static GPtrArray *
list_finish(EbContainerBackend *backend, GAsyncResult *result, GError **error)
{
    return pointer_finish(result, error);
}

static void
eb_fake_backend_iface(EbContainerBackendInterface *iface)
{
    iface->probe_async = probe_async;
    iface->probe_finish = probe_finish;
    iface->launch_async = launch_async;
    iface->launch_finish = boolean_finish;
    iface->exec_async = exec_async;
    iface->exec_finish = exec_finish;
    iface->stop_async = stop_async;
    iface->stop_finish = boolean_finish;
    iface->list_async = list_async;
    iface->list_finish = list_finish;
}

guint
eb_fake_backend_count(EbFakeBackend *self)
{
    guint count = 0;
    g_autoptr(GDir) dir = g_dir_open(self->dir, 0, NULL);
    while (g_dir_read_name(dir) != NULL)
        count++;
    return count;
}

void
eb_fake_backend_vanish(EbFakeBackend *self)
{
    g_autoptr(GList) names = g_hash_table_get_keys(self->execs);
    for (GList *link = names; link != NULL; link = link->next) {
        g_autofree char *name = g_strdup(link->data);
        end_instance(self, name);
        g_signal_emit_by_name(self, "instance-event", EB_INSTANCE_EVENT_STOPPED, name);
    }
}

static void
eb_fake_backend_finalize(GObject *object)
{
    EbFakeBackend *self = EB_FAKE_BACKEND(object);
    g_free(self->dir);
    g_free(self->agent);
    g_hash_table_unref(self->execs);
    G_OBJECT_CLASS(eb_fake_backend_parent_class)->finalize(object);
}

static void
eb_fake_backend_class_init(EbFakeBackendClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_fake_backend_finalize;
}

static void
eb_fake_backend_init(EbFakeBackend *self)
{
    self->execs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
}

EbFakeBackend *
eb_fake_backend_new(const char *dir, const char *agent)
{
    EbFakeBackend *self = g_object_new(EB_TYPE_FAKE_BACKEND, NULL);
    self->dir = g_strdup(dir);
    self->agent = g_strdup(agent);
    g_mkdir_with_parents(dir, 0700);
    return self;
}
