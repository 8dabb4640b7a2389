/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-broker-resolver.h"

#include "core/broker/eb-broker-dial.h"

struct _EbBrokerResolver {
    GResolver parent_instance;
    GResolver *inner; /* (owned) */
};

G_DEFINE_FINAL_TYPE(EbBrokerResolver, eb_broker_resolver, G_TYPE_RESOLVER)

GList *
eb_broker_resolver_filter(GList *addresses, GError **error)
{
    GList *kept = NULL, *next;

    for (GList *link = addresses; link != NULL; link = next) {
        EbAddress address = {0};

        next = link->next;
        if (eb_address_from_inet(link->data, &address) && eb_address_special(&address) == NULL) {
            addresses = g_list_remove_link(addresses, link);
            kept = g_list_concat(link, kept);
        }
    }
    g_resolver_free_addresses(addresses);
    if (kept == NULL)
        g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED,
                            "the name resolves to internal addresses alone");
    return g_list_reverse(kept);
}

static GList *
resolver_lookup_with_flags(GResolver *resolver, const char *hostname, GResolverNameLookupFlags flags,
                           GCancellable *cancellable, GError **error)
{
    GList *found =
        g_resolver_lookup_by_name_with_flags(EB_BROKER_RESOLVER(resolver)->inner, hostname, flags, cancellable, error);

    return found != NULL ? eb_broker_resolver_filter(found, error) : NULL;
}

static GList *
resolver_lookup(GResolver *resolver, const char *hostname, GCancellable *cancellable, GError **error)
{
    return resolver_lookup_with_flags(resolver, hostname, G_RESOLVER_NAME_LOOKUP_FLAGS_DEFAULT, cancellable, error);
}

static void
resolver_on_found(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    GList *found = g_resolver_lookup_by_name_with_flags_finish(G_RESOLVER(source), result, &error);

    if (found != NULL)
        found = eb_broker_resolver_filter(found, &error);
    if (found != NULL)
        g_task_return_pointer(task, found, (GDestroyNotify)g_resolver_free_addresses);
    else
        g_task_return_error(task, error);
}

static void
resolver_lookup_with_flags_async(GResolver *resolver, const char *hostname, GResolverNameLookupFlags flags,
                                 GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(resolver, cancellable, callback, user_data);

    g_resolver_lookup_by_name_with_flags_async(EB_BROKER_RESOLVER(resolver)->inner, hostname, flags, cancellable,
                                               resolver_on_found, task);
}

static void
resolver_lookup_async(GResolver *resolver, const char *hostname, GCancellable *cancellable,
                      GAsyncReadyCallback callback, gpointer user_data)
{
    resolver_lookup_with_flags_async(resolver, hostname, G_RESOLVER_NAME_LOOKUP_FLAGS_DEFAULT, cancellable, callback,
                                     user_data);
}

static GList *
resolver_lookup_finish(GResolver *resolver, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
eb_broker_resolver_finalize(GObject *object)
{
    g_clear_object(&EB_BROKER_RESOLVER(object)->inner);
    G_OBJECT_CLASS(eb_broker_resolver_parent_class)->finalize(object);
}

static void
eb_broker_resolver_class_init(EbBrokerResolverClass *klass)
{
    GResolverClass *resolver_class = G_RESOLVER_CLASS(klass);

    G_OBJECT_CLASS(klass)->finalize = eb_broker_resolver_finalize;
    resolver_class->lookup_by_name = resolver_lookup;
    resolver_class->lookup_by_name_async = resolver_lookup_async;
    resolver_class->lookup_by_name_finish = resolver_lookup_finish;
    resolver_class->lookup_by_name_with_flags = resolver_lookup_with_flags;
    resolver_class->lookup_by_name_with_flags_async = resolver_lookup_with_flags_async;
    resolver_class->lookup_by_name_with_flags_finish = resolver_lookup_finish;
}

static void
eb_broker_resolver_init(EbBrokerResolver *self)
{
}

GResolver *
eb_broker_resolver_new(GResolver *inner)
{
    EbBrokerResolver *self = g_object_new(EB_TYPE_BROKER_RESOLVER, NULL);

    self->inner = g_object_ref(inner);
    return G_RESOLVER(self);
}
