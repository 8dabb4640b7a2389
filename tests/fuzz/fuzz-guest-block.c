/* SPDX-License-Identifier: MIT */
#include "guest/block.h"

#include <glib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

/* The first line as the header, the rest as records: whatever is accepted must lie inside the bytes given. */
int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    static struct block block;
    const guint8 *newline = size > 0 ? memchr(data, '\n', MIN(size, BLOCK_MAX_HEADER)) : NULL;
    gsize header = newline != NULL ? (gsize)(newline - data) + 1 : 0;
    size_t announced = 0;

    if (block_parse_header((const char *)data, header, &announced) == NULL && announced > BLOCK_MAX_BYTES)
        g_error("a header announces too much");
    gsize length = size - header;
    g_autofree guint8 *bytes = g_memdup2(data + header, length);
    if (block_parse(bytes, length, &block) != NULL)
        return 0;
    if (block.env[block.n_env] != NULL)
        g_error("no end behind the variables");
    for (gsize i = 0; i < block.n_env; i++) {
        guint8 *text = (guint8 *)block.env[i];
        if (text < bytes || text + strlen(block.env[i]) >= bytes + length || strchr(block.env[i], '=') == NULL)
            g_error("a variable outside of the block");
    }
    for (gsize i = 0; i < block.n_files; i++) {
        const struct block_file *file = &block.files[i];
        if (file->data < bytes || file->size > length || file->data + file->size > bytes + length)
            g_error("a file outside of the block");
        g_autofree char *framed = g_strconcat("/", file->path, "/", NULL);
        if (file->mode > 0777 || strstr(framed, "//") != NULL || strstr(framed, "/./") != NULL ||
            strstr(framed, "/../") != NULL)
            g_error("a path or mode that must be refused");
    }
    return 0;
}
