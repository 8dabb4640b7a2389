/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker-config.h"
#include "core/broker/eb-http-front.h"

G_BEGIN_DECLS

typedef enum {
    EB_ROUTE_REFUSE,
    EB_ROUTE_OWN,       /* CONNECT to the broker itself: plain HTTP follows on this connection */
    EB_ROUTE_TUNNEL,    /* CONNECT to an allowed host */
    EB_ROUTE_FORWARD,   /* plain http to an allowed host */
    EB_ROUTE_WEBSOCKET, /* a WebSocket over plain http to an allowed host */
    EB_ROUTE_PROVIDER,  /* to the provider, with its key */
    EB_ROUTE_PROBE,     /* HEAD or GET of a provider's root: answered here */
} EbRouteKind;

/** EbRoute: what is to be done with one request. */
typedef struct {
    EbRouteKind kind;
    EbTarget target;      /* where to */
    EbProvider *provider; /* (unowned) (nullable): lives as long as the configuration */
    char *path;           /* (owned) (nullable): path and query to send, credentials taken out */
    const char *rule;     /* (unowned) (nullable) */
    EbRefusal refusal;    /* with EB_ROUTE_REFUSE */
} EbRoute;

void eb_route_clear(EbRoute *self);

/**
 * eb_route_request: decides, without any I/O.
 * @inner: the request came through a CONNECT to the broker itself: no proxy requests any more
 */
void eb_route_request(EbBrokerConfig *config, const EbHttpRequest *request, gboolean inner, EbRoute *route);

/** eb_route_header_passes: FALSE for what must not go up: hop-by-hop, and for a provider every credential. */
gboolean eb_route_header_passes(const EbRoute *route, const EbHttpHeader *header);

/**
 * eb_route_join: (transfer full) (nullable): @base_path and @rest, which begins with a slash; a version segment that
 * ends the base and begins the rest ("/v1" + "/v1/x") stands once. NULL when @rest could climb out of the base.
 */
char *eb_route_join(const char *base_path, const char *rest);

G_END_DECLS
