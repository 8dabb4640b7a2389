/* SPDX-License-Identifier: MIT */
/*
 * attack [PART...] [NAME=VALUE...]: runs inside a guest, as the agent or as the guest's root, and prints a line a row.
 * Linked statically: guests have no libraries that it could go by.
 */
#include "attack.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char **values;

void
attack_row(const char *name, long result, const char *errnos)
{
    const char *why = strerrorname_np(errno);
    size_t length = why != NULL ? strlen(why) : 0;

    if (result >= 0) {
        printf("NOT %s %ld\n", name, result);
        return;
    }
    for (const char *at = errnos; why != NULL && (at = strstr(at, why)) != NULL; at += length) {
        if ((at == errnos || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) {
            printf("refused %s %s\n", name, why);
            return;
        }
    }
    printf("odd %s %s\n", name, why != NULL ? why : "?");
}

void
attack_said(const char *name, int refused, const char *detail)
{
    printf("%s %s %s\n", refused ? "refused" : "NOT", name, detail);
}

const char *
attack_value(const char *name)
{
    size_t length = strlen(name);

    for (char **at = values; *at != NULL; at++) {
        if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
            return *at + length + 1;
    }
    return "";
}

int
attack_is_root(void)
{
    return geteuid() == 0;
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } PARTS[] = {
        {"kernel", attack_kernel},
        {"files", attack_files},
        {"network", attack_network},
        {"broker", attack_broker},
    };

    values = argv + 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1 && strcmp(argv[1], "listen") == 0)
        return attack_listen(attack_value("abstract"), atoi(attack_value("ipc")));
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        for (int j = 1; j < argc; j++) {
            if (strcmp(argv[j], PARTS[i].name) == 0)
                PARTS[i].run();
        }
    }
    puts("done");
    return 0;
}
