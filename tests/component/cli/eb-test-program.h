/* SPDX-License-Identifier: MIT */
#pragma once

#include "tests/lib/eb-test.h"

G_BEGIN_DECLS

/** EbTestRun: how a program ended and what it said. */
typedef struct {
    int code; /* exit code; 128+N for signal N */
    char *out;
    char *err;
} EbTestRun;
void eb_test_run_clear(EbTestRun *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(EbTestRun, eb_test_run_clear)

/** eb_test_program: (transfer full): path of a program of this build. */
char *eb_test_program(const char *name);
/**
 * eb_test_run_program: runs `errand-box ARGS...` with an environment of its own and waits.
 * @config: (nullable): ERRAND_BOX_CONFIG
 * @input: (nullable): its stdin
 * @line: words separated by blanks
 */
EbTestRun eb_test_run_program(const char *config, const char *input, const char *line);
/** eb_test_spawn: (transfer full): starts program @name with @line; stdout and stderr go to file @log. */
GSubprocess *eb_test_spawn(const char *name, const char *config, const char *log, const char *line);
/** eb_test_wait_exit: waits for the end; the exit code, 128+N for signal N. */
int eb_test_wait_exit(GSubprocess *process);

G_END_DECLS
