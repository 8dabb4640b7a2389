/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-manual.h"

#include <string.h>

#include "core/config/eb-config-schema.h"

/* Text that roff takes for nothing but text: no request at a line's start, a minus that can be copied and typed. */
static void
append_text(GString *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        g_string_append(out, "\\&");
    for (const char *c = text; *c != '\0'; c++) {
        switch (*c) {
        case '\\':
            g_string_append(out, "\\e");
            break;
        case '-':
            g_string_append(out, "\\-");
            break;
        case '\n':
            g_string_append(out, c[1] == '.' || c[1] == '\'' ? "\n\\&" : "\n");
            break;
        default:
            g_string_append_c(out, *c);
        }
    }
}

static void
append_line(GString *out, const char *text)
{
    append_text(out, text);
    g_string_append_c(out, '\n');
}

static void
append_option(GString *out, const EbCliOption *option)
{
    g_string_append(out, ".TP\n.B ");
    if (option->letter != 0)
        g_string_append_printf(out, "\\-%c, ", option->letter);
    g_string_append(out, "\\-\\-");
    append_text(out, option->name);
    if (option->value != NULL) {
        g_string_append_c(out, ' ');
        append_text(out, option->value);
    }
    g_string_append_c(out, '\n');
    append_line(out, option->help);
}

static void
append_command(GString *out, const EbCliCommand *command)
{
    g_string_append(out, ".SS ");
    append_line(out, command->name);
    append_line(out, command->help);
    for (const EbCliVerb *verb = command->verbs; verb->name != NULL; verb++) {
        g_string_append(out, ".TP\n.B errand\\-box ");
        append_text(out, command->name);
        if (*verb->name != '\0') {
            g_string_append_c(out, ' ');
            append_text(out, verb->name);
        }
        if (*verb->operands != '\0') {
            g_string_append_c(out, ' ');
            append_text(out, verb->operands);
        }
        g_string_append_c(out, '\n');
        append_line(out, verb->help != NULL ? verb->help : command->help);
    }
    for (const EbCliOption *option = command->options; option->name != NULL; option++)
        append_option(out, option);
}

static GString *
begin_page(const char *name, const char *section, const char *what)
{
    GString *out = g_string_new(".\\\" Made from the tables of the program.\n.TH ");

    append_text(out, name);
    g_string_append_printf(out, " %s \"\" \"errand\\-box " EB_VERSION "\" \"errand\\-box\"\n.SH NAME\n", section);
    append_text(out, name);
    g_string_append(out, " \\- ");
    append_line(out, what);
    return out;
}

char *
eb_cli_manual_program(void)
{
    static const struct {
        const char *code, *meaning;
    } EXITS[] = {
        {"0", "done; doctor: nothing fails, something may be degraded"},
        {"1", "failed while running; the only one on which a supervisor starts the service again"},
        {"2", "refused: usage, configuration, or a backend, token or credential that cannot work"},
        {"3", "a guarantee cannot be enforced on this host and was not accepted"},
        {"4", "another instance holds the state directory"},
    };
    GString *out = begin_page("errand-box", "1", "coding agents in containers without a network");

    g_string_append(out, ".SH SYNOPSIS\n.B errand\\-box\n[\\fIOPTIONS\\fR] \\fICOMMAND\\fR ...\n.SH DESCRIPTION\n");
    append_line(out, "Runs coding agents in unprivileged containers that have no network device, on a host that "
                     "also holds the agents' credentials. The service errand-boxd(8) does it for a chat channel; try "
                     "does it once, in this terminal.");
    g_string_append(out, ".SH OPTIONS\nThese are taken by every command.\n");
    for (const EbCliOption *option = eb_cli_global_options(); option->name != NULL; option++)
        append_option(out, option);
    g_string_append(out, ".SH COMMANDS\n");
    for (const EbCliCommand *command = eb_cli_commands(); command->name != NULL; command++)
        if (!command->hidden)
            append_command(out, command);
    g_string_append(out, ".SH EXIT STATUS\n");
    for (gsize i = 0; i < G_N_ELEMENTS(EXITS); i++) {
        g_string_append_printf(out, ".TP\n.B %s\n", EXITS[i].code);
        append_line(out, EXITS[i].meaning);
    }
    g_string_append(out, ".SH FILES\n.TP\n.I /etc/errand\\-box/errand\\-box.toml\nthe configuration, then "
                         "conf.d/*.toml beside it: errand\\-box.toml(5)\n.TP\n.I /var/lib/errand\\-box\n"
                         "the state of the service, as [service] state_dir has it\n"
                         ".SH SEE ALSO\nerrand\\-box.toml(5), errand\\-boxd(8), errand\\-box\\-watchdog(8)\n");
    return g_string_free(out, FALSE);
}

static const char *
kind_text(EbConfigKind kind)
{
    static const char *const NAMES[] = {
        [EB_KIND_TEXT] = "text",
        [EB_KIND_INT] = "number",
        [EB_KIND_BOOL] = "true or false",
        [EB_KIND_TEXTS] = "list of texts",
        [EB_KIND_INTS] = "list of numbers",
        [EB_KIND_SIZE] = "size, such as \"512MiB\"",
        [EB_KIND_DURATION] = "duration, such as \"30min\"",
        [EB_KIND_SECRET] = "reference, \"cred:NAME\"",
    };

    return NAMES[kind];
}

static void
append_key(GString *out, const EbConfigKey *key)
{
    g_string_append(out, ".TP\n.B ");
    append_line(out, key->key);
    append_text(out, key->doc);
    g_string_append(out, ".\n.br\n(");
    if (key->choices != NULL)
        append_text(out, key->choices);
    else
        append_text(out, kind_text(key->kind));
    if (key->required)
        g_string_append(out, "; required");
    if (key->fallback != NULL) {
        g_string_append(out, "; default ");
        append_text(out, key->fallback);
    }
    g_string_append(out, ")\n");
}

char *
eb_cli_manual_config(void)
{
    GString *out = begin_page("errand-box.toml", "5", "configuration of errand-box");
    const char *table = NULL;

    g_string_append(out, ".SH DESCRIPTION\n");
    append_line(out, "TOML. /etc/errand-box/errand-box.toml is read first, then /etc/errand-box/conf.d/*.toml in the "
                     "order of their names; --config FILE or ERRAND_BOX_CONFIG names one file alone. An unknown key is "
                     "refused with the nearest known name. A secret is a reference, \"cred:NAME\", resolved through "
                     "the credential stores; a literal one is refused. errand-box config check reports every problem "
                     "with file and line.");
    for (const EbConfigKey *key = eb_config_keys(); key->table != NULL; key++) {
        if (table == NULL || strcmp(table, key->table) != 0) {
            g_string_append(out, ".SH ");
            g_string_append_c(out, '[');
            append_text(out, key->table);
            g_string_append(out, "]\n");
        }
        table = key->table;
        append_key(out, key);
    }
    g_string_append(out, ".SH [plugin.NAME], [agent.NAME]\n");
    append_line(out, "The tables of plugins are described by each plugin; an agent's table is laid over the built-in "
                     "profile of that name.");
    g_string_append(out, ".SH SEE ALSO\nerrand\\-box(1)\n");
    return g_string_free(out, FALSE);
}
