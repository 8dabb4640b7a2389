/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbUndo: the compensations of an operation: each step that took something pushes how to give it back. Run, they come in
 * reverse order, one after the other, each with a deadline of its own; one that fails is logged and the others still run.
 */
typedef struct _EbUndo EbUndo;

/** EbUndoFunc: gives one thing back and returns @task (transfer full) with a boolean. */
typedef void (*EbUndoFunc)(gpointer data, GTask *task);

EbUndo *eb_undo_new(void);
/** eb_undo_free: what was not run is forgotten. */
void eb_undo_free(EbUndo *self);
/** eb_undo_push: @what: unique, for logs and eb_undo_drop(); @data: freed with @free_data after the run or the drop */
void eb_undo_push(EbUndo *self, const char *what, guint deadline_ms, EbUndoFunc func, gpointer data,
                  GDestroyNotify free_data);
/** eb_undo_drop: what is kept for good needs no undoing. */
void eb_undo_drop(EbUndo *self, const char *what);
gboolean eb_undo_has(EbUndo *self, const char *what);
/** eb_undo_run_async: @self must live until the callback. */
void eb_undo_run_async(EbUndo *self, GAsyncReadyCallback callback, gpointer user_data);
/** eb_undo_run_finish: FALSE with the first failure; everything was tried all the same. */
gboolean eb_undo_run_finish(GAsyncResult *result, GError **error);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbUndo, eb_undo_free)

G_END_DECLS
