/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-image-trial.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN_DIR "/opt/errand/run"
#define GUEST_DEADLINE_MS 60000
#define EXEC_DEADLINE_MS 15000
#define TRIAL_DEADLINE_S 180 /* of all programs together */
#define STOP_DEADLINE_MS 30000
#define MEMORY (G_GUINT64_CONSTANT(1536) << 20)
#define MAX_OUTPUT (64 * 1024)

/* The guest's shell prints one line a program and ends with the number of those that fail. */
static const char SCRIPT[] =
    "failed=0; for program in \"$@\"; do if answer=$(\"$program\" --version 2>&1 </dev/null); then "
    "printf '%s %s\\n' \"$program\" \"$(printf '%s\\n' \"${answer:-(runs, names no version)}\" | head -n 1)\"; else "
    "printf '%s --version fails: %s\\n' \"$program\" \"$(printf '%s\\n' \"$answer\" | tail -n 1)\"; "
    "failed=$((failed + 1)); fi; done; exit $failed";
static const char BLOCK[] = "EHOME=/tmp/home\0EPATH=/usr/local/bin:/usr/bin:/bin\0ELANG=C.UTF-8";

/* One trial, step after step: launch, exec, block, output, exit code, stop. */
typedef struct {
    EbContainerBackend *backend;
    char **programs;
    char *dir; /* (nullable): of the host, with run/launch */
    EbContainerSpec *spec;
    EbExec *exec; /* (nullable) */
    GString *block;
    GString *output;
    char chunk[4096];
    GCancellable *cancellable; /* of the steps: the caller's, or the deadline */
    GSource *deadline;
    GCancellable *outer; /* (nullable) */
    gulong outer_handler;
    gboolean late; /* the deadline has passed */
    GError *error; /* (nullable): the first that happened */
} Trial;

static void
trial_free(gpointer data)
{
    Trial *self = data;

    if (self->outer_handler != 0)
        g_cancellable_disconnect(self->outer, self->outer_handler);
    g_clear_object(&self->outer);
    if (self->deadline != NULL)
        g_source_destroy(self->deadline);
    g_clear_pointer(&self->deadline, g_source_unref);
    g_clear_object(&self->backend);
    g_strfreev(self->programs);
    g_free(self->dir);
    g_clear_pointer(&self->spec, eb_container_spec_free);
    g_clear_object(&self->exec);
    g_string_free(self->block, TRUE);
    g_string_free(self->output, TRUE);
    g_clear_object(&self->cancellable);
    g_clear_error(&self->error);
    g_free(self);
}

static void
remove_directory(Trial *self)
{
    g_autofree char *program = g_build_filename(self->dir, "run", "launch", NULL);
    g_autofree char *run = g_build_filename(self->dir, "run", NULL);

    unlink(program);
    rmdir(run);
    rmdir(self->dir);
}

static void
on_stopped(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Trial *self = g_task_get_task_data(task);

    /* What did not work in the guest comes before what did not work with the guest. */
    eb_container_backend_stop_finish(EB_CONTAINER_BACKEND(source), result, self->error == NULL ? &self->error : NULL);
    remove_directory(self);
    if (self->late && self->error != NULL)
        g_task_return_new_error(task, EB_ERROR, EB_ERROR_TIMEOUT, "the guest did not answer within %d s",
                                TRIAL_DEADLINE_S);
    else if (self->error != NULL)
        g_task_return_error(task, g_steal_pointer(&self->error));
    else
        g_task_return_pointer(task, g_strdup(self->output->str), g_free);
}

/* Every way ends here. Not cancelled: the guest goes in any case. */
static void
end(GTask *task)
{
    Trial *self = g_task_get_task_data(task);

    g_clear_object(&self->exec);
    eb_container_backend_stop_async(self->backend, self->spec->name, EB_STOP_FORCE | EB_STOP_DESTROY, 0,
                                    STOP_DEADLINE_MS, NULL, on_stopped, task);
}

static void
on_exit_code(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Trial *self = g_task_get_task_data(user_data);
    int code = eb_exec_wait_finish(EB_EXEC(source), result, &self->error);

    if (self->error == NULL && code != 0) {
        g_strstrip(self->output->str);
        g_autofree char *shown = eb_log_escape(self->output->str, -1, 2000);
        g_auto(GStrv) lines = g_strsplit(self->output->str, "\n", -1);
        g_autoptr(GPtrArray) bad = g_ptr_array_new();
        for (char **line = lines; *line != NULL; line++)
            if (strstr(*line, " --version fails: ") != NULL)
                g_ptr_array_add(bad, *line);
        g_ptr_array_add(bad, NULL);
        g_autofree char *joined = g_strjoinv("; ", (char **)bad->pdata);
        g_autofree char *failures = eb_log_escape(joined, -1, 2000);
        eb_set_error(&self->error, EB_ERROR_FAILED, "image.trial", "in a guest of %s: %s", self->spec->image,
                     bad->len > 1     ? failures
                     : *shown != '\0' ? shown
                                      : "the launcher does not run");
    }
    end(user_data);
}

static void
on_read(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Trial *self = g_task_get_task_data(user_data);
    gssize got = g_input_stream_read_finish(G_INPUT_STREAM(source), result, &self->error);

    if (got < 0) {
        end(user_data);
        return;
    }
    if (got > 0 && self->output->len + (gsize)got <= MAX_OUTPUT)
        g_string_append_len(self->output, self->chunk, got);
    if (got > 0)
        g_input_stream_read_async(G_INPUT_STREAM(source), self->chunk, sizeof self->chunk, G_PRIORITY_DEFAULT,
                                  self->cancellable, on_read, user_data);
    else
        eb_exec_wait_async(self->exec, self->cancellable, on_exit_code, user_data);
}

static void
on_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Trial *self = g_task_get_task_data(user_data);

    if (!g_output_stream_write_all_finish(G_OUTPUT_STREAM(source), result, NULL, &self->error)) {
        end(user_data);
        return;
    }
    g_input_stream_read_async(eb_exec_get_stdout(self->exec), self->chunk, sizeof self->chunk, G_PRIORITY_DEFAULT,
                              self->cancellable, on_read, user_data);
}

static void
on_exec(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Trial *self = g_task_get_task_data(user_data);

    self->exec = eb_container_backend_exec_finish(EB_CONTAINER_BACKEND(source), result, &self->error);
    if (self->exec == NULL) {
        end(user_data);
        return;
    }
    g_output_stream_write_all_async(eb_exec_get_stdin(self->exec), self->block->str, self->block->len,
                                    G_PRIORITY_DEFAULT, self->cancellable, on_written, user_data);
}

static void
on_launched(GObject *source, GAsyncResult *result, gpointer user_data)
{
    static const char *const head[] = {RUN_DIR "/launch",
                                       "--tmp",
                                       "268435456",
                                       "--home",
                                       "/tmp/home",
                                       "--lease",
                                       "--",
                                       "sh",
                                       "-c",
                                       SCRIPT,
                                       "sh",
                                       NULL};
    Trial *self = g_task_get_task_data(user_data);
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();

    if (!eb_container_backend_launch_finish(EB_CONTAINER_BACKEND(source), result, &self->error)) {
        end(user_data);
        return;
    }
    g_strv_builder_addv(builder, (const char **)head);
    g_strv_builder_addv(builder, (const char **)self->programs);
    g_auto(GStrv) argv = g_strv_builder_end(builder);
    g_autoptr(EbExecSpec) spec = eb_exec_spec_new((const char *const *)argv);
    spec->uid = spec->gid = 0;
    eb_container_backend_exec_async(self->backend, self->spec->name, spec, EXEC_DEADLINE_MS, self->cancellable, on_exec,
                                    user_data);
}

static void
on_outer_cancelled(GCancellable *outer, gpointer user_data)
{
    g_cancellable_cancel(user_data);
}

static gboolean
on_deadline(gpointer user_data)
{
    Trial *self = user_data;

    self->late = TRUE;
    g_cancellable_cancel(self->cancellable);
    return G_SOURCE_REMOVE;
}

static gboolean
prepare(Trial *self, EbPaths *paths, const char *alias, const char *sessions_dir, GError **error)
{
    GBytes *launch = eb_paths_get_guest_program(paths, "launch", error);

    if (launch == NULL)
        return FALSE;
    self->dir = g_build_filename(sessions_dir, "verify-XXXXXX", NULL);
    g_autofree char *name = NULL;
    if (g_mkdir_with_parents(sessions_dir, 0700) != 0 || g_mkdtemp(self->dir) == NULL) {
        eb_set_error(error, EB_ERROR_DENIED, "image.trial", "%s: %s", sessions_dir, g_strerror(errno));
        return FALSE;
    }
    g_autofree char *run = g_build_filename(self->dir, "run", NULL);
    g_autofree char *program = g_build_filename(run, "launch", NULL);
    if (mkdir(run, 0755) != 0 || chmod(run, 0755) != 0 ||
        !g_file_set_contents_full(program, g_bytes_get_data(launch, NULL), (gssize)g_bytes_get_size(launch),
                                  G_FILE_SET_CONTENTS_NONE, 0755, NULL) ||
        chmod(program, 0755) != 0) {
        eb_set_error(error, EB_ERROR_FAILED, "image.trial", "%s: %s", run, g_strerror(errno));
        remove_directory(self);
        return FALSE;
    }
    g_autofree char *random = g_uuid_string_random();
    name = g_strdup_printf("eb-verify-%.8s", random);
    self->spec = eb_container_spec_new(name, alias);
    self->spec->ephemeral = TRUE;
    self->spec->memory_bytes = MEMORY;
    self->spec->cpus = 2;
    self->spec->pids = 512;
    eb_container_spec_add_directory(self->spec, "run", run, RUN_DIR, TRUE);
    return TRUE;
}

void
eb_image_trial_async(EbPaths *paths, EbContainerBackend *backend, const char *alias, const char *const *programs,
                     const char *sessions_dir, GCancellable *cancellable, GAsyncReadyCallback callback,
                     gpointer user_data)
{
    GTask *task = g_task_new(NULL, NULL, callback, user_data);
    Trial *self = g_new0(Trial, 1);
    GError *error = NULL;

    g_task_set_source_tag(task, eb_image_trial_async);
    g_task_set_task_data(task, self, trial_free);
    self->backend = g_object_ref(backend);
    self->programs = g_strdupv((char **)programs);
    self->output = g_string_new(NULL);
    self->block = g_string_new(NULL);
    g_string_printf(self->block, "ERRAND1 %" G_GSIZE_FORMAT "\n", sizeof BLOCK);
    g_string_append_len(self->block, BLOCK, sizeof BLOCK);
    self->cancellable = g_cancellable_new();
    if (!prepare(self, paths, alias, sessions_dir, &error)) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    if (cancellable != NULL) {
        self->outer = g_object_ref(cancellable);
        self->outer_handler = g_cancellable_connect(cancellable, G_CALLBACK(on_outer_cancelled),
                                                    g_object_ref(self->cancellable), g_object_unref);
    }
    self->deadline = g_timeout_source_new_seconds(TRIAL_DEADLINE_S);
    g_source_set_callback(self->deadline, on_deadline, self, NULL);
    g_source_attach(self->deadline, g_main_context_get_thread_default());
    eb_container_backend_launch_async(backend, self->spec, GUEST_DEADLINE_MS, self->cancellable, on_launched, task);
}

char *
eb_image_trial_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, NULL), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
