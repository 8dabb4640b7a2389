/* SPDX-License-Identifier: MIT */
/* Prints docs/commands.md. */
#include "core/chat/eb-command-table.h"

#include <stdio.h>

int
main(void)
{
    g_autofree char *page = eb_command_to_markdown();
    fputs(page, stdout);
    return 0;
}
