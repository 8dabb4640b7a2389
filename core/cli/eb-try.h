/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli.h"
#include "core/session/eb-dead-roots.h"

G_BEGIN_DECLS

/** EB_TRY_PROJECT: the project of a `try` that names none. */
#define EB_TRY_PROJECT "try"

/** EbTryRequest: what the command line asks for. Strings are borrowed. */
typedef struct {
    const char *prompt;
    const char *project;
    const char *agent;   /* (nullable) */
    const char *model;   /* (nullable) */
    const char *session; /* (nullable): go on with this one */
} EbTryRequest;

/** eb_try_run: in this process, with a session manager of its own. @console: the transport. Returns: exit code */
int eb_try_run(EbCli *cli, EbPluginRegistry *registry, EbChatTransport *console, const EbTryRequest *request);
/** eb_try_run_in_service: by the running service, shown through @console. Returns: exit code */
int eb_try_run_in_service(EbCli *cli, EbPluginRegistry *registry, EbChatTransport *console,
                          const EbTryRequest *request);

/** eb_try_find_root: (transfer full) (nullable): the directory of the earlier try with session @id. */
char *eb_try_find_root(const char *state_dir, const char *id, GError **error);
/** eb_try_roots: (transfer full) (array zero-terminated=1): directories of all tries. */
char **eb_try_roots(const char *state_dir);

/** eb_try_no_times: (transfer full): the times of an end before anything began; the last event always has them. */
JsonObject *eb_try_no_times(void);
/** eb_try_fail: eb_cli_fail(), and with --json the "end" event, which is always the last. Returns: exit code */
int eb_try_fail(EbCli *cli, const GError *error);

G_END_DECLS
