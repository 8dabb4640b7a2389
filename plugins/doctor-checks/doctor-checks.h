/* SPDX-License-Identifier: MIT */
#pragma once

#include "checks-catalogue.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** DcRow: a check: its entry in data/checks.d and the function that looks. Static storage. */
typedef struct {
    const EbCheckInfo *info;
    const char *cost; /* what a degraded host costs, in plain words; "" when it only fails */
    EbCheckFunc run;
} DcRow;
#define DC_ROW(id, function)                                                                                           \
    {                                                                                                                  \
        &DC_INFO_##id, DC_COST_##id, function                                                                          \
    }

/* By subject, each ended by a row without info. */
extern const DcRow DC_KERNEL_CHECKS[], DC_DAEMON_CHECKS[], DC_PROJECT_CHECKS[], DC_STORAGE_CHECKS[],
    DC_ACCOUNT_CHECKS[], DC_FILE_CHECKS[], DC_CREDENTIAL_CHECKS[], DC_GUEST_CHECKS[], DC_HOST_CHECKS[],
    DC_PROVIDER_CHECKS[];

/** dc_check_new: (transfer full) */
EbDoctorCheck *dc_check_new(const DcRow *row);
/** dc_list: (transfer full) (element-type EbDoctorCheck): every check of this plugin. */
GPtrArray *dc_list(void);

G_END_DECLS
