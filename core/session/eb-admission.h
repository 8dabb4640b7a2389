/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbAdmission: places of one kind (live sessions, running turns) and the bounded queue for them.
 *
 * Fair: who waits is served in rounds, one of each owner a round, in the order of arrival within a round; places an owner
 * holds already count as rounds it had. So one owner with many errands does not keep the others out.
 */
#define EB_TYPE_ADMISSION (eb_admission_get_type())
G_DECLARE_FINAL_TYPE(EbAdmission, eb_admission, EB, ADMISSION, GObject)

/**
 * eb_admission_new:
 * @what: for messages: "session" or "turn"
 * @places: at least 1
 * @max_queue: who may wait; more get EB_ERROR_QUOTA "admission.full"
 * @max_wait_ms: who waited longer gets EB_ERROR_TIMEOUT "admission.expired"
 */
EbAdmission *eb_admission_new(const char *what, guint places, guint max_queue, guint64 max_wait_ms);

/** EbAdmissionPosition: tells a waiter its position from 1, only when it has changed; never before acquire returned. */
typedef void (*EbAdmissionPosition)(guint position, gpointer user_data);

/** EbTicket: one held place; freeing gives it back. */
typedef struct _EbTicket EbTicket;
void eb_ticket_free(EbTicket *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbTicket, eb_ticket_free)

/** eb_admission_acquire_async: @position: (nullable): called with @user_data until the callback was. */
void eb_admission_acquire_async(EbAdmission *self, const char *owner, EbAdmissionPosition position,
                                GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/** eb_admission_acquire_finish: (transfer full) (nullable) */
EbTicket *eb_admission_acquire_finish(EbAdmission *self, GAsyncResult *result, GError **error);

/**
 * eb_admission_pause: gives no places until it is let go on; who comes waits, and is told @why when it gives up.
 * @why: (nullable): one line for people; NULL = it goes on
 */
void eb_admission_pause(EbAdmission *self, const char *why);

guint eb_admission_get_held(EbAdmission *self);
guint eb_admission_get_waiting(EbAdmission *self);

G_END_DECLS
