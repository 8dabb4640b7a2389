/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-again.h"

#include "core/cli/eb-cli-backend.h"
#include "core/cli/eb-cli-call.h"

#include <signal.h>

typedef struct {
    GString *said;
    GInputStream *stream;
    char buffer[4096];
    gboolean closed;
} Heard;

static void
on_heard(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Heard *self = user_data;
    gssize n = g_input_stream_read_finish(G_INPUT_STREAM(source), result, NULL);

    if (n <= 0) {
        self->closed = TRUE;
        return;
    }
    if (self->said->len < EB_CLI_AGAIN_MAX)
        g_string_append_len(self->said, self->buffer, n);
    g_input_stream_read_async(self->stream, self->buffer, sizeof self->buffer, G_PRIORITY_DEFAULT, NULL, on_heard,
                              self);
}

static void
on_interrupted(GCancellable *cancellable, gpointer process)
{
    g_subprocess_send_signal(G_SUBPROCESS(process), SIGTERM);
}

static GSubprocess *
start(EbCli *cli, const char *const *args, EbCliAgain streams, int fd, GError **error)
{
    static const GSubprocessFlags flags[] = {
        [EB_CLI_AGAIN_OUTPUT] = G_SUBPROCESS_FLAGS_STDERR_PIPE,
        [EB_CLI_AGAIN_INPUT] = G_SUBPROCESS_FLAGS_NONE,
        [EB_CLI_AGAIN_LISTEN] = G_SUBPROCESS_FLAGS_STDOUT_PIPE,
    };
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(flags[streams]);
    g_autoptr(GStrvBuilder) argv = g_strv_builder_new();

    g_strv_builder_add(argv, "/proc/self/exe");
    if (eb_cli_get_config_file(cli) != NULL) {
        g_strv_builder_add(argv, "--config");
        g_strv_builder_add(argv, eb_cli_get_config_file(cli));
    }
    if (eb_cli_get_json(cli) || streams == EB_CLI_AGAIN_LISTEN)
        g_strv_builder_add(argv, "--json");
    g_strv_builder_addv(argv, (const char **)args);
    g_auto(GStrv) all = g_strv_builder_end(argv);
    if (streams == EB_CLI_AGAIN_OUTPUT)
        g_subprocess_launcher_take_stdout_fd(launcher, fd);
    else if (streams == EB_CLI_AGAIN_INPUT)
        g_subprocess_launcher_take_stdin_fd(launcher, fd);
    return g_subprocess_launcher_spawnv(launcher, (const char *const *)all, error);
}

int
eb_cli_again(EbCli *cli, const char *const *args, EbCliAgain streams, int fd, char **said, GError **error)
{
    g_autoptr(GSubprocess) process = start(cli, args, streams, fd, error);
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_auto(EbCliWait) wait = {0};
    Heard heard = {.closed = TRUE};

    if (process == NULL) {
        eb_error_convert(error, "cli.again", "cannot run this program again");
        return EB_EXIT_FAILED;
    }
    heard.said = g_string_new(NULL);
    heard.stream =
        streams == EB_CLI_AGAIN_OUTPUT ? g_subprocess_get_stderr_pipe(process) : g_subprocess_get_stdout_pipe(process);
    if (streams != EB_CLI_AGAIN_INPUT) {
        heard.closed = FALSE;
        g_input_stream_read_async(heard.stream, heard.buffer, sizeof heard.buffer, G_PRIORITY_DEFAULT, NULL, on_heard,
                                  &heard);
    }
    g_autoptr(EbCliInterrupt) interrupt = eb_cli_interrupt_new(cancellable);
    g_signal_connect_object(cancellable, "cancelled", G_CALLBACK(on_interrupted), process, 0);
    g_subprocess_wait_async(process, NULL, eb_cli_wait_ready, &wait);
    g_subprocess_wait_finish(process, eb_cli_wait_result(cli, &wait), NULL);
    eb_cli_wait(cli, &heard.closed);
    char *text = g_string_free(heard.said, FALSE);
    if (said != NULL)
        *said = text;
    else
        g_free(text);
    return g_subprocess_get_if_exited(process) ? g_subprocess_get_exit_status(process) : EB_EXIT_FAILED;
}
