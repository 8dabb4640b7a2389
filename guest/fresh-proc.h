/* SPDX-License-Identifier: MIT */
#pragma once

/**
 * fresh_proc_mount: in a new mount and pid namespace: keeps later mounts from leaking out, mounts a /proc that
 * shows this pid namespace and moves over it whatever was mounted on files of the old one (lxcfs: without it the
 * agent would see the host's memory and processors). Returns NULL, or what failed, with errno set.
 */
const char *fresh_proc_mount(void);
