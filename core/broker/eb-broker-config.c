/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-broker-config.h"

#include <string.h>

static void
provider_free(gpointer data)
{
    EbProvider *self = data;

    g_free(self->name);
    g_free(self->base_path);
    g_clear_pointer(&self->key, eb_secret_unref);
    g_clear_pointer(&self->nonce, eb_secret_unref);
    g_free(self);
}

EbBrokerConfig *
eb_broker_config_ref(EbBrokerConfig *self)
{
    g_atomic_ref_count_inc(&self->refs);
    return self;
}

void
eb_broker_config_unref(EbBrokerConfig *self)
{
    if (self == NULL || !g_atomic_ref_count_dec(&self->refs))
        return;
    g_free(self->session);
    g_clear_pointer(&self->policy, eb_policy_unref);
    g_ptr_array_unref(self->providers);
    eb_redact_set_unref(self->canary);
    g_free(self);
}

EbProvider *
eb_broker_config_find(EbBrokerConfig *self, const char *name, gsize length)
{
    for (guint i = 0; i < self->providers->len; i++) {
        EbProvider *provider = self->providers->pdata[i];

        if (strlen(provider->name) == length && memcmp(provider->name, name, length) == 0)
            return provider;
    }
    return NULL;
}

static gboolean
is_loopback(const EbTarget *target)
{
    static const EbAddress V6_LOOPBACK = {16, {[15] = 1}};

    if (!target->literal)
        return FALSE;
    return target->address.length == 4 ? target->address.bytes[0] == 127
                                       : eb_address_equal(&target->address, &V6_LOOPBACK);
}

gboolean
eb_provider_set_url(EbProvider *self, const char *base_url, GError **error)
{
    const char *why = "it is neither an https URL nor http to a loopback address", *rest, *path;
    gboolean good = FALSE, tls = TRUE;
    EbTarget target;
    gsize length;

    if (g_ascii_strncasecmp(base_url, "https://", 8) == 0) {
        rest = base_url + 8;
    } else {
        tls = FALSE;
        rest = g_ascii_strncasecmp(base_url, "http://", 7) == 0 ? base_url + 7 : NULL;
    }
    if (rest != NULL) {
        path = strchr(rest, '/');
        path = path != NULL ? path : rest + strlen(rest);
        good = eb_target_parse(rest, (gsize)(path - rest), tls ? 443 : 80, &target, &why);
        if (good && !tls && !is_loopback(&target)) {
            good = FALSE;
            why = "http is accepted for a loopback address alone";
        }
        if (good && strpbrk(path, "?#\\ %") != NULL) {
            good = FALSE;
            why = "its path holds more than plain segments";
        }
    }
    if (!good) {
        eb_set_error(error, EB_ERROR_CONFIG, "broker.provider-url", "base URL of provider %s cannot be used: %s",
                     self->name, why);
        return FALSE;
    }
    for (length = strlen(path); length > 0 && path[length - 1] == '/';)
        length--;
    self->tls = tls;
    self->host = target;
    g_free(self->base_path);
    self->base_path = g_strndup(path, length);
    return TRUE;
}

/* --- the stage --- */

struct _EbBrokerStage {
    gboolean open;
    guint64 serial;
    guint32 flags;
    guint16 relay_port;
    guint64 reserve, overshoot;
    char *session;
    guint n_ports;
    guint16 ports[EB_POLICY_MAX_PORTS];
    GPtrArray *allow;     /* (element-type utf8) */
    GPtrArray *providers; /* (element-type EbProvider) */
    EbRedactSet *canary;  /* (owned) (nullable) */
};

EbBrokerStage *
eb_broker_stage_new(void)
{
    EbBrokerStage *self = g_new0(EbBrokerStage, 1);

    self->allow = g_ptr_array_new_with_free_func(g_free);
    self->providers = g_ptr_array_new_with_free_func(provider_free);
    return self;
}

static void
stage_reset(EbBrokerStage *self)
{
    self->open = FALSE;
    self->n_ports = 0;
    g_clear_pointer(&self->session, g_free);
    g_clear_pointer(&self->canary, eb_redact_set_unref);
    g_ptr_array_set_size(self->allow, 0);
    g_ptr_array_set_size(self->providers, 0);
}

void
eb_broker_stage_free(EbBrokerStage *self)
{
    if (self == NULL)
        return;
    stage_reset(self);
    g_ptr_array_unref(self->allow);
    g_ptr_array_unref(self->providers);
    g_free(self);
}

static gboolean
refuse(GError **error, const char *what)
{
    eb_set_error(error, EB_ERROR_PROTOCOL, "broker.rules", "broker rules: %s", what);
    return FALSE;
}

static gboolean
stage_canary(EbBrokerStage *self, const EbBrokerMsg *msg, GError **error)
{
    gsize length = 0;
    const guint8 *bytes = eb_broker_msg_bytes(msg, EB_BROKER_TAG_CANARY, &length);

    if (bytes == NULL)
        return TRUE;
    /* What is taken over is wiped in the message, which is wiped as a whole afterwards in any case. */
    g_autoptr(EbSecret) secret = eb_secret_new_take("canary", (char *)bytes, length, error);
    if (secret == NULL)
        return FALSE;
    self->canary = eb_redact_set_new();
    return eb_redact_set_add(self->canary, secret) || refuse(error, "the canary is too short");
}

static gboolean
stage_begin(EbBrokerStage *self, const EbBrokerMsg *msg, GError **error)
{
    gsize length;
    const guint8 *ports = eb_broker_msg_bytes(msg, EB_BROKER_TAG_PORTS, &length);

    stage_reset(self);
    self->serial = eb_broker_msg_number(msg, EB_BROKER_TAG_SERIAL, 0);
    self->flags = (guint32)eb_broker_msg_number(msg, EB_BROKER_TAG_FLAGS, 0);
    self->relay_port = (guint16)eb_broker_msg_number(msg, EB_BROKER_TAG_RELAY_PORT, 0);
    self->reserve = eb_broker_msg_number(msg, EB_BROKER_TAG_RESERVE, 0);
    self->overshoot = eb_broker_msg_number(msg, EB_BROKER_TAG_OVERSHOOT, 0);
    self->session = eb_broker_msg_string(msg, EB_BROKER_TAG_SESSION);
    if (self->session == NULL)
        return refuse(error, "no session is named");
    if (!stage_canary(self, msg, error))
        return FALSE;
    if (length % 2 != 0 || length / 2 > EB_POLICY_MAX_PORTS)
        return refuse(error, "too many ports");
    for (gsize i = 0; i + 1 < length; i += 2)
        self->ports[self->n_ports++] = (guint16)(ports[i] | ports[i + 1] << 8);
    self->open = TRUE;
    return TRUE;
}

static gboolean
stage_allow(EbBrokerStage *self, const EbBrokerMsg *msg, GError **error)
{
    for (guint i = 0; i < msg->n_fields; i++) {
        if (msg->fields[i].tag != EB_BROKER_TAG_HOST)
            continue;
        if (self->allow->len >= EB_POLICY_MAX_RULES)
            return refuse(error, "too many hosts");
        if (msg->fields[i].length > EB_HOST_MAX + 2)
            return refuse(error, "a host is too long");
        g_ptr_array_add(self->allow, g_strndup((const char *)msg->fields[i].bytes, msg->fields[i].length));
    }
    return TRUE;
}

static gboolean
parse_kind(const char *text, EbProviderKind *kind)
{
    static const char *const KINDS[] = {"openai", "anthropic", "gemini"};

    for (guint i = 0; text != NULL && i < G_N_ELEMENTS(KINDS); i++) {
        if (strcmp(text, KINDS[i]) == 0) {
            *kind = (EbProviderKind)i;
            return TRUE;
        }
    }
    return FALSE;
}

static gboolean
stage_provider(EbBrokerStage *self, const EbBrokerMsg *msg, GError **error)
{
    g_autofree char *kind = eb_broker_msg_string(msg, EB_BROKER_TAG_KIND);
    g_autofree char *url = eb_broker_msg_string(msg, EB_BROKER_TAG_URL);
    EbProvider *provider;

    if (self->providers->len >= EB_BROKER_MAX_PROVIDERS)
        return refuse(error, "too many providers");
    provider = g_new0(EbProvider, 1);
    g_ptr_array_add(self->providers, provider);
    provider->name = eb_broker_msg_string(msg, EB_BROKER_TAG_NAME);
    if (provider->name == NULL || provider->name[0] == '\0' || strpbrk(provider->name, "/?%#") != NULL)
        return refuse(error, "a provider has no usable name");
    if (!parse_kind(kind, &provider->kind))
        return refuse(error, "a provider's kind is unknown");
    return url != NULL ? eb_provider_set_url(provider, url, error) : refuse(error, "a provider has no URL");
}

static gboolean
stage_secret(EbBrokerStage *self, const EbBrokerMsg *msg, GError **error)
{
    g_autofree char *name = eb_broker_msg_string(msg, EB_BROKER_TAG_NAME);
    EbProvider *provider = self->providers->len > 0 ? self->providers->pdata[self->providers->len - 1] : NULL;
    EbSecret **slot;
    EbSecret *secret;
    gsize length;
    const guint8 *bytes = eb_broker_msg_bytes(msg, EB_BROKER_TAG_SECRET, &length);

    if (provider == NULL || g_strcmp0(provider->name, name) != 0 || bytes == NULL)
        return refuse(error, "a secret belongs to no provider");
    /* Wipes the bytes in the message buffer. */
    secret = eb_secret_new_take(msg->type == EB_BROKER_MSG_KEY ? "key" : "nonce", (char *)bytes, length, error);
    if (secret == NULL)
        return FALSE;
    slot = msg->type == EB_BROKER_MSG_KEY ? &provider->key : &provider->nonce;
    g_clear_pointer(slot, eb_secret_unref);
    *slot = secret;
    return TRUE;
}

static EbBrokerConfig *
stage_commit(EbBrokerStage *self, GError **error)
{
    g_autoptr(EbPolicy) policy = NULL;
    EbBrokerConfig *config;

    for (guint i = 0; i < self->providers->len; i++) {
        EbProvider *provider = self->providers->pdata[i];

        if (provider->key == NULL || provider->nonce == NULL) {
            refuse(error, "a provider has no key or no nonce");
            return NULL;
        }
    }
    g_ptr_array_add(self->allow, NULL);
    policy = eb_policy_new((self->flags & EB_BROKER_FLAG_PROXY) != 0, (const char *const *)self->allow->pdata,
                           self->ports, self->n_ports, (self->flags & EB_BROKER_FLAG_ALLOW_INTERNAL) != 0, error);
    if (policy == NULL)
        return NULL;
    config = g_new0(EbBrokerConfig, 1);
    g_atomic_ref_count_init(&config->refs);
    config->serial = self->serial;
    config->session = g_steal_pointer(&self->session);
    config->relay_port = self->relay_port;
    config->budget = (self->flags & EB_BROKER_FLAG_BUDGET) != 0;
    config->reserve = MIN(self->reserve, EB_BROKER_MAX_TOKENS);
    config->overshoot = MIN(self->overshoot, EB_BROKER_MAX_TOKENS);
    config->policy = g_steal_pointer(&policy);
    config->canary = g_steal_pointer(&self->canary);
    config->providers = g_steal_pointer(&self->providers);
    self->providers = g_ptr_array_new_with_free_func(provider_free);
    stage_reset(self);
    return config;
}

gboolean
eb_broker_stage_take(EbBrokerStage *self, const EbBrokerMsg *msg, EbBrokerConfig **config, guint64 *serial,
                     GError **error)
{
    gboolean good = FALSE;

    *config = NULL;
    if (msg->type != EB_BROKER_MSG_BEGIN && !self->open) {
        *serial = eb_broker_msg_number(msg, EB_BROKER_TAG_SERIAL, self->serial);
        return refuse(error, "no transaction is open");
    }
    switch ((int)msg->type) {
    case EB_BROKER_MSG_BEGIN:
        good = stage_begin(self, msg, error);
        break;
    case EB_BROKER_MSG_ALLOW:
        good = stage_allow(self, msg, error);
        break;
    case EB_BROKER_MSG_PROVIDER:
        good = stage_provider(self, msg, error);
        break;
    case EB_BROKER_MSG_KEY:
    case EB_BROKER_MSG_NONCE:
        good = stage_secret(self, msg, error);
        break;
    case EB_BROKER_MSG_COMMIT:
        *config = stage_commit(self, error);
        good = *config != NULL;
        break;
    default:
        good = refuse(error, "unexpected message");
    }
    *serial = self->serial;
    if (!good)
        stage_reset(self);
    return good;
}
