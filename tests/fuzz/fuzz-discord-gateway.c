/* SPDX-License-Identifier: MIT */
/*
 * Everything that the gateway sends, and the state machine behind it. A line is a payload, or what happens otherwise:
 *   !c connected   !x CODE closed   !t time passes   !i what the API answers   !u it does not   !s saved
 *   !f full        !d drained       !l state file, at the start alone
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "discord-gateway-state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
take(DiscordGatewayState *state)
{
    g_auto(DiscordGatewayAction) action = {0};
    guint n = 0;
    while (discord_gateway_state_next(state, &action)) {
        g_assert_cmpuint(++n, <, 8);
        g_assert_true((action.what == DISCORD_GATEWAY_DO_CONNECT || action.what == DISCORD_GATEWAY_DO_LOG ||
                       action.what == DISCORD_GATEWAY_DO_DOWN || action.what == DISCORD_GATEWAY_DO_RESUME) ==
                      (action.text != NULL));
        if (action.what == DISCORD_GATEWAY_DO_CONNECT)
            g_assert_true(g_str_has_prefix(action.text, "wss://") && strstr(action.text, "discord.gg") != NULL);
        discord_gateway_action_clear(&action);
    }
}

static void
check_frame(const char *text, gsize length)
{
    DiscordGatewayFrame frame;
    DiscordPeek peeks[] = {{"channel_id", ""}, {"author.id", ""}};
    if (!discord_gateway_frame_read(text, length, &frame, NULL))
        return;
    g_assert_cmpuint(frame.data_at + frame.data_length, <=, length);
    g_autoptr(JsonNode) node = discord_gateway_frame_parse(text, &frame);
    g_assert_true((node != NULL) == (frame.data_length > 0));
    discord_gateway_frame_peek(text, &frame, peeks, G_N_ELEMENTS(peeks));
    if (peeks[0].text[0] != '\0')
        g_assert_nonnull(eb_json_get_string(eb_json_node_object(node), "channel_id"));
    if (peeks[1].text[0] != '\0')
        g_assert_nonnull(eb_json_node_object(node));
}

static void
happen(DiscordGatewayState *state, const char *line, gsize length, DiscordGatewayClock *now)
{
    static const GError away = {0, 0, (char *)"away"};
    g_auto(DiscordGatewayInfo) info = {NULL};
    g_autoptr(JsonNode) node = NULL;
    gint64 due = discord_gateway_state_get_due(state);

    switch (line[1]) {
    case 'c':
        discord_gateway_state_connected(state, *now);
        break;
    case 'x':
        discord_gateway_state_closed(state, (guint)g_ascii_strtoull(line + 2, NULL, 10), NULL, *now);
        break;
    case 't':
        now->mono += due < G_MAXINT64 ? MAX(due - now->mono, 0) : 1000;
        discord_gateway_state_tick(state, *now);
        break;
    case 'i':
        node = eb_json_parse(line + 2, length - 2, NULL, NULL);
        if (discord_gateway_info_read(eb_json_node_object(node), &info, NULL))
            discord_gateway_state_told(state, &info, *now);
        break;
    case 'u':
        discord_gateway_state_untold(state, &away, *now);
        break;
    case 's':
        discord_gateway_state_saved(state, *now);
        break;
    case 'f':
        discord_gateway_state_full(state, *now);
        break;
    case 'd':
        discord_gateway_state_drained(state, *now);
        break;
    default:
        break;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", 200);
    const DiscordSite site = {(char *)DISCORD_API_BASE, FALSE};
    g_autoptr(DiscordGatewayState) state = discord_gateway_state_new(&site, 1, 1);
    DiscordGatewayClock now = {1000, 1790000000000};
    char **line = lines;

    if (*line != NULL && g_str_has_prefix(*line, "!l")) {
        discord_gateway_state_load(state, *line + 2, strlen(*line + 2), now);
        line++;
    }
    discord_gateway_state_start(state, now);
    take(state);
    for (; *line != NULL; line++) {
        DiscordGatewayFrame frame;
        gsize length = strlen(*line);
        if (length >= 2 && (*line)[0] == '!') {
            happen(state, *line, length, &now);
        } else {
            check_frame(*line, length);
            if (discord_gateway_state_receive(state, *line, length, &frame, now) != DISCORD_GATEWAY_NO_EVENT)
                discord_gateway_state_handled(state, discord_gateway_state_get_epoch(state), frame.seq);
        }
        take(state);
        g_autofree char *saved = discord_gateway_state_write(state, now);
        g_assert_cmpuint(strlen(saved), <, DISCORD_GATEWAY_SAVED_MAX);
    }
    return 0;
}
