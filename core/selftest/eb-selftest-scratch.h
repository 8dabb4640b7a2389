/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/selftest/eb-selftest.h"

G_BEGIN_DECLS

/**
 * EbSelftestScratch: the directories of one run, <state_dir>/try/selftest-XXXXXX with one state directory a job. Guests may
 * mount what is below <state_dir>/try, so the project of the service is enough.
 */
typedef struct _EbSelftestScratch EbSelftestScratch;

/** eb_selftest_scratch_new: (transfer full) (nullable): makes it, and a configuration for each job. */
EbSelftestScratch *eb_selftest_scratch_new(const EbSelftestOptions *options, GError **error);
const char *eb_selftest_scratch_get_dir(EbSelftestScratch *self);
/** eb_selftest_scratch_get_root, _config: (transfer full): of job @number. */
char *eb_selftest_scratch_get_root(EbSelftestScratch *self, guint number);
char *eb_selftest_scratch_get_config(EbSelftestScratch *self, guint number);
/** eb_selftest_scratch_remove: everything below it, and itself. */
gboolean eb_selftest_scratch_remove(EbSelftestScratch *self, GError **error);
void eb_selftest_scratch_free(EbSelftestScratch *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbSelftestScratch, eb_selftest_scratch_free)

/**
 * eb_selftest_scratch_take_dead: (transfer full) (element-type EbSelftestScratch): those of runs that were killed.
 * @homes: (element-type utf8): takes the label "home" of their guests, which nobody else looks for
 */
GPtrArray *eb_selftest_scratch_take_dead(const char *state_dir, GPtrArray *homes);

/** eb_selftest_config_text: (transfer full): the configuration of a service at @root. @agent: text of its agent */
char *eb_selftest_config_text(const EbSelftestOptions *options, const char *root, const char *agent);

G_END_DECLS
