/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds of a session's block; guest/PROTOCOL.md. */
#define BLOCK_MAX_BYTES (8u * 1024 * 1024)
#define BLOCK_MAX_ENV 1024u
#define BLOCK_MAX_FILES 128u
#define BLOCK_MAX_DEPTH 16u             /* components of a file's path */
#define BLOCK_MAX_PATH 1024u            /* bytes of it */
#define BLOCK_MAX_STRING (128u * 1024u) /* NAME=VALUE with its NUL: the kernel's limit for one string of execve() */
#define BLOCK_MAX_HEADER 20u            /* "ERRAND1 8388608\n" and no more */

/** block_file: one F record; pointers into the block's bytes. */
struct block_file {
    const char *path;
    unsigned mode;
    const uint8_t *data;
    size_t size;
};

/** block: what a block says; holds pointers into the bytes it was parsed from and owns nothing. */
struct block {
    size_t n_env;
    size_t n_files;
    char *env[BLOCK_MAX_ENV + 1]; /* NULL-terminated: ready for execve() */
    struct block_file files[BLOCK_MAX_FILES];
};

/**
 * block_parse_header:
 * @line: the first line, newline included
 * @length: bytes of it
 * @size: (out): bytes of records that follow
 *
 * Returns: NULL, or what is wrong (static string); @size is untouched then.
 */
const char *block_parse_header(const char *line, size_t length, size_t *size);

/**
 * block_parse: reads the records; pure, allocates nothing.
 * @bytes: the records; must outlive @out
 * @out: (out): valid only on success
 *
 * Returns: NULL, or what is wrong (static string, never a value of the block).
 */
const char *block_parse(uint8_t *bytes, size_t size, struct block *out);

/** block_find_env: value of the variable @name, or NULL. */
const char *block_find_env(const struct block *self, const char *name);
