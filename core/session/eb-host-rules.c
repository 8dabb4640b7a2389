/* SPDX-License-Identifier: MIT */
#include "core/session/eb-host-rules.h"

#include <string.h>

#include "core/broker/eb-broker-policy.h"
#include "core/broker/eb-refusal.h"

#define MAX_SHOWN_BYTES 255

/* --- judging --- */

static gboolean
parse_host(const EbSessionConfig *config, const char *host, guint port, EbTarget *target, const char **why)
{
    guint16 fallback = port != 0 ? (guint16)port : config->n_egress_ports > 0 ? config->egress_ports[0] : 443;
    EbAddress address;

    if (eb_address_parse(host, &address) && address.length == 16) {
        g_autofree char *bracketed = g_strdup_printf("[%s]", host);
        return eb_target_parse(bracketed, strlen(bracketed), fallback, target, why);
    }
    return eb_target_parse(host, strlen(host), fallback, target, why);
}

EbHostFate
eb_host_judge(const EbSessionConfig *config, const char *host, guint port, char **normal, const char **why)
{
    EbTarget target;
    g_autoptr(EbPolicy) policy = NULL;

    if (normal != NULL)
        *normal = NULL;
    if (!parse_host(config, host, port, &target, why))
        return EB_HOST_INVALID;
    if (port != 0)
        target.port = (guint16)port;
    if (normal != NULL)
        *normal = g_strdup(target.host);
    const char *const allow[] = {target.host, NULL};
    /* Internal addresses never, whatever [egress] allow_internal says: those are for the operator's own list. */
    policy = eb_policy_new(g_strcmp0(config->egress_mode, "proxy") == 0, allow, config->egress_ports,
                           config->n_egress_ports, FALSE, NULL);
    if (policy == NULL)
        return EB_HOST_INVALID;
    switch (eb_policy_judge(policy, &target, NULL)) {
    case EB_VERDICT_ALLOWED:
        return EB_HOST_OFFER;
    case EB_VERDICT_PORT:
        return EB_HOST_PORT;
    case EB_VERDICT_CLOSED:
        return EB_HOST_CLOSED;
    case EB_VERDICT_INTERNAL:
    case EB_VERDICT_HOST:
    default:
        return EB_HOST_INTERNAL;
    }
}

char *
eb_host_check(const EbSessionConfig *config, const char *text, GError **error)
{
    g_autofree char *normal = NULL;
    g_autofree char *shown = eb_log_escape(text, -1, MAX_SHOWN_BYTES);
    const char *why = "it is none";

    switch (eb_host_judge(config, text, 0, &normal, &why)) {
    case EB_HOST_OFFER:
        return g_steal_pointer(&normal);
    case EB_HOST_PORT:
        eb_set_error(error, EB_ERROR_DENIED, "host.port",
                     "the port of %s is not open to sessions: an operator can add it to [egress] ports", shown);
        return NULL;
    case EB_HOST_CLOSED:
        eb_set_error(error, EB_ERROR_DENIED, "host.closed",
                     "sessions reach no host here: an operator can set [egress] mode to \"proxy\"");
        return NULL;
    case EB_HOST_INTERNAL:
        eb_set_error(error, EB_ERROR_DENIED, "host.internal",
                     "%s is internal, and never allowed for a session alone: see [egress] allow_internal", shown);
        return NULL;
    case EB_HOST_INVALID:
    default:
        eb_set_error(error, EB_ERROR_INVALID, "host.invalid",
                     "\"%s\" is no host: %s (write the host alone, as in example.com)", shown, why);
        return NULL;
    }
}

/* --- what is told --- */

void
eb_host_notice_free(EbHostNotice *self)
{
    if (self == NULL)
        return;
    g_free(self->key);
    g_free(self->text);
    g_free(self->host);
    g_free(self);
}

static gboolean
is_code(const char *code, EbRefusalCode expected)
{
    return g_str_equal(code, eb_refusal_token(expected));
}

static EbHostNotice *
notice_of_host(const EbSessionConfig *config, const char *host, guint port)
{
    g_autofree char *normal = NULL;
    EbHostFate fate = eb_host_judge(config, host, port, &normal, NULL);
    EbHostNotice *self;

    if (fate == EB_HOST_INVALID)
        return NULL;
    self = g_new0(EbHostNotice, 1);
    self->offer = fate == EB_HOST_OFFER;
    self->key = self->offer ? g_strdup(normal) : g_strdup_printf("%u %s", (guint)fate, normal);
    self->host = self->offer ? g_strdup(normal) : NULL;
    switch (fate) {
    case EB_HOST_PORT:
        self->text =
            g_strdup_printf("The agent asked for %s at port %u and was refused: the port is not open to sessions. "
                            "An operator can add it to [egress] ports.",
                            normal, port);
        break;
    case EB_HOST_INTERNAL:
        self->text = g_strdup_printf("The agent asked for %s and was refused: it is internal.", normal);
        break;
    case EB_HOST_CLOSED:
        self->text = g_strdup_printf(
            "The agent asked for %s and was refused: sessions reach no host here ([egress] mode).", normal);
        break;
    case EB_HOST_OFFER:
    case EB_HOST_INVALID:
    default:
        self->text =
            g_strdup_printf("The agent asked for %s and was refused: it is not on this session's list.", normal);
        break;
    }
    return self;
}

/* What a guest calls a provider or a host is shown to people, in a chat that reads marks in text. */
static gboolean
is_plain(const char *name)
{
    for (const char *c = name; *c != '\0'; c++)
        if (!g_ascii_isalnum(*c) && strchr("-._:[]", *c) == NULL)
            return FALSE;
    return *name != '\0' && strlen(name) <= MAX_SHOWN_BYTES;
}

EbHostNotice *
eb_host_notice_new(const EbSessionConfig *config, const char *host, guint port, const char *code)
{
    const char *shown = is_plain(host) ? host : "with a name that is none";
    char *text;

    if (is_code(code, EB_REFUSAL_PROVIDER_UNKNOWN))
        text = g_strdup_printf("The agent asked for the model provider %s, which this session does not have.", shown);
    else if (is_code(code, EB_REFUSAL_NONCE))
        text = g_strdup_printf("Something in the guest showed the model provider %s a key that is not this session's.",
                               shown);
    else if (is_code(code, EB_REFUSAL_PROVIDER_HOST))
        text = g_strdup_printf("The agent asked for %s past its route: it does not use the base URL that it was given.",
                               shown);
    else
        return notice_of_host(config, host, port);
    EbHostNotice *self = g_new0(EbHostNotice, 1);
    self->key = g_strdup_printf("%s %s", code, shown);
    self->text = text;
    return self;
}

/* --- once --- */

static void
once_free(gpointer data)
{
    EbHostOnce *self = data;
    g_free(self->host);
    g_free(self);
}

GPtrArray *
eb_host_once_list_new(void)
{
    return g_ptr_array_new_with_free_func(once_free);
}

gboolean
eb_host_once_add(GPtrArray *once, const char *host, gint64 now_us)
{
    EbHostOnce *found = NULL;

    for (guint i = 0; found == NULL && i < once->len; i++)
        if (g_str_equal(((EbHostOnce *)once->pdata[i])->host, host))
            found = once->pdata[i];
    if (found == NULL && once->len >= EB_HOST_MAX_ONCE)
        return FALSE;
    if (found == NULL) {
        found = g_new0(EbHostOnce, 1);
        found->host = g_strdup(host);
        g_ptr_array_add(once, found);
    }
    found->until_us = now_us + EB_HOST_ONCE_S * G_USEC_PER_SEC;
    return TRUE;
}

gboolean
eb_host_once_prune(GPtrArray *once, gint64 now_us, gint64 *next_us)
{
    guint before = once->len;

    *next_us = 0;
    for (guint i = 0; i < once->len;) {
        const EbHostOnce *one = once->pdata[i];
        if (one->until_us <= now_us) {
            g_ptr_array_remove_index(once, i);
            continue;
        }
        if (*next_us == 0 || one->until_us < *next_us)
            *next_us = one->until_us;
        i++;
    }
    return once->len != before;
}

void
eb_host_rules_set(EbBrokerRules *rules, const EbSessionConfig *config, const GPtrArray *hosts, const GPtrArray *once)
{
    g_autoptr(GStrvBuilder) allow = g_strv_builder_new();

    g_strv_builder_addv(allow, (const char **)config->egress_allow);
    for (guint i = 0; i < hosts->len; i++)
        g_strv_builder_add(allow, ((const EbSessionRule *)hosts->pdata[i])->rule);
    for (guint i = 0; i < once->len; i++)
        g_strv_builder_add(allow, ((const EbHostOnce *)once->pdata[i])->host);
    g_strfreev(rules->allow);
    rules->allow = g_strv_builder_end(allow);
}

/* --- pace --- */

gboolean
eb_host_pace_take(EbHostPace *self, gint64 now_us, gint64 *wait_us)
{
    const gint64 step = EB_HOST_LINES_S * G_USEC_PER_SEC;

    while (self->burst > 0 && now_us - self->since_us >= step) {
        self->burst--;
        self->since_us += step;
    }
    if (self->said >= EB_HOST_MAX_LINES) {
        *wait_us = -1;
        return FALSE;
    }
    if (self->burst >= EB_HOST_LINES_BURST) {
        *wait_us = self->since_us + step - now_us;
        return FALSE;
    }
    if (self->burst == 0)
        self->since_us = now_us;
    self->burst++;
    self->said++;
    *wait_us = 0;
    return TRUE;
}
