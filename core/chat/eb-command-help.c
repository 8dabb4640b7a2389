/* SPDX-License-Identifier: MIT */
/* What people read of the table: !help, and docs/commands.md. */
#include "core/chat/eb-command-table.h"

static const char *
describe_who(EbRole who)
{
    switch (who) {
    case EB_ROLE_OPERATOR:
        return "operators";
    case EB_ROLE_OWNER:
        return "owner";
    case EB_ROLE_GUEST:
        return "owner and guests";
    default:
        return "anyone";
    }
}

static const char *
describe_where(EbCommandWhere where)
{
    return where == EB_COMMAND_ANYWHERE ? "anywhere" : where == EB_COMMAND_IN_THREAD ? "in a thread" : "in the channel";
}

static const char *
describe_needs(EbCommandNeeds needs)
{
    return needs == EB_COMMAND_NEEDS_LIVE      ? "a session that runs"
           : needs == EB_COMMAND_NEEDS_SESSION ? "a session, running or sleeping"
                                               : "nothing";
}

char *
eb_command_usage(const EbCommandSpec *spec)
{
    g_autoptr(GString) usage = g_string_new("!");
    g_string_append(usage, spec->name);
    for (gsize i = 0; i < spec->n_options; i++) {
        g_autofree char *name = g_ascii_strup(spec->options[i].name, -1);
        g_string_append_printf(usage, spec->options[i].required ? " %s" : " [%s]", name);
    }
    return g_string_free(g_steal_pointer(&usage), FALSE);
}

char *
eb_command_help_all(EbRole role, EbCommandWhere where)
{
    gsize n;
    const EbCommandSpec *table = eb_command_table(&n);
    g_autoptr(GString) help = g_string_new(NULL);
    if ((where & EB_COMMAND_IN_CHANNEL) != 0)
        g_string_append(help,
                        "Say here what is to be done, and a thread with an agent opens. `name: what is to be done` "
                        "does it in the project of that name; `--model NAME` or `--agent NAME` at the beginning "
                        "choose who does it.\n");
    else if (role >= EB_ROLE_GUEST)
        g_string_append(help, "What you say here goes to the agent. These are for errand-box itself:\n");
    for (gsize i = 0; i < n; i++) {
        if (table[i].who > role || (table[i].where & where) == 0)
            continue;
        g_autofree char *usage = eb_command_usage(&table[i]);
        g_string_append_printf(help, "- `%s`: %s\n", usage, table[i].summary);
    }
    if (role == EB_ROLE_ANYONE && (where & EB_COMMAND_IN_THREAD) != 0)
        g_string_append(help,
                        "To speak to the agent here you must be invited: the owner writes `!allow` and your name.\n");
    return g_string_free(g_steal_pointer(&help), FALSE);
}

char *
eb_command_help_one(const EbCommandSpec *spec)
{
    g_autoptr(GString) help = g_string_new(NULL);
    g_autofree char *usage = eb_command_usage(spec);
    g_string_append_printf(help, "`%s`: %s (%s, %s)\n", usage, spec->summary, describe_who(spec->who),
                           describe_where(spec->where));
    for (gsize i = 0; i < spec->n_options; i++)
        g_string_append_printf(help, "- %s: %s\n", spec->options[i].name, spec->options[i].summary);
    if (spec->more != NULL)
        g_string_append_printf(help, "\n%s\n", spec->more);
    g_string_append_printf(help, "\nFor example: `%s`\n", spec->example);
    return g_string_free(g_steal_pointer(&help), FALSE);
}

char *
eb_command_to_markdown(void)
{
    gsize n;
    const EbCommandSpec *table = eb_command_table(&n);
    g_autoptr(GString) page = g_string_new(
        "# Commands\n"
        "\n"
        "Made from the table in `core/chat/eb-command-table.c` by the program `gen-commands` of the build; the parser, "
        "the\n"
        "roles, `!help` and the slash commands are made from the same table.\n"
        "\n"
        "A command is a message that begins with `!` and a name of this list, in any case; where the chat has slash\n"
        "commands, `/name` does the same. What begins with `!` and is none of these is left alone: no agent gets it.\n"
        "The last option takes the rest of the message, spaces and all; quotation marks around it are taken off. A "
        "person\n"
        "is a mention, or the number of an account (5 to 25 digits). Who may what is explained in [chat.md](chat.md).\n"
        "\n"
        "| command | who | where | needs | what it does |\n"
        "|---|---|---|---|---|\n");
    for (gsize i = 0; i < n; i++) {
        g_autofree char *usage = eb_command_usage(&table[i]);
        g_string_append_printf(page, "| `%s` | %s | %s | %s | %s |\n", usage, describe_who(table[i].who),
                               describe_where(table[i].where), describe_needs(table[i].needs), table[i].summary);
    }
    for (gsize i = 0; i < n; i++) {
        g_autofree char *help = eb_command_help_one(&table[i]);
        g_string_append_printf(page, "\n## %s%s\n\n%s", table[i].id == EB_COMMAND_ASIDE ? "!" : "", table[i].name,
                               help);
    }
    return g_string_free(g_steal_pointer(&page), FALSE);
}
