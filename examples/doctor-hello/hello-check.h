/* SPDX-License-Identifier: MIT */
#pragma once

#include <errand-box-plugin.h>

extern const EbCheckInfo hello_check_info;

EbCheckResult *hello_check_run(EbHost *host, EbConfigSection *settings, GCancellable *cancellable);
