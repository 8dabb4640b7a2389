/* SPDX-License-Identifier: MIT */
#include "discord-gateway-payload.h"

#include <string.h>

/* Written by hand and not through json-glib, whose memory nobody wipes. */

static void
add_bytes(DiscordGatewayPayload *self, const char *bytes, gsize length)
{
    if (self->bad || length > DISCORD_GATEWAY_MAX_PAYLOAD - self->length) {
        self->bad = TRUE;
        return;
    }
    memcpy(self->text + self->length, bytes, length);
    self->length += length;
    self->text[self->length] = '\0';
}

static void
add_text(DiscordGatewayPayload *self, const char *text)
{
    add_bytes(self, text, strlen(text));
}

static void
add_number(DiscordGatewayPayload *self, gint64 number)
{
    char digits[24];
    g_snprintf(digits, sizeof digits, "%" G_GINT64_FORMAT, number);
    add_text(self, digits);
}

static void
add_string(DiscordGatewayPayload *self, const char *bytes, gsize length)
{
    add_text(self, "\"");
    for (gsize i = 0; i < length; i++) {
        guchar byte = (guchar)bytes[i];
        if (byte < 0x20) {
            char escape[8];
            g_snprintf(escape, sizeof escape, "\\u%04x", byte);
            add_text(self, escape);
            continue;
        }
        if (byte == '"' || byte == '\\')
            add_text(self, "\\");
        add_bytes(self, bytes + i, 1);
    }
    add_text(self, "\"");
}

static void
add_token(DiscordGatewayPayload *self, EbSecret *token)
{
    g_auto(EbSecretView) view = eb_secret_view(token);
    for (gsize i = 0; i < view.length; i++) {
        if (!g_ascii_isgraph(view.bytes[i]))
            self->bad = TRUE;
    }
    add_string(self, view.bytes, view.length);
}

void
discord_gateway_payload_heartbeat(DiscordGatewayPayload *self, gint64 seq)
{
    add_text(self, "{\"op\":1,\"d\":");
    if (seq >= 0)
        add_number(self, seq);
    else
        add_text(self, "null");
    add_text(self, "}");
}

void
discord_gateway_payload_identify(DiscordGatewayPayload *self, EbSecret *token, guint intents)
{
    add_text(self, "{\"op\":2,\"d\":{\"token\":");
    add_token(self, token);
    add_text(self, ",\"intents\":");
    add_number(self, intents);
    add_text(self, ",\"properties\":{\"os\":\"linux\",\"browser\":\"errand-box\",\"device\":\"errand-box\"}}}");
}

void
discord_gateway_payload_resume(DiscordGatewayPayload *self, EbSecret *token, const char *session_id, gint64 seq)
{
    add_text(self, "{\"op\":6,\"d\":{\"token\":");
    add_token(self, token);
    add_text(self, ",\"session_id\":");
    add_string(self, session_id, strlen(session_id));
    add_text(self, ",\"seq\":");
    add_number(self, seq);
    add_text(self, "}}");
}

void
discord_gateway_payload_clear(DiscordGatewayPayload *self)
{
    explicit_bzero(self, sizeof *self);
}
