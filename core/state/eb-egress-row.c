/* SPDX-License-Identifier: MIT */
#include "core/state/eb-egress-row.h"

#include "core/base/eb-json-members.h"

#include <sodium.h>
#include <string.h>

/* Part of every hash: another form of row gets another name. */
#define FORM "errand-box egress 1"

static char *
clean(JsonObject *report, const char *member)
{
    const char *text = eb_json_get_string(report, member);

    if (text == NULL || *text == '\0')
        return NULL;
    char *copy = g_strndup(text, EB_EGRESS_TEXT);
    /* A path or a query cannot get in where no slash and no question mark can. */
    for (char *at = copy; *at != '\0'; at++)
        if (!g_ascii_isalnum(*at) && strchr(".:-_*[]%", *at) == NULL)
            *at = '#';
    return copy;
}

static guint64
number(JsonObject *report, const char *member)
{
    return (guint64)MAX(eb_json_get_int(report, member, 0), 0);
}

EbEgressRow *
eb_egress_row_new(const char *session, JsonObject *report)
{
    EbEgressRow *self = g_new0(EbEgressRow, 1);

    self->session = g_strdup(session);
    self->at_ms = g_get_real_time() / 1000;
    self->kind = clean(report, "kind");
    self->host = clean(report, "host");
    self->address = clean(report, "address");
    self->decision = clean(report, "decision");
    self->rule = clean(report, "rule");
    self->provider = clean(report, "provider");
    self->port = (guint)MIN(number(report, "port"), 65535u);
    self->status = (guint)MIN(number(report, "status"), 999u);
    self->bytes_up = number(report, "bytes_up");
    self->bytes_down = number(report, "bytes_down");
    self->ms = number(report, "ms");
    self->lost = number(report, "lost");
    if (self->kind == NULL)
        self->kind = g_strdup("unknown");
    if (self->decision == NULL)
        self->decision = g_strdup("unknown");
    return self;
}

void
eb_egress_row_free(EbEgressRow *self)
{
    if (self == NULL)
        return;
    char *fields[] = {self->session, self->kind, self->host, self->address, self->decision, self->rule, self->provider};
    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++)
        g_free(fields[i]);
    g_free(self);
}

/* --- the hash --- */

static void
add_number(crypto_generichash_state *state, guint64 value)
{
    guint64 little = GUINT64_TO_LE(value);

    crypto_generichash_update(state, (const guint8 *)&little, sizeof little);
}

/* With its length, so that no two rows are the same bytes; NULL is not the empty text. */
static void
add_text(crypto_generichash_state *state, const char *text)
{
    add_number(state, text != NULL ? strlen(text) + 1 : 0);
    if (text != NULL)
        crypto_generichash_update(state, (const guint8 *)text, strlen(text));
}

static void
hash(const EbEgressRow *self, guint8 *out)
{
    crypto_generichash_state state;
    const char *const texts[] = {self->session,  self->kind, self->host,    self->address,
                                 self->decision, self->rule, self->provider};
    const guint64 numbers[] = {(guint64)self->seq, (guint64)self->at_ms, self->port, self->bytes_up, self->bytes_down,
                               self->ms,           self->status,         self->lost};

    crypto_generichash_init(&state, NULL, 0, EB_EGRESS_HASH);
    crypto_generichash_update(&state, (const guint8 *)FORM, sizeof FORM);
    crypto_generichash_update(&state, self->previous, EB_EGRESS_HASH);
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++)
        add_number(&state, numbers[i]);
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        add_text(&state, texts[i]);
    crypto_generichash_final(&state, out, EB_EGRESS_HASH);
}

void
eb_egress_row_seal(EbEgressRow *self, gint64 seq, const guint8 *previous)
{
    self->seq = seq;
    memcpy(self->previous, previous, EB_EGRESS_HASH);
    hash(self, self->hash);
}

gboolean
eb_egress_row_check(const EbEgressRow *self)
{
    guint8 expected[EB_EGRESS_HASH];

    hash(self, expected);
    return memcmp(expected, self->hash, EB_EGRESS_HASH) == 0;
}

JsonObject *
eb_egress_row_to_json(const EbEgressRow *self)
{
    JsonObject *object = json_object_new();
    char hex[EB_EGRESS_HASH * 2 + 1];

    json_object_set_string_member(object, "event", "egress");
    json_object_set_int_member(object, "seq", self->seq);
    eb_json_set_time(object, "at", self->at_ms);
    eb_json_set_text_or_null(object, "kind", self->kind);
    eb_json_set_text_or_null(object, "host", self->host);
    json_object_set_int_member(object, "port", self->port);
    eb_json_set_text_or_null(object, "address", self->address);
    json_object_set_int_member(object, "bytes_up", (gint64)self->bytes_up);
    json_object_set_int_member(object, "bytes_down", (gint64)self->bytes_down);
    json_object_set_int_member(object, "ms", (gint64)self->ms);
    eb_json_set_text_or_null(object, "decision", self->decision);
    eb_json_set_text_or_null(object, "rule", self->rule);
    eb_json_set_text_or_null(object, "provider", self->provider);
    json_object_set_int_member(object, "status", self->status);
    json_object_set_int_member(object, "lost", (gint64)self->lost);
    sodium_bin2hex(hex, sizeof hex, self->hash, EB_EGRESS_HASH);
    json_object_set_string_member(object, "hash", hex);
    return object;
}
