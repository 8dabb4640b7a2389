/* SPDX-License-Identifier: MIT */
/* errand-box-watchdog: `errand-box watchdog` under the name that supervisors and process lists know. */
#include "core/cli/eb-cli.h"

int
main(int argc, char **argv)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();

    g_ptr_array_add(words, argc > 0 ? argv[0] : (char *)"errand-box-watchdog");
    g_ptr_array_add(words, (char *)"watchdog");
    for (int i = 1; i < argc; i++)
        g_ptr_array_add(words, argv[i]);
    g_ptr_array_add(words, NULL);
    return eb_cli_main((int)words->len - 1, (char **)words->pdata);
}
