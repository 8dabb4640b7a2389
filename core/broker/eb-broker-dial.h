/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker.h"

G_BEGIN_DECLS

/** EB_DIAL_MAX_ADDRESSES: addresses of one name that are tried. */
#define EB_DIAL_MAX_ADDRESSES 8

typedef struct _EbDial EbDial;

/**
 * EbDialFunc: @fd: (transfer full): connected, non-blocking; -1 with @refusal. The dial is gone afterwards.
 */
typedef void (*EbDialFunc)(gpointer user_data, int fd, const EbAddress *address, const EbRefusal *refusal);

/**
 * eb_dial_start: resolves the target once, judges every address, and dials exactly the judged ones, so that a second
 * look-up cannot lead elsewhere.
 * @slot: (out): where the caller keeps the running dial; NULL again right before @func is called, which may be before
 *   this returns
 */
void eb_dial_start(EbBroker *broker, EbBrokerConfig *config, const EbTarget *target, EbDialFunc func,
                   gpointer user_data, EbDial **slot);
/** eb_dial_tick: looks at the deadlines; may call the function. */
void eb_dial_tick(EbDial *self, gint64 now);
/** eb_dial_cancel: @func is not called any more. */
void eb_dial_cancel(EbDial *self);

/**
 * eb_dial_select: the pure part: which of @addresses (element-type GInetAddress) may be dialled for @target, families
 * in turn. Returns: how many were put into @chosen (EB_DIAL_MAX_ADDRESSES).
 */
guint eb_dial_select(EbPolicy *policy, const EbTarget *target, GList *addresses, EbAddress *chosen);

/** eb_address_from_inet: FALSE for a family that is neither IPv4 nor IPv6. */
gboolean eb_address_from_inet(GInetAddress *inet, EbAddress *address);

G_END_DECLS
