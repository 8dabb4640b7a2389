/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker-ctl.h"
#include "tests/component/broker/eb-test-origin.h"

G_BEGIN_DECLS

#define TEST_KEY "sk-live-0123456789abcdef"
#define TEST_NONCE "nonce-fedcba9876543210"

/** EbTestBroker: a real broker process with three providers at one origin: anthropic, openai and gemini. */
typedef struct {
    char *run_dir;
    char *socket_path;
    EbPaths *paths;
    EbTestOrigin *origin;
    EbBrokerRules *rules;
    EbBrokerCtl *ctl;
    GPtrArray *audit; /* (element-type JsonObject) */
    guint n_denied;
    char *denied; /* "host port code" of the last */
    guint n_provider_errors;
    guint provider_status;
    char *provider_error; /* text of the last */
    guint n_died;
    gboolean restarted;
} EbTestBroker;

/** eb_test_broker_prepare: rules and origin without a process; @certificate: (nullable): as for the origin */
EbTestBroker *eb_test_broker_prepare(const char *certificate);
/** eb_test_broker_start: starts the process of a prepared one. */
void eb_test_broker_start(EbTestBroker *self);
EbTestBroker *eb_test_broker_new(void);
void eb_test_broker_free(EbTestBroker *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbTestBroker, eb_test_broker_free)

/** eb_test_broker_connect: a blocking connection that gives up after a minute. */
int eb_test_broker_connect(EbTestBroker *self);
void eb_test_send(int fd, const char *bytes, gsize length);
/** eb_test_receive_all: (transfer full): until the end of the stream */
char *eb_test_receive_all(int fd, gsize *length);
/** eb_test_receive_until: (transfer full): until @text was received; fails at the end of the stream */
char *eb_test_receive_until(int fd, const char *text);
/** eb_test_broker_ask: (transfer full): sends @request on a connection of its own, reads the answer to the end. */
char *eb_test_broker_ask(EbTestBroker *self, const char *request);
guint eb_test_status_of(const char *answer);
void eb_test_assert_refused(const char *answer, guint status, const char *code);
/** eb_test_broker_wait_audit: (transfer none): runs the loop until @n rows are there; the last of them */
JsonObject *eb_test_broker_wait_audit(EbTestBroker *self, guint n);
/** eb_test_broker_proc: (transfer full): the file @name of /proc/PID of the broker */
char *eb_test_broker_proc(EbTestBroker *self, const char *name, gsize *length);

G_END_DECLS
