/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Directories and files made where a hostile agent may have written before: no component may be a link, nothing
 * outside the starting directory can be reached. Callers have already become that agent's uid.
 */

/**
 * beneath_open_dir: opens @path below the directory @base, makes what is missing with @mode.
 * Returns: a descriptor or a negative errno (-ELOOP: a link is in the way).
 */
int beneath_open_dir(int base, const char *path, unsigned mode);

/**
 * beneath_write_file: puts a file of these bytes at @path below @base; directories on the way are made (0700), an
 * older file or link of that name is replaced, never written through. Returns 0 or a negative errno.
 */
int beneath_write_file(int base, const char *path, unsigned mode, const uint8_t *data, size_t size);
