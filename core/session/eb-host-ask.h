/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/chat/eb-roles.h"
#include "core/config/eb-config.h"
#include "core/state/eb-session-store.h"

G_BEGIN_DECLS

#define EB_HOST_CHOICE_ONCE "once"
#define EB_HOST_CHOICE_SESSION "session"
#define EB_HOST_CHOICE_ASK "ask"
#define EB_HOST_CHOICE_LEAVE "leave"
/** EB_HOST_ADVICE: what to do where nobody can be asked. */
#define EB_HOST_ADVICE                                                                                                 \
    "An operator can add it to [egress] allow, or for this session alone: errand-box sessions allow SESSION HOST"
/** EB_HOST_ASK_MAX_NOTIFY: operators who are notified of one question. */
#define EB_HOST_ASK_MAX_NOTIFY 10

/** eb_host_ask_may_allow: pure: @author_id may allow hosts, by [egress] who_allows. @policy: (nullable): anyone may */
gboolean eb_host_ask_may_allow(const EbSessionConfig *config, const EbSessionRecord *record, const EbChatPolicy *policy,
                               const char *author_id);
/** eb_host_ask_anybody: pure: there is somebody who may. */
gboolean eb_host_ask_anybody(const EbSessionConfig *config, const EbSessionRecord *record, const EbChatPolicy *policy);

/**
 * EbHostAsk: a question in a session's thread about a host that was refused. Its first form is for everybody of the session,
 * who may ask the operators; its second is for those who may allow, and notifies them.
 *
 * Signals:
 *   "shown" (const char *message): as which it is shown; again after a restart it is taken up as that.
 *   "answered" (const char *choice (nullable), const char *by (nullable)): once, last of all: EB_HOST_CHOICE_*, or NULL:
 *       nobody answered; not after eb_host_ask_cancel() without a reason.
 */
#define EB_TYPE_HOST_ASK (eb_host_ask_get_type())
G_DECLARE_FINAL_TYPE(EbHostAsk, eb_host_ask, EB, HOST_ASK, GObject)

/** eb_host_ask_new: @policy: (nullable); @message: (nullable): of an earlier run */
EbHostAsk *eb_host_ask_new(EbChatTransport *transport, const EbSessionConfig *config, const EbSessionRecord *record,
                           const EbChatPolicy *policy, const char *host, gboolean second, const char *message);
void eb_host_ask_open(EbHostAsk *self, guint timeout_ms);
/** eb_host_ask_share: who may do what changed. */
void eb_host_ask_share(EbHostAsk *self, const EbSessionRecord *record, const EbChatPolicy *policy);
/** eb_host_ask_cancel: @why: (nullable): for people; NULL: it stays as it is for the next run */
void eb_host_ask_cancel(EbHostAsk *self, const char *why);
/** eb_host_ask_replace: another question takes its place: people see that, nobody else is told. */
void eb_host_ask_replace(EbHostAsk *self);
const char *eb_host_ask_get_host(EbHostAsk *self);
gboolean eb_host_ask_is_second(EbHostAsk *self);

G_END_DECLS
