/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli.h"

#include "core/cli/eb-cli-private.h"
#include "core/cli/eb-terminal-text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
eb_cli_clear(EbCli *cli)
{
    g_clear_pointer(&cli->args, eb_cli_args_free);
    g_clear_object(&cli->registry);
    g_clear_object(&cli->config);
    g_clear_error(&cli->config_problem);
    g_clear_object(&cli->paths);
}

EbCliArgs *
eb_cli_get_args(EbCli *cli)
{
    return cli->args;
}

gboolean
eb_cli_get_json(EbCli *cli)
{
    return eb_cli_args_flag(cli->args, "json");
}

int
eb_cli_get_verbosity(EbCli *cli)
{
    return (int)MIN(eb_cli_args_count(cli->args, "verbose"), 3);
}

gboolean
eb_cli_get_color(EbCli *cli)
{
    const char *none = g_getenv("NO_COLOR");
    const char *term = g_getenv("TERM");

    if (eb_cli_get_json(cli) || (none != NULL && *none != '\0') || term == NULL || strcmp(term, "dumb") == 0)
        return FALSE;
    return isatty(STDOUT_FILENO) == 1;
}

const char *
eb_cli_get_config_file(EbCli *cli)
{
    const char *named = eb_cli_args_value(cli->args, "config");
    if (named == NULL)
        named = g_getenv("ERRAND_BOX_CONFIG");
    return named != NULL && *named != '\0' ? named : NULL;
}

EbPaths *
eb_cli_get_paths(EbCli *cli, GError **error)
{
    if (cli->paths == NULL)
        cli->paths = eb_paths_new(error);
    return cli->paths;
}

EbConfig *
eb_cli_get_config(EbCli *cli, GError **error)
{
    if (cli->config == NULL && cli->config_problem == NULL) {
        EbPaths *paths = eb_cli_get_paths(cli, &cli->config_problem);
        if (paths != NULL)
            cli->config =
                eb_config_load(eb_cli_get_config_file(cli), eb_paths_get_data_dir(paths), &cli->config_problem);
    }
    if (cli->config_problem != NULL) {
        if (error != NULL)
            *error = g_error_copy(cli->config_problem);
        return NULL;
    }
    return cli->config;
}

EbConfig *
eb_cli_get_config_or_default(EbCli *cli, GError **problem)
{
    g_autoptr(GError) error = NULL;

    if (eb_cli_get_config(cli, problem) != NULL)
        return cli->config;
    /* No directory of that name: the defaults alone. */
    cli->config = eb_config_load_dir("/proc/self/fd/errand-box-no-such-directory", NULL, &error);
    g_assert_no_error(error);
    g_clear_error(&cli->config_problem);
    return cli->config;
}

static EbConfigSection *
configured_section(const char *name, gpointer user_data)
{
    return eb_config_get_plugin_section(user_data, name);
}

/*
 * The standard list names every plugin of the project; a package may leave some out. What an operator names has to be
 * there. Returns: (transfer full)
 */
static char **
enabled_plugins(EbConfig *config, const char *dir)
{
    const char *const *enabled = eb_config_get_enabled_plugins(config);
    EbConfigSection *table = eb_config_section_get_child(eb_config_get_root(config), "plugins");
    g_autoptr(GPtrArray) names = g_ptr_array_new();

    if (table != NULL && eb_config_section_has(table, "enabled"))
        return g_strdupv((char **)enabled);
    for (guint i = 0; enabled[i] != NULL; i++) {
        g_autofree char *folder = g_build_filename(dir, enabled[i], NULL);
        if (g_file_test(folder, G_FILE_TEST_IS_DIR))
            g_ptr_array_add(names, g_strdup(enabled[i]));
    }
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&names), FALSE);
}

void
eb_cli_tell_failures(EbCli *cli)
{
    cli->tells_failures = TRUE;
}

EbPluginRegistry *
eb_cli_get_registry(EbCli *cli, const char *const *only, EbSectionLookup sections, gpointer user_data, GError **error)
{
    if (cli->registry != NULL)
        return cli->registry;
    EbPaths *paths = eb_cli_get_paths(cli, error);
    EbConfig *config = paths != NULL ? eb_cli_get_config(cli, error) : NULL;
    if (config == NULL)
        return NULL;
    cli->registry = eb_plugin_registry_new(eb_config_get_account(config), eb_config_get_state_dir(config),
                                           eb_paths_is_uninstalled(paths));
    if (cli->tells_failures)
        eb_plugin_registry_tell_failures(cli->registry);
    g_auto(GStrv) enabled = enabled_plugins(config, eb_paths_get_plugin_dir(paths));
    eb_plugin_registry_load_dir(cli->registry, eb_paths_get_plugin_dir(paths), (const char *const *)enabled, only,
                                sections != NULL ? sections : configured_section,
                                sections != NULL ? user_data : config);
    return cli->registry;
}

EbExit
eb_cli_exit_code(const GError *error)
{
    if (error == NULL || error->domain != EB_ERROR)
        return EB_EXIT_FAILED;
    switch ((EbErrorCode)error->code) {
    case EB_ERROR_INVALID:
    case EB_ERROR_NOT_FOUND:
    case EB_ERROR_DENIED:
    case EB_ERROR_UNAUTHENTICATED:
    case EB_ERROR_NOT_SUPPORTED:
    case EB_ERROR_CONFIG:
    case EB_ERROR_INTEGRITY: /* what is damaged stays so: a supervisor that started it again would never end */
        return EB_EXIT_REFUSED;
    case EB_ERROR_DEGRADED:
        return EB_EXIT_DEGRADED;
    case EB_ERROR_LOCKED:
        return EB_EXIT_LOCKED;
    case EB_ERROR_FAILED:
    case EB_ERROR_EXISTS:
    case EB_ERROR_QUOTA:
    case EB_ERROR_BUSY:
    case EB_ERROR_TIMEOUT:
    case EB_ERROR_CANCELLED:
    case EB_ERROR_UNAVAILABLE:
    case EB_ERROR_PROTOCOL:
        break;
    }
    return EB_EXIT_FAILED;
}

/* One line, except for configuration problems, which are one line each. */
static void
write_error(const char *text)
{
    g_autofree char *masked = eb_log_mask_text(text, -1);
    g_auto(GStrv) lines = g_strsplit(masked, "\n", -1);

    for (char **line = lines; *line != NULL; line++) {
        g_autofree char *clean = eb_log_escape(*line, -1, 4096);
        fprintf(stderr, "%s%s\n", line == lines ? "errand-box: " : "  ", clean);
    }
}

int
eb_cli_fail(EbCli *cli, const char *what, const GError *error)
{
    g_autofree char *text = NULL;

    if (error == NULL)
        text = g_strdup(what);
    else if (what == NULL)
        text = g_strdup(error->message);
    else if (strchr(error->message, '\n') != NULL)
        text = g_strdup_printf("%s:\n%s", what, error->message);
    else
        text = g_strdup_printf("%s: %s", what, error->message);
    write_error(text);
    return error != NULL ? (int)eb_cli_exit_code(error) : EB_EXIT_FAILED;
}

void
eb_cli_note(EbCli *cli, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    write_error(text);
}

int
eb_cli_refuse(EbCli *cli, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    write_error(text);
    return EB_EXIT_REFUSED;
}

/* Whoever reads our output may go away (head, less): that is no failure worth words. */
static void
write_stdout(const char *text)
{
    if (fputs(text, stdout) == EOF || fflush(stdout) == EOF) {
        if (errno == EPIPE)
            _exit(EB_EXIT_FAILED);
        fprintf(stderr, "errand-box: stdout: %s\n", g_strerror(errno));
        _exit(EB_EXIT_FAILED);
    }
}

void
eb_cli_print(EbCli *cli, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *clean = eb_terminal_text_clean(text);
    write_stdout(clean);
}

void
eb_cli_print_own(EbCli *cli, const char *text)
{
    write_stdout(text);
}

void
eb_cli_print_json(EbCli *cli, JsonNode *node)
{
    g_autofree char *text = eb_json_write(node, NULL);
    g_autofree char *clean = eb_terminal_text_json(text);
    g_autofree char *line = g_strconcat(clean, "\n", NULL);

    write_stdout(line);
    json_node_unref(node);
}

void
eb_cli_wait(EbCli *cli, const gboolean *done)
{
    while (!*done)
        g_main_context_iteration(NULL, TRUE);
}

static int
run(EbCli *cli, int argc, char **argv)
{
    g_autoptr(GError) error = NULL;

    cli->args = eb_cli_args_parse(argc - 1, argv + 1, &error);
    if (cli->args == NULL)
        return eb_cli_refuse(cli, "%s", error->message);
    const EbCliCommand *command = eb_cli_args_get_command(cli->args);
    if (eb_cli_args_flag(cli->args, "version")) {
        eb_cli_print(cli, "errand-box %s\n", EB_VERSION);
        return EB_EXIT_OK;
    }
    if (eb_cli_args_flag(cli->args, "help")) {
        g_autofree char *help = command != NULL ? eb_cli_help_command(command) : eb_cli_help_program();
        eb_cli_print(cli, "%s", help);
        return EB_EXIT_OK;
    }
    eb_log_setup(eb_cli_get_verbosity(cli), FALSE);
    int rest = 1 + eb_cli_args_get_rest(cli->args);
    return command->run(cli, argc - rest, argv + rest);
}

int
eb_cli_main(int argc, char **argv)
{
    EbCli cli = {0};

    /* Closed standard descriptors would be given to the first files opened. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
            return EB_EXIT_FAILED;
    signal(SIGPIPE, SIG_IGN);
    int code = run(&cli, argc, argv);
    eb_cli_clear(&cli);
    return code;
}
