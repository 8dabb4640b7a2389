/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-guest-rules.h"

/* --- the broker is told --- */

static void
on_told(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbGuest) self = user_data;
    g_autoptr(GError) error = NULL;

    if (!self->parts->broker->update_finish(source, result, &error) && error->code != EB_ERROR_CANCELLED)
        eb_warning("session %s goes on with the rules it had: %s", self->id, error->message);
}

void
eb_guest_tell_broker(EbGuest *self)
{
    if (self->broker != NULL && self->rules != NULL)
        self->parts->broker->update_async(self->broker, self->rules, NULL, on_told, eb_guest_ref(self));
}

/* --- keys --- */

typedef struct {
    EbGuest *guest;
    char *provider;
    char *name; /* of the credential */
} KeyLookup;

static void
key_lookup_free(KeyLookup *self)
{
    eb_guest_unref(self->guest);
    g_free(self->provider);
    g_free(self->name);
    g_free(self);
}

static EbBrokerProvider *
find_provider(const EbGuest *self, const char *name)
{
    for (guint i = 0; self->rules != NULL && i < self->rules->providers->len; i++) {
        EbBrokerProvider *provider = self->rules->providers->pdata[i];
        if (g_str_equal(provider->name, name))
            return provider;
    }
    return NULL;
}

static void
on_key(GObject *source, GAsyncResult *result, gpointer user_data)
{
    KeyLookup *lookup = user_data;
    EbGuest *self = lookup->guest;
    g_autoptr(GError) error = NULL;
    g_autoptr(EbSecret) key = g_task_propagate_pointer(G_TASK(result), &error);
    EbBrokerProvider *provider = find_provider(self, lookup->provider);

    if (key == NULL || !eb_broker_rules_check_key(key, lookup->name, &error)) {
        eb_warning("session %s keeps the key of provider %s that it has: %s", self->id, lookup->provider,
                   error->message);
    } else if (provider != NULL && self->broker != NULL && !eb_secret_equal(provider->key, key)) {
        /* Masked before anything can answer with it. */
        eb_redact_set_add(self->secrets, key);
        eb_secret_unref(provider->key);
        provider->key = g_steal_pointer(&key);
        eb_guest_tell_broker(self);
        eb_info("session %s: provider %s has a new key", self->id, lookup->provider);
    }
    key_lookup_free(lookup);
}

void
eb_guest_refresh_keys(EbGuest *self, const char *name)
{
    GPtrArray *configured = eb_config_get_providers(self->parts->config);

    if (self->broker == NULL || self->rules == NULL || self->parts->lookup == NULL)
        return;
    for (guint i = 0; i < configured->len; i++) {
        const EbProviderConfig *provider = configured->pdata[i];
        if (find_provider(self, provider->name) == NULL || (name != NULL && !g_str_equal(name, provider->key_name)))
            continue;
        KeyLookup *lookup = g_new0(KeyLookup, 1);
        lookup->guest = eb_guest_ref(self);
        lookup->provider = g_strdup(provider->name);
        lookup->name = g_strdup(provider->key_name);
        GTask *task = g_task_new(NULL, NULL, on_key, lookup);
        self->parts->lookup(provider->key_name, task, self->parts->lookup_data);
    }
}
