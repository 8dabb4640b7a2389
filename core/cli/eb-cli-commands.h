/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli.h"

G_BEGIN_DECLS

/* One file a command: cmd-NAME.c. */
int eb_cmd_config(EbCli *cli, int argc, char **argv);
int eb_cmd_creds(EbCli *cli, int argc, char **argv);
int eb_cmd_doctor(EbCli *cli, int argc, char **argv);
int eb_cmd_doctor_worker(EbCli *cli, int argc, char **argv);
int eb_cmd_down(EbCli *cli, int argc, char **argv);
int eb_cmd_image(EbCli *cli, int argc, char **argv);
int eb_cmd_maint(EbCli *cli, int argc, char **argv);
int eb_cmd_pins(EbCli *cli, int argc, char **argv);
int eb_cmd_plugin(EbCli *cli, int argc, char **argv);
int eb_cmd_serve(EbCli *cli, int argc, char **argv);
int eb_cmd_sessions(EbCli *cli, int argc, char **argv);
int eb_cmd_setup(EbCli *cli, int argc, char **argv);
int eb_cmd_status(EbCli *cli, int argc, char **argv);
int eb_cmd_try(EbCli *cli, int argc, char **argv);
int eb_cmd_up(EbCli *cli, int argc, char **argv);
int eb_cmd_version(EbCli *cli, int argc, char **argv);
int eb_cmd_watchdog(EbCli *cli, int argc, char **argv);

G_END_DECLS
