/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli.h"

/* Between eb-cli.c and its tests. */
struct _EbCli {
    EbCliArgs *args;            /* (owned) */
    EbPaths *paths;             /* (owned) (nullable) */
    EbConfig *config;           /* (owned) (nullable) */
    GError *config_problem;     /* (owned) (nullable): why there is no config */
    EbPluginRegistry *registry; /* (owned) (nullable) */
    gboolean tells_failures;    /* the command tells of plugins that fail to load */
};

void eb_cli_clear(EbCli *cli);
