/* SPDX-License-Identifier: MIT */
#pragma once

#include "../session/eb-session-fixture.h"
#include "eb-fake-service.h"

G_BEGIN_DECLS

/** EbRouterFixture: a manager with a chat service attached to it as "chat". */
typedef struct {
    EbSessionFixture *session;
    EbFakeService *chat;
} EbRouterFixture;

/** eb_router_fixture_new: @dir: (nullable): an existing state; @settings: (nullable): further TOML. Not yet opened. */
EbRouterFixture *eb_router_fixture_new(const char *dir, const char *settings);
void eb_router_fixture_open(EbRouterFixture *self);
void eb_router_fixture_close(EbRouterFixture *self);
/** eb_router_fixture_restart: closed and opened again; the chat goes on meanwhile. */
void eb_router_fixture_restart(EbRouterFixture *self);
void eb_router_fixture_free(EbRouterFixture *self);
/** eb_router_fixture_prompts: (transfer full) (array zero-terminated=1): all that agents were given, by session. */
char **eb_router_fixture_prompts(EbRouterFixture *self);
/** eb_router_fixture_open_gate: agents whose prompt is "gate NAME" go on. */
void eb_router_fixture_open_gate(EbRouterFixture *self, const char *name);
/** eb_router_fixture_count_open: messages in the journal that are not done. */
guint eb_router_fixture_count_open(EbRouterFixture *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbRouterFixture, eb_router_fixture_free)

/** UNTIL: runs the main loop until @condition; the deadline of eb_test_run_until(). */
#define UNTIL(condition)                                                                                               \
    do {                                                                                                               \
        gint64 until_end = g_get_monotonic_time() + (gint64)EB_TEST_DEADLINE_MS * 1000;                                \
        while (!(condition)) {                                                                                         \
            if (g_get_monotonic_time() > until_end)                                                                    \
                g_error("%s:%d: never came to be: %s", __FILE__, __LINE__, #condition);                                \
            g_main_context_iteration(NULL, FALSE) ? (void)0 : g_usleep(1000);                                          \
        }                                                                                                              \
    } while (0)

G_END_DECLS
