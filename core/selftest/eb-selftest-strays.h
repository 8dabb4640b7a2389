/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbSelftestStrays: processes that outlive their service. While it exists, what loses its parent below this process becomes
 * a child of it; children that nobody is known to have started are such processes. The ends of those are taken.
 */
typedef struct _EbSelftestStrays EbSelftestStrays;

EbSelftestStrays *eb_selftest_strays_new(void);
void eb_selftest_strays_free(EbSelftestStrays *self);
/** eb_selftest_strays_know: @pid is a child that was started here, or is not any more. From any thread. */
void eb_selftest_strays_know(EbSelftestStrays *self, int pid, gboolean known);
/** eb_selftest_strays_look: (transfer full) (element-type utf8): a sentence on each that is found to live on. */
GPtrArray *eb_selftest_strays_look(EbSelftestStrays *self);
/** eb_selftest_strays_end: kills those that live on, by pidfd. */
void eb_selftest_strays_end(EbSelftestStrays *self);

G_END_DECLS
