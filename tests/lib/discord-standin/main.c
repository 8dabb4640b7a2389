/* SPDX-License-Identifier: MIT */

/*
 * discord-standin --token mock-... | --token-fd N  [--port P] [--record FILE]
 *
 * --token-fd: the token is read from that descriptor, up to its end, and stands in no argument.
 *
 * The first line of stdout says where it is; SIGTERM or SIGINT ends it.
 */

#include "discord-standin.h"

#include <glib-unix.h>
#include <stdio.h>
#include <unistd.h>

static char *
read_token(int fd)
{
    char text[200];
    gsize length = 0;
    gssize got;

    while (length < sizeof text && (got = read(fd, text + length, sizeof text - length)) > 0)
        length += (gsize)got;
    return g_strndup(text, length);
}

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
    g_autofree char *record = NULL;
    int port = 0, token_fd = -1;
    const GOptionEntry entries[] = {
        {"port", 0, 0, G_OPTION_ARG_INT, &port, "Listen on this port of 127.0.0.1 (default: any)", "P"},
        {"record", 0, 0, G_OPTION_ARG_FILENAME, &record, "Append all that bots send to FILE", "FILE"},
        {"token", 0, 0, G_OPTION_ARG_STRING, &token, "The bot's token: begins with mock", "TOKEN"},
        {"token-fd", 0, 0, G_OPTION_ARG_INT, &token_fd, "Read the token from this descriptor", "N"},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    g_autoptr(DiscordStandin) standin = NULL;
    g_autoptr(GError) error = NULL;

    g_option_context_add_main_entries(context, entries, NULL);
    const gboolean parsed = g_option_context_parse(context, &argc, &argv, &error);
    if (token == NULL && token_fd >= 0)
        token = read_token(token_fd);
    if (!parsed || argc > 1 || token == NULL || port < 0 || port > 65535) {
        fprintf(stderr, "discord-standin: %s\n", error != NULL ? error->message : "usage: --token mock-... [--port P]");
        return 2;
    }
    if (!g_str_has_prefix(token, "mock")) { /* no token of Discord's may come here */
        fprintf(stderr, "discord-standin: the token must begin with mock\n");
        return 2;
    }
    standin = discord_standin_new(token, (guint16)port, &error);
    if (standin == NULL || (record != NULL && !discord_standin_record(standin, record, &error))) {
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
