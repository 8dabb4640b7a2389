/* SPDX-License-Identifier: MIT */
#include "guest/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *program = "errand";

void
diag_set_program(const char *name)
{
    program = name;
}

/* One write(2) a line, so that lines of two processes do not mix. */
static void
put_line(const char *format, va_list args)
{
    char line[1024];
    int used = snprintf(line, sizeof line - 1, "%s: ", program);
    int more = vsnprintf(line + used, sizeof line - 1 - (size_t)used, format, args);
    size_t length = (size_t)used + (more > 0 ? (size_t)more : 0);
    if (length > sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written;
}

void
diag_warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_line(format, args);
    va_end(args);
}

void
diag_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_line(format, args);
    va_end(args);
    _exit(GUEST_EXIT_ERROR);
}
