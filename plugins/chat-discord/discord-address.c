/* SPDX-License-Identifier: MIT */
#include "discord-address.h"

/* --- what hands out the addresses --- */

#define DISCORD_TYPE_ADDRESS_ENUMERATOR (discord_address_enumerator_get_type())
G_DECLARE_FINAL_TYPE(DiscordAddressEnumerator, discord_address_enumerator, DISCORD, ADDRESS_ENUMERATOR,
                     GSocketAddressEnumerator)

struct _DiscordAddressEnumerator {
    GSocketAddressEnumerator parent_instance;
    const DiscordSite *site;         /* (unowned) */
    GSocketAddressEnumerator *inner; /* (owned) */
    GError *refusal;                 /* (nullable): of the first address that did not pass */
    gboolean any;                    /* one has passed */
};

G_DEFINE_FINAL_TYPE(DiscordAddressEnumerator, discord_address_enumerator, G_TYPE_SOCKET_ADDRESS_ENUMERATOR)

static gboolean
passes(DiscordAddressEnumerator *self, GSocketAddress *address)
{
    g_autoptr(GError) error = NULL;
    if (G_IS_INET_SOCKET_ADDRESS(address) &&
        discord_site_check_address(self->site, g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(address)),
                                   &error)) {
        self->any = TRUE;
        return TRUE;
    }
    if (self->refusal == NULL)
        self->refusal = g_steal_pointer(&error);
    return FALSE;
}

/* At the end: addresses that were all refused are an error, not just none. */
static void
report_refusal(DiscordAddressEnumerator *self, GError **error)
{
    if (!self->any && self->refusal != NULL)
        g_propagate_error(error, g_steal_pointer(&self->refusal));
}

static GSocketAddress *
enumerator_next(GSocketAddressEnumerator *enumerator, GCancellable *cancellable, GError **error)
{
    DiscordAddressEnumerator *self = DISCORD_ADDRESS_ENUMERATOR(enumerator);
    for (;;) {
        GError *inner_error = NULL;
        g_autoptr(GSocketAddress) address = g_socket_address_enumerator_next(self->inner, cancellable, &inner_error);
        if (inner_error != NULL) {
            g_propagate_error(error, inner_error);
            return NULL;
        }
        if (address == NULL) {
            report_refusal(self, error);
            return NULL;
        }
        if (passes(self, address))
            return g_steal_pointer(&address);
    }
}

static void
on_next(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    DiscordAddressEnumerator *self = g_task_get_source_object(task);
    GError *error = NULL;
    g_autoptr(GSocketAddress) address = g_socket_address_enumerator_next_finish(self->inner, result, &error);
    if (address != NULL && !passes(self, address)) {
        GCancellable *cancellable = g_task_get_cancellable(task);
        g_socket_address_enumerator_next_async(self->inner, cancellable, on_next, g_steal_pointer(&task));
        return;
    }
    if (address == NULL && error == NULL)
        report_refusal(self, &error);
    if (error != NULL)
        g_task_return_error(task, error);
    else
        g_task_return_pointer(task, g_steal_pointer(&address), g_object_unref);
}

static void
enumerator_next_async(GSocketAddressEnumerator *enumerator, GCancellable *cancellable, GAsyncReadyCallback callback,
                      gpointer user_data)
{
    DiscordAddressEnumerator *self = DISCORD_ADDRESS_ENUMERATOR(enumerator);
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, enumerator_next_async);
    g_socket_address_enumerator_next_async(self->inner, cancellable, on_next, task);
}

static GSocketAddress *
enumerator_next_finish(GSocketAddressEnumerator *enumerator, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
discord_address_enumerator_finalize(GObject *object)
{
    DiscordAddressEnumerator *self = DISCORD_ADDRESS_ENUMERATOR(object);
    g_clear_object(&self->inner);
    g_clear_error(&self->refusal);
    G_OBJECT_CLASS(discord_address_enumerator_parent_class)->finalize(object);
}

static void
discord_address_enumerator_class_init(DiscordAddressEnumeratorClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = discord_address_enumerator_finalize;
    G_SOCKET_ADDRESS_ENUMERATOR_CLASS(klass)->next = enumerator_next;
    G_SOCKET_ADDRESS_ENUMERATOR_CLASS(klass)->next_async = enumerator_next_async;
    G_SOCKET_ADDRESS_ENUMERATOR_CLASS(klass)->next_finish = enumerator_next_finish;
}

static void
discord_address_enumerator_init(DiscordAddressEnumerator *self)
{
}

/* --- the address --- */

struct _DiscordAddress {
    GNetworkAddress parent_instance;
    const DiscordSite *site; /* (unowned) */
};

static GSocketConnectableIface *network_address_iface;

static void connectable_init(GSocketConnectableIface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(DiscordAddress, discord_address, G_TYPE_NETWORK_ADDRESS,
                              G_IMPLEMENT_INTERFACE(G_TYPE_SOCKET_CONNECTABLE, connectable_init))

static GSocketAddressEnumerator *
judged(GSocketConnectable *connectable, GSocketAddressEnumerator *inner)
{
    DiscordAddressEnumerator *self = g_object_new(DISCORD_TYPE_ADDRESS_ENUMERATOR, NULL);
    self->site = DISCORD_ADDRESS(connectable)->site;
    self->inner = inner;
    return G_SOCKET_ADDRESS_ENUMERATOR(self);
}

static GSocketAddressEnumerator *
address_enumerate(GSocketConnectable *connectable)
{
    return judged(connectable, network_address_iface->enumerate(connectable));
}

static void
connectable_init(GSocketConnectableIface *iface)
{
    network_address_iface = g_type_interface_peek_parent(iface);
    iface->enumerate = address_enumerate;
    /* Without one of its own a client would ask the parent's, which asks a proxy resolver and judges nothing. */
    iface->proxy_enumerate = address_enumerate;
}

static void
discord_address_class_init(DiscordAddressClass *klass)
{
}

static void
discord_address_init(DiscordAddress *self)
{
}

GSocketConnectable *
discord_address_new(const DiscordSite *site, const char *host, guint16 port)
{
    DiscordAddress *self = g_object_new(DISCORD_TYPE_ADDRESS, "hostname", host, "port", (guint)port, NULL);
    self->site = site;
    return G_SOCKET_CONNECTABLE(self);
}
