/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-broker-policy.h"

#include <string.h>

#include "core/base/eb-hostname.h"

struct _EbPolicy {
    gatomicrefcount refs;
    gboolean proxy;
    gboolean allow_internal;
    GHashTable *exact;  /* (element-type utf8 utf8): host -> rule as written */
    GHashTable *suffix; /* (element-type utf8 utf8): domain -> rule as written */
    guint n_ports;
    guint16 ports[EB_POLICY_MAX_PORTS];
};

/* --- targets --- */

/* The last label decides whether a resolver reads a name as a number (as browsers do): digits, or 0x and hex. */
static gboolean
ends_in_number(const char *host)
{
    const char *label = strrchr(host, '.');

    label = label != NULL ? label + 1 : host;
    if (strspn(label, "0123456789") == strlen(label))
        return TRUE;
    return label[0] == '0' && label[1] == 'x' && strspn(label + 2, "0123456789abcdef") == strlen(label + 2);
}

static gboolean
check_labels(const char *host, const char **why)
{
    gsize label = 0;

    for (const char *c = host;; c++) {
        if (*c == '.' || *c == '\0') {
            if (label == 0 || label > 63) {
                *why = "a label of the host is empty or longer than 63 bytes";
                return FALSE;
            }
            if (c[-1] == '-' || c[-(gssize)label] == '-') {
                *why = "a label of the host begins or ends with a hyphen";
                return FALSE;
            }
            if (*c == '\0')
                return TRUE;
            label = 0;
        } else if (g_ascii_isalnum(*c) || *c == '-' || *c == '_') {
            label++;
        } else {
            *why = "the host holds a character that names do not have (use punycode)";
            return FALSE;
        }
    }
}

static gboolean
set_name(const char *text, gsize length, EbTarget *target, const char **why)
{
    if (length > 0 && text[length - 1] == '.')
        length--;
    if (length == 0 || length > EB_HOST_MAX) {
        *why = "the host is empty or longer than 253 bytes";
        return FALSE;
    }
    for (gsize i = 0; i < length; i++)
        target->host[i] = g_ascii_tolower(text[i]);
    target->host[length] = '\0';
    if (!check_labels(target->host, why))
        return FALSE;
    if (eb_address_parse(target->host, &target->address)) {
        target->literal = TRUE;
        return TRUE;
    }
    if (ends_in_number(target->host)) {
        *why = "the host is a number that is not a plain IPv4 address";
        return FALSE;
    }
    return TRUE;
}

static gboolean
set_v6(const char *text, gsize length, EbTarget *target, const char **why)
{
    char copy[EB_ADDRESS_TEXT];

    if (length >= sizeof copy) {
        *why = "the address in brackets is too long";
        return FALSE;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (!eb_address_parse(copy, &target->address) || target->address.length != 16) {
        *why = strchr(copy, '%') != NULL ? "zone ids are not accepted" : "what is in brackets is no IPv6 address";
        return FALSE;
    }
    target->literal = TRUE;
    eb_address_format(&target->address, target->host);
    return TRUE;
}

static gboolean
set_port(const char *text, gsize length, EbTarget *target, const char **why)
{
    guint value = 0;

    *why = "the port is not a number from 1 to 65535";
    if (length == 0 || length > 5 || text[0] == '0')
        return FALSE;
    for (gsize i = 0; i < length; i++) {
        if (!g_ascii_isdigit(text[i]))
            return FALSE;
        value = value * 10 + (guint)(text[i] - '0');
    }
    if (value > 65535)
        return FALSE;
    target->port = (guint16)value;
    return TRUE;
}

gboolean
eb_target_parse(const char *text, gsize length, guint16 default_port, EbTarget *target, const char **why)
{
    EbTarget parsed = {.port = default_port};
    const char *rest, *unused;
    gsize host_length;
    gboolean good;

    if (why == NULL)
        why = &unused;
    if (memchr(text, '\0', length) != NULL) {
        *why = "the host holds a NUL byte";
        return FALSE;
    }
    if (memchr(text, '@', length) != NULL) {
        *why = "user info is not accepted";
        return FALSE;
    }
    if (length > 0 && text[0] == '[') {
        const char *end = memchr(text, ']', length);

        if (end == NULL) {
            *why = "a bracket is not closed";
            return FALSE;
        }
        good = set_v6(text + 1, (gsize)(end - text - 1), &parsed, why);
        rest = end + 1;
    } else {
        const char *colon = memchr(text, ':', length);

        host_length = colon != NULL ? (gsize)(colon - text) : length;
        good = set_name(text, host_length, &parsed, why);
        rest = text + host_length;
    }
    if (!good)
        return FALSE;
    length -= (gsize)(rest - text);
    if (length > 0) {
        if (rest[0] != ':') {
            *why = "something follows the host";
            return FALSE;
        }
        if (!set_port(rest + 1, length - 1, &parsed, why))
            return FALSE;
    }
    if (parsed.port == 0) {
        *why = "the port is missing";
        return FALSE;
    }
    *target = parsed;
    return TRUE;
}

gboolean
eb_target_is_own(const EbTarget *target, guint16 relay_port)
{
    if (target->port != relay_port)
        return FALSE;
    return strcmp(target->host, "127.0.0.1") == 0 || strcmp(target->host, "localhost") == 0 ||
           strcmp(target->host, "::1") == 0;
}

char *
eb_target_format(const EbTarget *target)
{
    if (target->literal && target->address.length == 16)
        return g_strdup_printf("[%s]:%u", target->host, target->port);
    return g_strdup_printf("%s:%u", target->host, target->port);
}

/* --- rules --- */

static gboolean
add_rule(EbPolicy *self, const char *rule, GError **error)
{
    gboolean wildcard = g_str_has_prefix(rule, "*.");
    const char *why = "ports do not belong into a rule";
    g_autofree char *host = eb_hostname_to_ascii(wildcard ? rule + 2 : rule, &why);
    EbTarget target;
    EbAddress address;
    gboolean good;

    if (host == NULL) {
        good = FALSE;
    } else if (eb_address_parse(host, &address) && address.length == 16) {
        target.literal = TRUE;
        target.port = 1;
        eb_address_format(&address, target.host);
        good = TRUE;
    } else {
        good = eb_target_parse(host, strlen(host), 1, &target, &why) && target.port == 1;
    }
    if (good && wildcard && target.literal) {
        good = FALSE;
        why = "an address has no names below it";
    }
    if (!good) {
        g_autofree char *shown = eb_log_escape(rule, -1, 120);

        eb_set_error(error, EB_ERROR_CONFIG, "egress.rule", "egress rule \"%s\" cannot be used: %s", shown, why);
        return FALSE;
    }
    g_hash_table_insert(wildcard ? self->suffix : self->exact, g_strdup(target.host), g_strdup(rule));
    return TRUE;
}

EbPolicy *
eb_policy_new(gboolean proxy, const char *const *allow, const guint16 *ports, guint n_ports, gboolean allow_internal,
              GError **error)
{
    g_autoptr(EbPolicy) self = g_new0(EbPolicy, 1);

    g_atomic_ref_count_init(&self->refs);
    self->proxy = proxy;
    self->allow_internal = allow_internal;
    self->exact = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->suffix = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    if (n_ports > EB_POLICY_MAX_PORTS) {
        eb_set_error(error, EB_ERROR_CONFIG, "egress.ports", "more than %u egress ports", EB_POLICY_MAX_PORTS);
        return NULL;
    }
    for (guint i = 0; i < n_ports; i++)
        self->ports[self->n_ports++] = ports[i];
    for (gsize i = 0; allow != NULL && allow[i] != NULL; i++) {
        if (i >= EB_POLICY_MAX_RULES) {
            eb_set_error(error, EB_ERROR_CONFIG, "egress.rules", "more than %u egress rules", EB_POLICY_MAX_RULES);
            return NULL;
        }
        if (!add_rule(self, allow[i], error))
            return NULL;
    }
    return g_steal_pointer(&self);
}

EbPolicy *
eb_policy_ref(EbPolicy *self)
{
    g_atomic_ref_count_inc(&self->refs);
    return self;
}

void
eb_policy_unref(EbPolicy *self)
{
    if (self == NULL || !g_atomic_ref_count_dec(&self->refs))
        return;
    g_hash_table_unref(self->exact);
    g_hash_table_unref(self->suffix);
    g_free(self);
}

static const char *
find_rule(EbPolicy *self, const EbTarget *target)
{
    const char *rule = g_hash_table_lookup(self->exact, target->host);
    const char *dot;

    if (rule != NULL || target->literal)
        return rule;
    for (dot = strchr(target->host, '.'); rule == NULL && dot != NULL; dot = strchr(dot + 1, '.'))
        rule = g_hash_table_lookup(self->suffix, dot + 1);
    return rule;
}

/* Names that libraries answer themselves, without a resolver whose answer could be judged. */
static gboolean
is_local_name(const char *host)
{
    return strcmp(host, "localhost") == 0 || g_str_has_suffix(host, ".localhost") ||
           g_str_has_suffix(host, ".localdomain") || g_str_has_suffix(host, ".local");
}

EbVerdict
eb_policy_judge(EbPolicy *self, const EbTarget *target, const char **rule)
{
    const char *found;

    if (rule != NULL)
        *rule = NULL;
    if (!self->proxy)
        return EB_VERDICT_CLOSED;
    /* Said before the list is looked at: adding an internal name to it would not help. */
    if (target->literal && !self->allow_internal && eb_address_special(&target->address) != NULL)
        return EB_VERDICT_INTERNAL;
    if (!target->literal && is_local_name(target->host))
        return EB_VERDICT_INTERNAL;
    found = find_rule(self, target);
    if (found == NULL)
        return EB_VERDICT_HOST;
    for (guint i = 0; i < self->n_ports; i++) {
        if (self->ports[i] == target->port) {
            if (rule != NULL)
                *rule = found;
            return EB_VERDICT_ALLOWED;
        }
    }
    return EB_VERDICT_PORT;
}

gboolean
eb_policy_judge_address(EbPolicy *self, const EbTarget *target, const EbAddress *address)
{
    if (eb_address_special(address) == NULL)
        return TRUE;
    return self->allow_internal && target->literal && eb_address_equal(&target->address, address);
}
