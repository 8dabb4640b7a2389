/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-debian.h"

#include "core/provision/eb-run.h"

#include <string.h>

#define DEADLINE_MS 30000
#define INSTALLED "installed "

char *
eb_debian_parse_candidate(const char *output)
{
    const char *found = strstr(output, "\n  Candidate: ");

    if (found == NULL)
        return NULL;
    found += strlen("\n  Candidate: ");
    g_autofree char *version = g_strstrip(g_strndup(found, strcspn(found, "\n")));
    return *version != '\0' && strcmp(version, "(none)") != 0 ? g_steal_pointer(&version) : NULL;
}

char *
eb_debian_candidate(const char *package, GError **error)
{
    const char *const argv[] = {"apt-cache", "policy", "--", package, NULL};
    g_autofree char *output = NULL;

    if (!eb_run(argv, DEADLINE_MS, &output, error))
        return NULL;
    char *version = eb_debian_parse_candidate(output);
    if (version == NULL)
        eb_set_error(error, EB_ERROR_NOT_FOUND, "pins.deb", "apt knows no package %s (run: apt-get update)", package);
    return version;
}

char *
eb_debian_installed(const char *package)
{
    const char *const argv[] = {"dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", "--", package, NULL};
    g_autofree char *output = NULL;

    if (!eb_run(argv, DEADLINE_MS, &output, NULL) || !g_str_has_prefix(output, INSTALLED))
        return NULL;
    return g_strstrip(g_strdup(output + strlen(INSTALLED)));
}

gboolean
eb_debian_is_at_least(const char *version, const char *least)
{
    const char *const argv[] = {"dpkg", "--compare-versions", version, "ge", least, NULL};

    return eb_run(argv, DEADLINE_MS, NULL, NULL);
}
