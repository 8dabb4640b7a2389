/* SPDX-License-Identifier: MIT */
#include "hello-check.h"

#include <string.h>

/*
 * Does this host have a name of its own? Everything the check looks at goes through @host and is named in reads, so
 * that any host can be put before it: the real one, or a tree of files.
 */

static const char *const reads[] = {"/etc/hostname", NULL};

const EbCheckInfo hello_check_info = {
    .id = "x-hello-hostname",
    .title = "The host has a name of its own",
    .expected = "a name other than localhost in /etc/hostname",
    .remedy = "give the host a name: hostnamectl set-hostname NAME",
    .reads = reads,
};

EbCheckResult *
hello_check_run(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = eb_host_read_file(host, "/etc/hostname", NULL, &error);
    g_autofree char *shown = NULL;

    /* Not being able to look is no failure of the host. */
    if (text == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "%s", error->message);
    g_strstrip(text);
    if (text[0] == '\0' || strcmp(text, "localhost") == 0)
        return eb_check_result_new(EB_CHECK_DEGRADED, "/etc/hostname says \"%s\"", text);
    shown = eb_log_escape(text, -1, 64);
    return eb_check_result_new(EB_CHECK_OK, "hello, %s", shown);
}
