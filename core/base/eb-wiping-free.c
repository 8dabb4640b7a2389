/* SPDX-License-Identifier: MIT */
/*
 * Linked into the programs that hold secrets: what is given back to the heap is wiped. Secrets of ours lie on pages of their
 * own (eb-secret.h), but a library that sends one (an Authorization header through libsoup) copies it into buffers that
 * it frees as they are, and freed memory stays in every image of the process. mallopt(M_PERTURB) does not do it: glibc
 * passes it by for small blocks.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#define INSTEAD __attribute__((visibility("default"), used))

/* What glibc's own names are made of; exported for this. */
extern void __libc_free(void *block);
extern void *__libc_realloc(void *block, size_t size);

INSTEAD void free(void *block);
INSTEAD void *realloc(void *block, size_t size);
INSTEAD void *reallocarray(void *block, size_t n, size_t size);

void
free(void *block)
{
    if (block != NULL)
        explicit_bzero(block, malloc_usable_size(block));
    __libc_free(block);
}

/* glibc's frees what it moves away from by itself. */
void *
realloc(void *block, size_t size)
{
    size_t had = block != NULL ? malloc_usable_size(block) : 0;
    void *moved;

    if (block == NULL)
        return malloc(size);
    if (size == 0) {
        free(block);
        return NULL;
    }
    if (size <= had) {
        explicit_bzero((char *)block + size, had - size);
        return __libc_realloc(block, size);
    }
    moved = malloc(size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, block, had);
    free(block);
    return moved;
}

void *
reallocarray(void *block, size_t n, size_t size)
{
    size_t length;

    if (__builtin_mul_overflow(n, size, &length)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, length);
}

#endif
