/* SPDX-License-Identifier: MIT */
/* Run by the build: prints one of the texts that are installed beside the program. */
#include "core/cli/eb-cli-manual.h"

#include <string.h>

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        char *(*make)(void);
    } TEXTS[] = {
        {"errand-box.1", eb_cli_manual_program},     {"errand-box.toml.5", eb_cli_manual_config},
        {"completion.bash", eb_cli_completion_bash}, {"completion.zsh", eb_cli_completion_zsh},
        {"completion.fish", eb_cli_completion_fish},
    };

    for (gsize i = 0; argc == 2 && i < G_N_ELEMENTS(TEXTS); i++) {
        if (strcmp(argv[1], TEXTS[i].name) == 0) {
            g_autofree char *text = TEXTS[i].make();
            g_print("%s", text);
            return 0;
        }
    }
    g_printerr("usage: manual errand-box.1|errand-box.toml.5|completion.bash|completion.zsh|completion.fish\n");
    return 2;
}
