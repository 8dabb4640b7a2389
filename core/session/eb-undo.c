/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-undo.h"
#include "core/base/eb-source.h"

typedef struct {
    char *what;
    guint deadline_ms;
    EbUndoFunc func;
    gpointer data;
    GDestroyNotify free_data;
} EbUndoStep;

struct _EbUndo {
    GPtrArray *steps; /* (element-type EbUndoStep): a handful, one a step of an operation */
};

/* One run; each step's answer and its deadline meet here, whichever comes first. */
typedef struct {
    EbUndo *undo;
    EbUndoStep *step;
    guint number;
    GSource *deadline;
    GError *first;
} EbUndoRun;

typedef struct {
    GTask *run;
    guint number;
} EbUndoAnswer;

static void next_step(GTask *run);

static void
step_free(gpointer data)
{
    EbUndoStep *step = data;
    if (step->free_data != NULL)
        step->free_data(step->data);
    g_free(step->what);
    g_free(step);
}

EbUndo *
eb_undo_new(void)
{
    EbUndo *self = g_new0(EbUndo, 1);
    self->steps = g_ptr_array_new_with_free_func(step_free);
    return self;
}

void
eb_undo_free(EbUndo *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->steps);
    g_free(self);
}

void
eb_undo_push(EbUndo *self, const char *what, guint deadline_ms, EbUndoFunc func, gpointer data,
             GDestroyNotify free_data)
{
    EbUndoStep *step = g_new0(EbUndoStep, 1);
    step->what = g_strdup(what);
    step->deadline_ms = deadline_ms;
    step->func = func;
    step->data = data;
    step->free_data = free_data;
    g_ptr_array_add(self->steps, step);
}

static guint
find(EbUndo *self, const char *what)
{
    for (guint i = 0; i < self->steps->len; i++)
        if (g_str_equal(((EbUndoStep *)self->steps->pdata[i])->what, what))
            return i;
    return G_MAXUINT;
}

void
eb_undo_drop(EbUndo *self, const char *what)
{
    guint index = find(self, what);
    if (index != G_MAXUINT)
        g_ptr_array_remove_index(self->steps, index);
}

gboolean
eb_undo_has(EbUndo *self, const char *what)
{
    return find(self, what) != G_MAXUINT;
}

static void
run_free(gpointer data)
{
    EbUndoRun *run = data;
    g_clear_pointer(&run->step, step_free);
    if (run->deadline != NULL) {
        g_source_destroy(run->deadline);
        g_source_unref(run->deadline);
    }
    g_clear_error(&run->first);
    g_free(run);
}

static void
end_step(GTask *task, GError *error)
{
    EbUndoRun *run = g_task_get_task_data(task);
    eb_clear_source(&run->deadline);
    if (error != NULL) {
        eb_warning("giving back \"%s\" failed: %s", run->step->what, error->message);
        if (run->first == NULL)
            run->first = g_error_copy(error);
    }
    run->number++;
    g_clear_pointer(&run->step, step_free);
    next_step(task);
}

static void
on_step_answer(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbUndoAnswer *answer = user_data;
    g_autoptr(GTask) task = answer->run;
    g_autoptr(GError) error = NULL;
    g_task_propagate_boolean(G_TASK(result), &error);
    EbUndoRun *run = g_task_get_task_data(task);
    if (run->number == answer->number)
        end_step(task, error);
    g_free(answer);
}

static gboolean
on_step_deadline(gpointer data)
{
    g_autoptr(GTask) task = g_object_ref(G_TASK(data));
    EbUndoRun *run = g_task_get_task_data(task);
    g_autoptr(GError) error =
        eb_error_new(EB_ERROR_TIMEOUT, "undo.late", "no answer within %u s", run->step->deadline_ms / 1000);
    end_step(task, error);
    return G_SOURCE_REMOVE;
}

static void
next_step(GTask *task)
{
    EbUndoRun *run = g_task_get_task_data(task);
    GPtrArray *steps = run->undo->steps;
    if (steps->len == 0) {
        if (run->first != NULL)
            g_task_return_error(task, g_steal_pointer(&run->first));
        else
            g_task_return_boolean(task, TRUE);
        g_object_unref(task);
        return;
    }
    run->step = g_ptr_array_steal_index(steps, steps->len - 1);
    g_autofree char *mark = g_strconcat("undo.", run->step->what, NULL);
    eb_log_step(g_strdelimit(mark, " ", '-'), "EB_REASON", NULL);
    run->deadline = g_timeout_source_new(run->step->deadline_ms);
    g_source_set_callback(run->deadline, on_step_deadline, task, NULL);
    g_source_attach(run->deadline, g_main_context_get_thread_default());
    EbUndoAnswer *answer = g_new0(EbUndoAnswer, 1);
    answer->run = g_object_ref(task);
    answer->number = run->number;
    GTask *step_task = g_task_new(NULL, NULL, on_step_answer, answer);
    run->step->func(run->step->data, step_task);
}

void
eb_undo_run_async(EbUndo *self, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(NULL, NULL, callback, user_data);
    g_task_set_source_tag(task, eb_undo_run_async);
    EbUndoRun *run = g_new0(EbUndoRun, 1);
    run->undo = self;
    g_task_set_task_data(task, run, run_free);
    next_step(task);
}

gboolean
eb_undo_run_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_undo_run_async), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}
