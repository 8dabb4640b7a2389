/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** options: the launcher's command line; strings point into argv. */
struct options {
    unsigned relay_port; /* 0: no relay */
    uint64_t tmp_bytes;  /* 0: leave alone */
    uint64_t shm_bytes;  /* 0: leave alone */
    const char *home;    /* or NULL */
    const char *cwd;     /* or NULL */
    bool lease;
    bool containers;
    char **command; /* NULL-terminated, at least one */
};

/** options_parse: NULL, or what is wrong (static string). */
const char *options_parse(int argc, char **argv, struct options *out);
