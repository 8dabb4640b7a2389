/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/provision/eb-supervisor.h"

G_BEGIN_DECLS

/**
 * eb_backend_remedy: (transfer full) (nullable): what an operator types when the daemon of the container backend does not
 * answer: its restart through whatever supervises it here. Guests go on running through that.
 * @backend: [session] backend; NULL is returned for one whose daemon is not known here
 * @supervisor: (nullable): NULL = none was found
 */
char *eb_backend_remedy(const char *backend, EbSupervisor *supervisor);

G_END_DECLS
