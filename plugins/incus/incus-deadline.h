/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * IncusDeadline: one bound on a whole operation of many requests.
 *
 * Joins the caller's cancellable and a timer into one GCancellable that every request of the operation uses, and
 * tells afterwards which of the two it was.
 */
typedef struct _IncusDeadline IncusDeadline;

/**
 * incus_deadline_new: (transfer full)
 * @ms: from now, 0 = no timer (a running exec has none)
 * @caller: (nullable): the caller's cancellable
 */
IncusDeadline *incus_deadline_new(guint ms, GCancellable *caller);
IncusDeadline *incus_deadline_ref(IncusDeadline *self);
void incus_deadline_unref(IncusDeadline *self);

/** incus_deadline_get_cancellable: (transfer none): cancelled when time is up or the caller cancelled. */
GCancellable *incus_deadline_get_cancellable(IncusDeadline *self);
/** incus_deadline_get_remaining: milliseconds, 0 = over, G_MAXUINT without a timer. */
guint incus_deadline_get_remaining(IncusDeadline *self);
/** incus_deadline_cancel: ends everything that runs under it, as if the caller had cancelled. */
void incus_deadline_cancel(IncusDeadline *self);

/** incus_deadline_check: FALSE with EB_ERROR_TIMEOUT or EB_ERROR_CANCELLED when it is over. */
gboolean incus_deadline_check(IncusDeadline *self, const char *what, GError **error);

/**
 * incus_deadline_convert: makes @error an EB_ERROR; a cancellation becomes a timeout when the timer was it.
 * @what: what was being done, for the message
 */
void incus_deadline_convert(IncusDeadline *self, const char *what, GError **error);

/** IncusSleepFunc: called once, when the time is over or the deadline cancelled (then incus_deadline_check() fails). */
typedef void (*IncusSleepFunc)(gpointer user_data);
/** incus_deadline_sleep: waits @ms without blocking. */
void incus_deadline_sleep(IncusDeadline *self, guint ms, IncusSleepFunc func, gpointer user_data);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(IncusDeadline, incus_deadline_unref)

G_END_DECLS
