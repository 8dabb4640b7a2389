/* SPDX-License-Identifier: MIT */
#include "eb-container-backend.h"

#include "eb-async-private.h"

G_DEFINE_INTERFACE(EbExec, eb_exec, G_TYPE_OBJECT)

static void
default_wait_async(EbExec *self, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_wait_async, "wait");
}

static int
default_wait_finish(EbExec *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_int(G_TASK(result), error);
}

static GOutputStream *
default_get_stdin(EbExec *self)
{
    return NULL;
}

static GInputStream *
default_get_stdout(EbExec *self)
{
    return NULL;
}

static gboolean
not_supported(EbExec *self, const char *what, GError **error)
{
    eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "sdk.not-supported", "%s cannot %s", G_OBJECT_TYPE_NAME(self), what);
    return FALSE;
}

static gboolean
default_send_signal(EbExec *self, int signum, GError **error)
{
    return not_supported(self, "send signals", error);
}

static gboolean
default_resize(EbExec *self, guint rows, guint columns, GError **error)
{
    return not_supported(self, "be resized", error);
}

static void
eb_exec_default_init(EbExecInterface *iface)
{
    iface->wait_async = default_wait_async;
    iface->wait_finish = default_wait_finish;
    iface->get_stdin = default_get_stdin;
    iface->get_stdout = default_get_stdout;
    iface->get_stderr = default_get_stdout;
    iface->send_signal = default_send_signal;
    iface->resize = default_resize;
}

GOutputStream *
eb_exec_get_stdin(EbExec *self)
{
    g_return_val_if_fail(EB_IS_EXEC(self), NULL);
    return EB_EXEC_GET_IFACE(self)->get_stdin(self);
}

GInputStream *
eb_exec_get_stdout(EbExec *self)
{
    g_return_val_if_fail(EB_IS_EXEC(self), NULL);
    return EB_EXEC_GET_IFACE(self)->get_stdout(self);
}

GInputStream *
eb_exec_get_stderr(EbExec *self)
{
    g_return_val_if_fail(EB_IS_EXEC(self), NULL);
    return EB_EXEC_GET_IFACE(self)->get_stderr(self);
}

gboolean
eb_exec_send_signal(EbExec *self, int signum, GError **error)
{
    gboolean done;

    g_return_val_if_fail(EB_IS_EXEC(self) && signum > 0, FALSE);
    done = EB_EXEC_GET_IFACE(self)->send_signal(self, signum, error);
    return eb_border_boolean(done, error);
}

gboolean
eb_exec_resize(EbExec *self, guint rows, guint columns, GError **error)
{
    gboolean done;

    g_return_val_if_fail(EB_IS_EXEC(self), FALSE);
    done = EB_EXEC_GET_IFACE(self)->resize(self, rows, columns, error);
    return eb_border_boolean(done, error);
}

void
eb_exec_wait_async(EbExec *self, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_EXEC(self));
    EB_EXEC_GET_IFACE(self)->wait_async(self, cancellable, callback, user_data);
}

int
eb_exec_wait_finish(EbExec *self, GAsyncResult *result, GError **error)
{
    int code;

    g_return_val_if_fail(EB_IS_EXEC(self), -1);
    code = EB_EXEC_GET_IFACE(self)->wait_finish(self, result, error);
    if (code < 0)
        eb_error_convert(error, NULL, NULL);
    return code;
}
