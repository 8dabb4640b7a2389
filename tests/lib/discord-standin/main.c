/* SPDX-License-Identifier: MIT */

/*
 * discord-standin --token mock-... [--port P]
 *
 * The first line of stdout says where it is; SIGTERM or SIGINT ends it.
 */

#include "discord-standin.h"

#include <glib-unix.h>
#include <stdio.h>

static gboolean
on_quit(gpointer user_data)
{
    g_main_loop_quit(user_data);
    return G_SOURCE_REMOVE;
}

int
main(int argc, char **argv)
{
    g_autofree char *token = NULL;
    int port = 0;
    const GOptionEntry entries[] = {
        {"port", 0, 0, G_OPTION_ARG_INT, &port, "Listen on this port of 127.0.0.1 (default: any)", "P"},
        {"token", 0, 0, G_OPTION_ARG_STRING, &token, "The bot's token: begins with mock", "TOKEN"},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    g_autoptr(DiscordStandin) standin = NULL;
    g_autoptr(GError) error = NULL;

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error) || argc > 1 || token == NULL || port < 0 ||
        port > 65535) {
        fprintf(stderr, "discord-standin: %s\n", error != NULL ? error->message : "usage: --token mock-... [--port P]");
        return 2;
    }
    if (!g_str_has_prefix(token, "mock")) { /* no token of Discord's may come here */
        fprintf(stderr, "discord-standin: the token must begin with mock\n");
        return 2;
    }
    standin = discord_standin_new(token, (guint16)port, &error);
    if (standin == NULL) {
        fprintf(stderr, "discord-standin: %s\n", error->message);
        return 1;
    }
    printf("{\"url\":\"%s\",\"origin\":\"%s\",\"control\":\"%s\"}\n", discord_standin_get_api(standin),
           discord_standin_get_origin(standin), discord_standin_get_control(standin));
    fflush(stdout);
    g_unix_signal_add(SIGTERM, on_quit, loop);
    g_unix_signal_add(SIGINT, on_quit, loop);
    g_main_loop_run(loop);
    return 0;
}
