/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** CONSOLE_LINES_MAX: bytes of one line; a longer one is thrown away up to its end. */
#define CONSOLE_LINES_MAX (64 * 1024)

/** ConsoleLines: lines of stdin, read only while somebody waits for one. */
typedef struct _ConsoleLines ConsoleLines;

/** ConsoleLineFunc: @line: (nullable): without its newline; NULL: end of file. */
typedef void (*ConsoleLineFunc)(const char *line, gpointer user_data);

ConsoleLines *console_lines_new(int fd, ConsoleLineFunc func, gpointer user_data);
/** console_lines_set_wanted: reads while TRUE; what comes meanwhile stays where it is. */
void console_lines_set_wanted(ConsoleLines *self, gboolean wanted);
void console_lines_free(ConsoleLines *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ConsoleLines, console_lines_free)

G_END_DECLS
