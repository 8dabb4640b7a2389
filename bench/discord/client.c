/* SPDX-License-Identifier: MIT */
/*
 * What client.js does, by this plugin: client PORT CHANNEL PERSON..; prints one JSON line. The whole path: websocket,
 * decoding, filters, "message", "edited" and "seen" of the transport.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "discord-transport.h"

typedef struct {
    GMainLoop *loop;
    guint messages;
    guint edits;
    guint seen;
    double start;
    guint start_rss;
    guint rest_rss;
} Bench;

static double
cpu_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static guint
resident_kib(void)
{
    g_autofree char *text = NULL;
    const char *line;
    if (!g_file_get_contents("/proc/self/smaps_rollup", &text, NULL, NULL) || (line = strstr(text, "\nRss:")) == NULL)
        return 0;
    return (guint)g_ascii_strtoull(line + strcspn(line, "0123456789"), NULL, 10);
}

static void
on_message(EbChatTransport *transport, EbChatMessage *message, Bench *bench)
{
    if (strcmp(message->text, "bench:begin") == 0) {
        bench->start_rss = resident_kib();
        bench->messages = bench->edits = bench->seen = 0;
        bench->start = cpu_seconds();
    } else if (strcmp(message->text, "bench:end") == 0) {
        double used = cpu_seconds() - bench->start;
        printf(
            "{\"cpu\":%.6f,\"rss_rest\":%u,\"rss_begin\":%u,\"rss_end\":%u,\"messages\":%u,\"edits\":%u,\"seen\":%u}\n",
            used, bench->rest_rss, bench->start_rss, resident_kib(), bench->messages, bench->edits, bench->seen);
        fflush(stdout);
        g_main_loop_quit(bench->loop);
    } else {
        bench->messages++;
    }
}

static void
on_edited(EbChatTransport *transport, EbChatMessage *message, Bench *bench)
{
    bench->edits++;
}

static void
on_seen(EbChatTransport *transport, const char *thread, const char *id, Bench *bench)
{
    bench->seen++;
}

static gboolean
on_rest(gpointer user_data)
{
    Bench *bench = user_data;
    bench->rest_rss = resident_kib();
    return G_SOURCE_REMOVE;
}

static void
on_started(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Bench *bench = user_data;
    g_autoptr(GError) error = NULL;
    if (!discord_transport_start_finish(DISCORD_TRANSPORT(source), result, &error)) {
        fprintf(stderr, "client: %s\n", error->message);
        g_main_loop_quit(bench->loop);
        return;
    }
    eb_chat_transport_attach(EB_CHAT_TRANSPORT(source), NULL, 0);
    g_timeout_add(1000, on_rest, bench);
}

int
main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: client PORT CHANNEL PERSON..\n");
        return 2;
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(EbConfigSection) section = eb_config_section_new("plugin.chat-discord");
    g_autofree char *url = g_strdup_printf("http://127.0.0.1:%s/api/v10", argv[1]);
    char bytes[] = "mock.bench.token";
    g_autoptr(EbSecret) token = eb_secret_new_take("chat-token", bytes, strlen(bytes), &error);
    Bench bench = {.loop = g_main_loop_new(NULL, FALSE)};

    eb_config_section_set(section, "token", g_variant_new_string("cred:chat-token"), "bench", 1);
    eb_config_section_set(section, "channel_id", g_variant_new_string(argv[2]), "bench", 2);
    eb_config_section_set(section, "allowed_user_ids",
                          g_variant_new_strv((const char *const *)argv + 3, (gssize)argc - 3), "bench", 3);
    g_autoptr(DiscordConfig) config = discord_config_read(section, &error);
    if (config == NULL) {
        fprintf(stderr, "client: %s\n", error->message);
        return 1;
    }
    eb_log_setup(0, FALSE);
    g_autoptr(DiscordTransport) transport = discord_transport_new(config, NULL);
    g_signal_connect(transport, "message", G_CALLBACK(on_message), &bench);
    g_signal_connect(transport, "edited", G_CALLBACK(on_edited), &bench);
    g_signal_connect(transport, "seen", G_CALLBACK(on_seen), &bench);
    discord_transport_start_async(transport, token, url, NULL, on_started, &bench);
    g_main_loop_run(bench.loop);
    g_main_loop_unref(bench.loop);
    _exit(0);
}
