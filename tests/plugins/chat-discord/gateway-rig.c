/* SPDX-License-Identifier: MIT */
#include "gateway-rig.h"

#include <string.h>

Rig *
rig_new(guint32 seed)
{
    Rig *self = g_new0(Rig, 1);
    char token[] = "A.token.of.no.one";
    g_autoptr(EbSecret) secret = eb_secret_new_take("chat-token", token, strlen(token), NULL);
    self->site = discord_site_new(NULL, secret, NULL);
    g_assert_nonnull(self->site);
    self->state = discord_gateway_state_new(self->site, RIG_INTENTS, seed);
    self->now = (DiscordGatewayClock){1000000, G_GINT64_CONSTANT(1790000000000)};
    self->done = g_string_new(NULL);
    self->log = g_string_new(NULL);
    return self;
}

void
rig_free(Rig *self)
{
    discord_gateway_state_free(self->state);
    discord_site_free(self->site);
    g_string_free(self->done, TRUE);
    g_string_free(self->log, TRUE);
    g_free(self->url);
    g_free(self->why);
    g_clear_error(&self->error);
    g_free(self);
}

static void
record(Rig *self, DiscordGatewayAction *action)
{
    switch (action->what) {
    case DISCORD_GATEWAY_DO_NOTHING:
        g_assert_not_reached();
    case DISCORD_GATEWAY_DO_ASK:
        g_string_append(self->done, "ask ");
        break;
    case DISCORD_GATEWAY_DO_CONNECT:
        g_string_append(self->done, "connect ");
        g_free(self->url);
        self->url = g_steal_pointer(&action->text);
        self->connects++;
        break;
    case DISCORD_GATEWAY_DO_CLOSE:
        g_string_append_printf(self->done, "close-%u ", action->code);
        break;
    case DISCORD_GATEWAY_DO_SAVE:
        g_string_append(self->done, "save ");
        break;
    case DISCORD_GATEWAY_DO_HEARTBEAT:
        g_string_append_printf(self->done, "beat%" G_GINT64_FORMAT " ", action->seq);
        self->sends++;
        break;
    case DISCORD_GATEWAY_DO_IDENTIFY:
        g_string_append(self->done, "identify ");
        self->identifies++;
        self->sends++;
        break;
    case DISCORD_GATEWAY_DO_RESUME:
        g_string_append_printf(self->done, "resume-%s-%" G_GINT64_FORMAT " ", action->text, action->seq);
        self->sends++;
        break;
    case DISCORD_GATEWAY_DO_DOWN:
        g_string_append(self->done, "down ");
        g_free(self->why);
        self->why = g_steal_pointer(&action->text);
        break;
    case DISCORD_GATEWAY_DO_LOG:
        g_string_append_printf(self->log, "%s\n", action->text);
        break;
    case DISCORD_GATEWAY_DO_FAIL:
        g_string_append(self->done, "fail ");
        g_assert_null(self->error);
        self->error = g_steal_pointer(&action->error);
        break;
    }
}

void
rig_take(Rig *self)
{
    g_auto(DiscordGatewayAction) action = {0};
    while (discord_gateway_state_next(self->state, &action)) {
        record(self, &action);
        discord_gateway_action_clear(&action);
    }
}

void
rig_expect(Rig *self, const char *expected)
{
    rig_take(self);
    g_strchomp(self->done->str);
    g_assert_cmpstr(self->done->str, ==, expected);
    g_string_truncate(self->done, 0);
}

void
rig_pass(Rig *self, gint64 ms)
{
    self->now.mono += ms;
    self->now.wall += ms;
}

gint64
rig_wait(Rig *self)
{
    gint64 due = discord_gateway_state_get_due(self->state);
    g_assert_cmpint(due, <, G_MAXINT64);
    gint64 ms = MAX(due - self->now.mono, 0);
    rig_pass(self, ms);
    discord_gateway_state_tick(self->state, self->now);
    rig_take(self);
    return ms;
}

DiscordGatewayVerdict
rig_receive(Rig *self, const char *text)
{
    DiscordGatewayFrame frame;
    DiscordGatewayVerdict verdict = discord_gateway_state_receive(self->state, text, strlen(text), &frame, self->now);
    rig_take(self);
    return verdict;
}

void
rig_info(Rig *self, gint64 remaining, gint64 reset_after)
{
    DiscordGatewayInfo info = {(char *)RIG_URL, 1, 1000, remaining, reset_after};
    discord_gateway_state_told(self->state, &info, self->now);
    rig_take(self);
}

void
rig_until_greeting(Rig *self)
{
    discord_gateway_state_start(self->state, self->now);
    rig_expect(self, "ask");
    rig_info(self, 1000, 1000);
    rig_expect(self, "connect");
    discord_gateway_state_connected(self->state, self->now);
    rig_expect(self, "");
}

void
rig_until_up(Rig *self)
{
    rig_until_greeting(self);
    rig_receive(self, "{\"op\":10,\"d\":{\"heartbeat_interval\":41250},\"s\":null,\"t\":null}");
    rig_expect(self, "save");
    discord_gateway_state_saved(self->state, self->now);
    rig_expect(self, "identify");
    g_assert_cmpint(rig_receive(self, "{\"t\":\"READY\",\"s\":1,\"op\":0,\"d\":{\"session_id\":\"abc\","
                                      "\"resume_gateway_url\":\"" RIG_RESUME "\"}}"),
                    ==, DISCORD_GATEWAY_READY);
    rig_expect(self, "");
}

void
rig_resume(Rig *self)
{
    rig_wait(self);
    discord_gateway_state_connected(self->state, self->now);
    rig_receive(self, "{\"op\":10,\"d\":{\"heartbeat_interval\":41250}}");
    g_string_truncate(self->done, 0);
    g_assert_cmpint(rig_receive(self, "{\"op\":0,\"t\":\"RESUMED\",\"s\":5,\"d\":{}}"), ==, DISCORD_GATEWAY_RESUMED);
}
