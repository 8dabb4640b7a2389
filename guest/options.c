/* SPDX-License-Identifier: MIT */
#include "guest/options.h"

#include <stddef.h>
#include <string.h>

static bool
parse_number(const char *text, uint64_t limit, uint64_t *value)
{
    uint64_t result = 0;

    if (*text == '\0' || strlen(text) > 18)
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        result = result * 10 + (uint64_t)(*text - '0');
    }
    if (result > limit)
        return false;
    *value = result;
    return true;
}

/* Absolute, without "." and "..": these are opened without following links. */
static bool
is_plain_absolute(const char *path)
{
    if (path[0] != '/' || path[1] == '\0' || strlen(path) > 1024)
        return false;
    return strstr(path, "//") == NULL && strstr(path, "/./") == NULL && strstr(path, "/../") == NULL;
}

static const char *
parse_value(const char *name, const char *value, struct options *out)
{
    uint64_t number = 0;

    if (strcmp(name, "--relay") == 0) {
        if (!parse_number(value, 65535, &number) || number == 0)
            return "--relay wants a port, 1 to 65535";
        out->relay_port = (unsigned)number;
    } else if (strcmp(name, "--tmp") == 0) {
        if (!parse_number(value, UINT64_C(1) << 50, &out->tmp_bytes))
            return "--tmp wants a number of bytes";
    } else if (strcmp(name, "--shm") == 0) {
        if (!parse_number(value, UINT64_C(1) << 50, &out->shm_bytes))
            return "--shm wants a number of bytes";
    } else if (strcmp(name, "--home") == 0) {
        if (!is_plain_absolute(value))
            return "--home wants an absolute directory";
        out->home = value;
    } else if (strcmp(name, "--cwd") == 0) {
        if (value[0] != '/')
            return "--cwd wants an absolute directory";
        out->cwd = value;
    } else {
        return "unknown option";
    }
    return NULL;
}

const char *
options_parse(int argc, char **argv, struct options *out)
{
    int i = 1;

    *out = (struct options){0};
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *wrong = NULL;
        if (strcmp(argv[i], "--lease") == 0)
            out->lease = true;
        else if (strcmp(argv[i], "--containers") == 0)
            out->containers = true;
        else if (i + 1 >= argc)
            wrong = "an option is unknown or lacks its value";
        else
            wrong = parse_value(argv[i], argv[i + 1], out), i++;
        if (wrong != NULL)
            return wrong;
    }
    if (i + 1 >= argc || argv[i + 1][0] == '\0')
        return "no command after --";
    out->command = argv + i + 1;
    return NULL;
}
