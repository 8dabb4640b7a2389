/* SPDX-License-Identifier: MIT */
#pragma once

#include "tests/component/cli/eb-test-program.h"
#include "tests/lib/eb-test-incusd.h"

G_BEGIN_DECLS

/** SERVICE_ACCOUNT: an account that every Debian has and nothing here uses. */
#define SERVICE_ACCOUNT "daemon"

/** ServiceFixture: what a service needs to run: configuration, directories, a supervisor's socket. */
typedef struct {
    char *dir;
    char *config;
    char *log;
    char *socket;
    char *accepted; /* ids this host needs accepted, as they stand in the configuration */
    int notify;     /* what the service reports to */
} ServiceFixture;

/**
 * service_main: runs @add's tests against a private incusd, or skips them all.
 * @add: adds them
 */
int service_main(int *argc, char ***argv, const char *name, void (*add)(void));
void service_set_up(ServiceFixture *fixture, gconstpointer data);
void service_tear_down(ServiceFixture *fixture, gconstpointer data);

/** service_configure: writes the configuration; @extra: (nullable): further tables */
void service_configure(ServiceFixture *fixture, const char *extra);
/** service_accept_gaps: starts a strict service once; what this host cannot enforce goes into the configuration. */
void service_accept_gaps(ServiceFixture *fixture);
/** service_start: (transfer full): ready, with the gaps accepted */
GSubprocess *service_start(ServiceFixture *fixture);
/** service_spawn: (transfer full): started, whatever comes of it */
GSubprocess *service_spawn(ServiceFixture *fixture);
void service_stop(GSubprocess *process);
/** service_wait_notice: until the service reports something with @word. */
void service_wait_notice(ServiceFixture *fixture, const char *word);
char *service_read_log(ServiceFixture *fixture);

G_END_DECLS
