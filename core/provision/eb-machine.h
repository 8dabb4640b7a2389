/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbMachine: what decides which of a program's packages this machine takes. */
typedef struct {
    const char *cpu; /* npm's name of the processor: "x64", "arm64" */
    gboolean avx2;   /* TRUE too where the question does not arise */
} EbMachine;

/** eb_machine_find: EB_ERROR_NOT_SUPPORTED for a processor that no guest image can be made for. */
gboolean eb_machine_find(EbMachine *machine, GError **error);

G_END_DECLS
