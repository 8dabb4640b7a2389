/* SPDX-License-Identifier: MIT */
#include "guest/block.h"

#include <string.h>

static const char MAGIC[] = "ERRAND1 ";

/* Plain decimal without sign, blanks or leading zeros: one spelling for each number. */
static bool
parse_decimal(const char *text, size_t length, size_t limit, size_t *value)
{
    size_t result = 0;

    if (length == 0 || length > 10 || (length > 1 && text[0] == '0'))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        result = result * 10 + (size_t)(text[i] - '0');
    }
    if (result > limit)
        return false;
    *value = result;
    return true;
}

static bool
parse_mode(const char *text, unsigned *mode)
{
    size_t length = strlen(text);
    unsigned result = 0;

    if (length < 3 || length > 4)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '7')
            return false;
        result = result * 8 + (unsigned)(text[i] - '0');
    }
    if (result > 0777) /* set-id and sticky bits have no business in a HOME */
        return false;
    *mode = result;
    return true;
}

/* Relative, no empty, "." or ".." component, bounded: what is left names something below HOME unless a link leads
 * elsewhere, and links are refused where the path is walked. */
static bool
path_is_plain(const char *path)
{
    size_t depth = 0;

    if (strlen(path) > BLOCK_MAX_PATH)
        return false;
    for (const char *part = path;;) {
        size_t length = strcspn(part, "/");
        if (length == 0 || length > 255 || ++depth > BLOCK_MAX_DEPTH)
            return false;
        if (part[0] == '.' && (length == 1 || (length == 2 && part[1] == '.')))
            return false;
        if (part[length] == '\0')
            return true;
        part += length + 1;
    }
}

const char *
block_parse_header(const char *line, size_t length, size_t *size)
{
    size_t magic = sizeof MAGIC - 1;

    if (length <= magic || length > BLOCK_MAX_HEADER || memcmp(line, MAGIC, magic) != 0)
        return "input does not begin with an ERRAND1 line";
    if (line[length - 1] != '\n')
        return "the ERRAND1 line has no end";
    if (!parse_decimal(line + magic, length - magic - 1, BLOCK_MAX_BYTES, size))
        return "the ERRAND1 line has no valid size";
    return NULL;
}

/* A NUL-terminated string that begins at *at; moves *at behind it. NULL when the block ends first. */
static char *
take_string(uint8_t *bytes, size_t size, size_t *at)
{
    uint8_t *start = bytes + *at;
    uint8_t *end = *at < size ? memchr(start, '\0', size - *at) : NULL;

    if (end == NULL)
        return NULL;
    *at = (size_t)(end - bytes) + 1;
    return (char *)start;
}

static const char *
parse_env(uint8_t *bytes, size_t size, size_t *at, struct block *out)
{
    char *text = take_string(bytes, size, at);
    const char *equals = text != NULL ? strchr(text, '=') : NULL;

    if (text == NULL)
        return "a variable has no end";
    if (equals == NULL || equals == text)
        return "a variable has no name";
    for (const char *c = text; c < equals; c++) {
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return "a variable's name has a blank or control character";
    }
    if (strlen(text) + 1 > BLOCK_MAX_STRING)
        return "a variable is longer than the kernel takes";
    if (out->n_env == BLOCK_MAX_ENV)
        return "too many variables";
    for (size_t i = 0; i < out->n_env; i++) {
        if (strncmp(out->env[i], text, (size_t)(equals - text) + 1) == 0)
            return "a variable is given twice";
    }
    out->env[out->n_env++] = text;
    return NULL;
}

static const char *
parse_file(uint8_t *bytes, size_t size, size_t *at, struct block *out)
{
    struct block_file file = {0};
    const char *mode;
    const char *length;

    file.path = take_string(bytes, size, at);
    mode = file.path != NULL ? take_string(bytes, size, at) : NULL;
    length = mode != NULL ? take_string(bytes, size, at) : NULL;
    if (length == NULL)
        return "a file record has no end";
    if (!path_is_plain(file.path))
        return "a file's path is not a plain relative path";
    if (!parse_mode(mode, &file.mode))
        return "a file's mode is not three or four octal digits up to 0777";
    if (!parse_decimal(length, strlen(length), BLOCK_MAX_BYTES, &file.size) || file.size > size - *at)
        return "a file's length is wrong";
    if (out->n_files == BLOCK_MAX_FILES)
        return "too many files";
    file.data = bytes + *at;
    *at += file.size;
    out->files[out->n_files++] = file;
    return NULL;
}

const char *
block_parse(uint8_t *bytes, size_t size, struct block *out)
{
    size_t at = 0;

    out->n_env = 0;
    out->n_files = 0;
    while (at < size) {
        const char *wrong;
        switch (bytes[at++]) {
        case 'E':
            wrong = parse_env(bytes, size, &at, out);
            break;
        case 'F':
            wrong = parse_file(bytes, size, &at, out);
            break;
        default:
            wrong = "a record of an unknown kind";
        }
        if (wrong != NULL)
            return wrong;
    }
    out->env[out->n_env] = NULL;
    return NULL;
}

const char *
block_find_env(const struct block *self, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < self->n_env; i++) {
        if (strncmp(self->env[i], name, length) == 0 && self->env[i][length] == '=')
            return self->env[i] + length + 1;
    }
    return NULL;
}
