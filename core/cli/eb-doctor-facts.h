/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli.h"

G_BEGIN_DECLS

/**
 * eb_doctor_facts_add: what checks are to know and cannot see for themselves: which credentials the stores have and until
 * when (`errand-box creds list`, in a process of its own: a store's plugin may break), and what the running service says of its books.
 * "credentials.list" and "service.facts" are JSON texts; "credentials.problem" and "service.problem" say why there is none,
 * or why it is not whole. Blocks for three seconds at most.
 */
void eb_doctor_facts_add(EbCli *cli, EbConfig *config, EbConfigSection *settings);

G_END_DECLS
