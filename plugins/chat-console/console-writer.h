/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** CONSOLE_WRITER_MAX_QUEUED: bytes that wait for a terminal that is not reading; beyond it text is left out. */
#define CONSOLE_WRITER_MAX_QUEUED (8 * 1024 * 1024)

/**
 * ConsoleWriter: writes to stdout and stderr from a thread of its own, so that a terminal which is stopped (Ctrl-S) or a
 * pipe nobody reads never holds up the main loop.
 */
typedef struct _ConsoleWriter ConsoleWriter;

ConsoleWriter *console_writer_new(void);
/**
 * console_writer_write:
 * @fd: 1 or 2
 * @text: (transfer full)
 * @task: (transfer full) (nullable): returns @id when the text is out, or an error; @id: (transfer full) (nullable)
 */
void console_writer_write(ConsoleWriter *self, int fd, char *text, GTask *task, char *id);
/** console_writer_flush: @task: (transfer full): returns TRUE when all that was given so far is out. */
void console_writer_flush(ConsoleWriter *self, GTask *task);
/** console_writer_is_broken: nobody can read stdout any more. */
gboolean console_writer_is_broken(ConsoleWriter *self);
/** console_writer_free: ends the thread; what is still queued is dropped. */
void console_writer_free(ConsoleWriter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ConsoleWriter, console_writer_free)

G_END_DECLS
