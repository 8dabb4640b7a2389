/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli.h"

int
main(int argc, char **argv)
{
    return eb_cli_main(argc, argv);
}
