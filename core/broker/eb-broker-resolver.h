/* SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * EbBrokerResolver: resolves through another resolver and leaves out every address that is not of the public internet,
 * for the client library, which dials what it is given: there is no second look-up that could answer differently.
 */
#define EB_TYPE_BROKER_RESOLVER (eb_broker_resolver_get_type())
G_DECLARE_FINAL_TYPE(EbBrokerResolver, eb_broker_resolver, EB, BROKER_RESOLVER, GResolver)

/** eb_broker_resolver_new: @inner: (transfer none) */
GResolver *eb_broker_resolver_new(GResolver *inner);
/** eb_broker_resolver_filter: (transfer full) (nullable): @addresses: (transfer full); NULL with @error when all are
 *  internal. */
GList *eb_broker_resolver_filter(GList *addresses, GError **error);

G_END_DECLS
