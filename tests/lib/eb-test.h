/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_TEST_DEADLINE_MS: how long a helper waits before the test fails; generous, for slow and sanitized runs. */
#ifdef __SANITIZE_ADDRESS__
#define EB_TEST_DEADLINE_MS 300000
#else
#define EB_TEST_DEADLINE_MS 60000
#endif

/**
 * eb_test_init: g_test_init() for TAP, with criticals fatal, fatal warnings left to each test, the seed of the run
 * printed, and no setting of the caller's environment (proxies, locale, XDG directories) that could change a result.
 */
void eb_test_init(int *argc, char ***argv);

/**
 * eb_test_temp_dir: (transfer full): a fresh directory of mode 0700, removed when the program ends unless
 * EB_TEST_KEEP is set. Short enough for unix sockets.
 */
char *eb_test_temp_dir(const char *name);
/** eb_test_remove_tree: removes @path and all below it, without following links. */
void eb_test_remove_tree(const char *path);
/** eb_test_write_file: writes @content to @path, making the parent directories. */
void eb_test_write_file(const char *path, const char *content);

/** EbTestCondition: TRUE when the wait is over. */
typedef gboolean (*EbTestCondition)(gpointer user_data);

/** eb_test_run_until: iterates the default main context until @condition; beyond the deadline the test fails. */
void eb_test_run_until(EbTestCondition condition, gpointer user_data);
/** eb_test_run_until_true: as eb_test_run_until(), until *@flag is not 0. */
void eb_test_run_until_true(const gboolean *flag);
/** eb_test_run_for: iterates the default main context for @ms milliseconds: to see that nothing happens. */
void eb_test_run_for(guint ms);
/** eb_test_drain: iterates the default main context until nothing is pending. */
void eb_test_drain(void);

/**
 * EbTestResult: keeps the result of one asynchronous call.
 *
 *   g_auto(EbTestResult) done = {0};
 *   thing_async(thing, NULL, eb_test_result_ready, &done);
 *   thing_finish(thing, eb_test_result_wait(&done), &error);
 */
typedef struct {
    GAsyncResult *result; /* (owned) (nullable) */
    guint calls;          /* how often the callback came: more than once is a failure */
} EbTestResult;

/** eb_test_result_ready: a GAsyncReadyCallback with the EbTestResult as its data. */
void eb_test_result_ready(GObject *source, GAsyncResult *result, gpointer user_data);
/** eb_test_result_wait: (transfer none): runs the loop until the result is there. */
GAsyncResult *eb_test_result_wait(EbTestResult *self);
void eb_test_result_clear(EbTestResult *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(EbTestResult, eb_test_result_clear)

/** eb_test_assert_error: @error is an EB_ERROR of @code; @reason and @text (nullable): token, part of its message. */
void eb_test_assert_error(const GError *error, EbErrorCode code, const char *reason, const char *text);

G_END_DECLS
