/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli.h"

G_BEGIN_DECLS

/* One function a verb of `maint`, in cmd-maint-VERB.c; each returns the exit code. */
int eb_cli_maint_images(EbCli *cli);

G_END_DECLS
