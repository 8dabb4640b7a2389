/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/doctor/eb-doctor.h"
#include "eb-test-incusd.h"
#include "eb-test.h"

G_BEGIN_DECLS

/** The daemon of this test, every check of the catalogue, and a state directory of the account. */
extern EbTestIncusd *incusd;
extern GPtrArray *checks;
extern char *state_dir;

/** judge: the test fails unless @result is @status and says @text (nullable). */
void judge(const char *id, const EbCheckResult *result, EbCheckStatus status, const char *text);
/** expect: runs check @id; @text: (nullable): part of what it saw; then KEY, VALUE pairs that lie over what describes
 *  the daemon. */
void expect(const char *id, EbCheckStatus status, const char *text, ...) G_GNUC_NULL_TERMINATED;

typedef void (*Prepare)(gpointer data);
/** expect_in_child: as expect(), in a process with mounts of its own that @prepare may change, or that @prepare makes
 *  another user. */
void expect_in_child(Prepare prepare, gpointer data, const char *id, EbCheckStatus status, const char *text,
                     ...) G_GNUC_NULL_TERMINATED;
/** put_over: @text in the place of file @to, for a Prepare. */
void put_over(const char *to, const char *text);

G_END_DECLS
