/* SPDX-License-Identifier: MIT */
/* Upkeep: the verbs, each in a file of its own. */
#include "core/cli/eb-cli-commands.h"
#include "core/cli/eb-cli-maint.h"

#include <string.h>

static const struct {
    const char *verb;
    int (*run)(EbCli *cli);
} verbs[] = {
    {"", eb_cli_maint_due},
    {"backup", eb_cli_maint_backup},
    {"restore", eb_cli_maint_restore},
    {"gc", eb_cli_maint_gc},
    {"images", eb_cli_maint_images},
    {"pins", eb_cli_maint_pins},
    {"selftest", eb_cli_maint_selftest},
};

int
eb_cmd_maint(EbCli *cli, int argc, char **argv)
{
    const char *verb = eb_cli_args_get_verb(eb_cli_get_args(cli));

    for (gsize i = 0; i < G_N_ELEMENTS(verbs); i++)
        if (strcmp(verbs[i].verb, verb) == 0)
            return verbs[i].run(cli);
    return eb_cli_refuse(cli, "maint: there is no verb \"%s\"", verb);
}
