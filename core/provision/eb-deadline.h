/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbDeadline: a cancellable for blocking calls of a worker thread that is cancelled at a time, by a thread of its own:
 * libsoup's timeout restarts with every byte, and no main loop runs beside a call that blocks.
 */
typedef struct _EbDeadline EbDeadline;

/** eb_deadline_new: @leader: (nullable): when it is cancelled, so is this. @ms: from now */
EbDeadline *eb_deadline_new(GCancellable *leader, guint ms);
/** eb_deadline_free: nothing is cancelled by it afterwards. */
void eb_deadline_free(EbDeadline *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbDeadline, eb_deadline_free)

/** eb_deadline_get_cancellable: (transfer none) */
GCancellable *eb_deadline_get_cancellable(EbDeadline *self);
/** eb_deadline_is_over: was it the time, and not the leader? */
gboolean eb_deadline_is_over(EbDeadline *self);

G_END_DECLS
