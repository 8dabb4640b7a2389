/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-broker-ctl.h"

static void
provider_free(gpointer data)
{
    EbBrokerProvider *self = data;

    g_free(self->name);
    g_free(self->kind);
    g_free(self->base_url);
    g_clear_pointer(&self->key, eb_secret_unref);
    g_clear_pointer(&self->nonce, eb_secret_unref);
    g_free(self);
}

EbBrokerRules *
eb_broker_rules_new(const char *session)
{
    EbBrokerRules *self = g_new0(EbBrokerRules, 1);

    self->session = g_strdup(session);
    self->relay_port = EB_RELAY_PORT;
    self->providers = g_ptr_array_new_with_free_func(provider_free);
    return self;
}

void
eb_broker_rules_add_provider(EbBrokerRules *self, const char *name, const char *kind, const char *base_url,
                             EbSecret *key, EbSecret *nonce)
{
    EbBrokerProvider *provider = g_new0(EbBrokerProvider, 1);

    provider->name = g_strdup(name);
    provider->kind = g_strdup(kind);
    provider->base_url = g_strdup(base_url);
    provider->key = eb_secret_ref(key);
    provider->nonce = eb_secret_ref(nonce);
    g_ptr_array_add(self->providers, provider);
}

gboolean
eb_broker_rules_check_key(EbSecret *key, const char *name, GError **error)
{
    g_auto(EbSecretView) view = eb_secret_view(key);

    for (gsize i = 0; i < view.length; i++)
        if (view.bytes[i] <= ' ' || view.bytes[i] > '~') {
            eb_set_error(error, EB_ERROR_CONFIG, "credential.unsendable",
                         "credential \"%s\" has a blank, a line break or another sign that no header takes (errand-box "
                         "creds set %s)",
                         name, name);
            return FALSE;
        }
    return TRUE;
}

EbBrokerRules *
eb_broker_rules_copy(const EbBrokerRules *self)
{
    EbBrokerRules *copy = eb_broker_rules_new(self->session);

    copy->proxy = self->proxy;
    copy->allow = g_strdupv(self->allow);
    copy->ports = self->n_ports > 0 ? g_memdup2(self->ports, self->n_ports * sizeof *self->ports) : NULL;
    copy->n_ports = self->n_ports;
    copy->allow_internal = self->allow_internal;
    copy->ca_pem = self->ca_pem != NULL ? g_bytes_ref(self->ca_pem) : NULL;
    copy->relay_port = self->relay_port;
    copy->canary = self->canary != NULL ? eb_secret_ref(self->canary) : NULL;
    copy->budget = self->budget;
    copy->reserve = self->reserve;
    copy->overshoot = self->overshoot;
    for (guint i = 0; i < self->providers->len; i++) {
        EbBrokerProvider *provider = self->providers->pdata[i];

        eb_broker_rules_add_provider(copy, provider->name, provider->kind, provider->base_url, provider->key,
                                     provider->nonce);
    }
    return copy;
}

void
eb_broker_rules_free(EbBrokerRules *self)
{
    if (self == NULL)
        return;
    g_free(self->session);
    g_strfreev(self->allow);
    g_free(self->ports);
    g_clear_pointer(&self->ca_pem, g_bytes_unref);
    g_ptr_array_unref(self->providers);
    eb_secret_unref(self->canary);
    g_free(self);
}
