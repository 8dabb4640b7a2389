/* SPDX-License-Identifier: MIT */
/* A request to a provider waits until the service has granted it. */
#include "core/broker/eb-front-conn-private.h"

static void
conn_on_granted(gpointer user_data, const EbRefusal *refusal)
{
    EbFrontConn *self = user_data;

    self->holds++;
    if (refusal != NULL)
        eb_front_conn_refuse_now(self, refusal);
    else if (self->peer_ended && self->body_done)
        eb_front_conn_destroy(self);
    else
        eb_front_conn_exchange(self, &self->asked);
    eb_route_clear(&self->asked);
    self->holds--;
    eb_front_conn_release(self);
}

gboolean
eb_front_conn_meter(EbFrontConn *self, EbRoute *route)
{
    EbRefusal refusal;

    /* What they hold of their bodies while they wait is bounded as what exchanges hold is. */
    if (g_hash_table_size(self->broker->meters) >= EB_BROKER_MAX_EXCHANGES) {
        eb_refusal_set(&refusal, EB_REFUSAL_BUSY, NULL, NULL);
        eb_front_conn_refuse_now(self, &refusal);
        return FALSE;
    }
    /* Its limits are in its body: what is here, or comes with the next bytes, is looked at. */
    if (self->readable && !self->body_done && (self->in == NULL || self->in->len < EB_METER_PEEK))
        eb_front_conn_receive(self, EB_METER_PEEK);
    switch (eb_meter_start(self->broker, self->config, route->provider, self->request, route->path,
                           self->in != NULL ? (const char *)self->in->data : "", self->in != NULL ? self->in->len : 0,
                           conn_on_granted, self, &self->meter, &refusal)) {
    case EB_METER_ASKED:
        self->state = EB_FRONT_DIAL;
        self->asked = *route;
        route->path = NULL;
        return FALSE;
    case EB_METER_REFUSED:
        eb_front_conn_refuse_now(self, &refusal);
        return FALSE;
    case EB_METER_GO:
    default:
        return TRUE;
    }
}

static void
conn_on_granted_late(gpointer user_data, const EbRefusal *refusal)
{
    EbFrontConn *self = user_data;

    self->holds++;
    self->body_held = FALSE;
    if (refusal != NULL)
        eb_front_conn_refuse_held(self, refusal);
    else if (self->exchange != NULL)
        eb_exchange_body_ready(self->exchange);
    self->holds--;
    eb_front_conn_release(self);
}

gboolean
eb_front_conn_meter_body(EbFrontConn *self, const char *bytes, gsize length, gboolean last)
{
    EbRefusal refusal;

    if (self->meter == NULL)
        return TRUE;
    switch (eb_meter_take_body(self->meter, bytes, length, last, conn_on_granted_late, self, &refusal)) {
    case EB_METER_ASKED:
        self->body_held = TRUE;
        return FALSE;
    case EB_METER_REFUSED:
        eb_front_conn_refuse_held(self, &refusal);
        return FALSE;
    case EB_METER_GO:
    default:
        return TRUE;
    }
}
