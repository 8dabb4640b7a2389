/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/**
 * tmpfs_ensure: a tmpfs of @size bytes on @path.
 *
 * Makes the directory when it is missing; a tmpfs that is there already gets the new size if its content fits;
 * any other file system mounted there is left alone. Returns 0 or a negative errno.
 */
int tmpfs_ensure(const char *path, uint64_t size, unsigned mode);
