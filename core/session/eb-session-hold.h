/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-session-manager.h"

G_BEGIN_DECLS

/** EbHoldSource: who can hold new sessions; each has one reason at a time. The first one gives a refusal its code. */
typedef enum {
    EB_HOLD_WATCHDOG = 0, /* the container daemon does not answer */
    EB_HOLD_SPACE,        /* the disk is nearly full */
    EB_HOLD_DOCTOR,       /* a check says that sessions would not work, or not be safe */
    EB_N_HOLD_SOURCES,
} EbHoldSource;

/** EB_HOLD_MAX_REASON: bytes of one source's reason; longer ones are cut. */
#define EB_HOLD_MAX_REASON 700
/** EB_HOLD_SETTLE_US: a hold that is over within this time, or back, is not told in threads. */
#define EB_HOLD_SETTLE_US ((gint64)2 * G_USEC_PER_SEC)
/** EB_HOLD_MAX_NOTICES, EB_HOLD_NOTICE_US: so many notices may follow each other; then one comes due in that time. */
#define EB_HOLD_MAX_NOTICES 2
#define EB_HOLD_NOTICE_US ((gint64)5 * 60 * G_USEC_PER_SEC)

/** EB_HOLD_MAX_REFUSED: places where somebody was refused that are told when it is over. */
#define EB_HOLD_MAX_REFUSED 32

/** EbHoldNotice: what the threads are to be told. */
typedef enum { EB_HOLD_NOTICE_NONE = 0, EB_HOLD_NOTICE_BEGUN, EB_HOLD_NOTICE_OVER } EbHoldNotice;

/**
 * EbSessionHold: whether new sessions may start, and when the threads are told that they may not. Pure: the time is given.
 *
 * Notices are damped: a change must stand for EB_HOLD_SETTLE_US, and a condition that comes and goes is told at most
 * EB_HOLD_MAX_NOTICES times and then once in EB_HOLD_NOTICE_US, as it stands then.
 */
typedef struct _EbSessionHold EbSessionHold;
EbSessionHold *eb_session_hold_new(void);
void eb_session_hold_free(EbSessionHold *self);
/**
 * eb_session_hold_set: @why: (nullable) (transfer none): NULL = that source holds no more. TRUE when anything changed.
 * @now_us: monotonic
 */
gboolean eb_session_hold_set(EbSessionHold *self, EbHoldSource source, const GError *why, gint64 now_us);
gboolean eb_session_hold_is_held(const EbSessionHold *self);
/** eb_session_hold_is_told: the threads were told that it began, and not yet that it is over. */
gboolean eb_session_hold_is_told(const EbSessionHold *self);
/** eb_session_hold_describe: (transfer full) (nullable): all reasons in one line; NULL when nothing holds. */
char *eb_session_hold_describe(const EbSessionHold *self);
/** eb_session_hold_check: FALSE with the refusal: code of the first source, reason "session.hold". */
gboolean eb_session_hold_check(const EbSessionHold *self, GError **error);
/** eb_session_hold_next: the notice that is due; @wait_us: (out): when to ask again, -1 = not before a change. */
EbHoldNotice eb_session_hold_next(EbSessionHold *self, gint64 now_us, gint64 *wait_us);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbSessionHold, eb_session_hold_free)

/**
 * eb_session_manager_set_hold: while any source holds, new sessions are refused and sleeping ones are not continued, with
 * the reason; starts that wait for a place already go on waiting, as long as the queue lets them; sessions that run go on.
 * Live threads are told once when it begins and once when it is over, which is told where people were refused too.
 * @why: (nullable) (transfer none): its message is one line for people that names the cause and what an operator does
 *     about it; NULL = over
 */
void eb_session_manager_set_hold(EbSessionManager *self, EbHoldSource source, const GError *why);
/** eb_session_manager_check_hold: FALSE with the refusal when no session may start. */
gboolean eb_session_manager_check_hold(EbSessionManager *self, GError **error);
/** eb_session_manager_describe_hold: (transfer full) (nullable) */
char *eb_session_manager_describe_hold(EbSessionManager *self);
/** eb_session_manager_tell_live: a notice in each live thread. */
void eb_session_manager_tell_live(EbSessionManager *self, const char *text);

G_END_DECLS
