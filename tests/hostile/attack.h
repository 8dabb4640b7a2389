/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/*
 * A guest's attacks, one row each. A row says "refused NAME WHY", "NOT NAME WHAT" when the attack worked, or "odd NAME WHY"
 * when it failed in a way nobody expected: that may be a mistake in the attack, and then it proves nothing.
 */

/* attack_row: @result < 0: errno must be one of @errnos ("EPERM EACCES"). */
void attack_row(const char *name, long result, const char *errnos);
/* attack_said: for what has no errno. */
void attack_said(const char *name, int refused, const char *detail);
/* attack_value: the argument NAME=VALUE, or "" */
const char *attack_value(const char *name);
int attack_is_root(void);

void attack_kernel(void);
void attack_files(void);
void attack_network(void);
void attack_broker(void);
/* attack_listen: a neighbour's part: an abstract socket and SysV objects, until its standard input ends. */
int attack_listen(const char *name, int key);
