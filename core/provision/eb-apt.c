/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-apt.h"

#include <string.h>

#include "core/provision/eb-run.h"

#define ASK_MS 60000
/* Lists of a slow mirror; packages of a slow line. */
#define UPDATE_MS (10 * 60 * 1000)
#define ACT_MS (60 * 60 * 1000)
#define KEYRING "/usr/share/keyrings/debian-archive-keyring.gpg"

/* A program of the distribution's own may ask things at a terminal, restart services and page its news otherwise. */
static const char *const ENVIRONMENT[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                          "LC_ALL=C",
                                          "HOME=/root",
                                          "DEBIAN_FRONTEND=noninteractive",
                                          "DEBIAN_PRIORITY=critical",
                                          "APT_LISTCHANGES_FRONTEND=none",
                                          "NEEDRESTART_MODE=l",
                                          NULL};
/* Another apt may be at work (a timer of the system's): wait for it. */
static const char *const OPTIONS[] = {"-q",          "-y",
                                      "-o",          "DPkg::Lock::Timeout=300",
                                      "-o",          "Acquire::Retries=2",
                                      "-o",          "Acquire::http::Timeout=30",
                                      "-o",          "Acquire::https::Timeout=30",
                                      "-o",          "Dpkg::Use-Pty=0",
                                      "-o",          "Dpkg::Options::=--force-confold",
                                      "--no-remove", "--no-install-recommends",
                                      NULL};

gboolean
eb_apt_is_here(void)
{
    g_autofree char *apt = eb_run_find("apt-get");
    g_autofree char *dpkg = eb_run_find("dpkg-query");

    return apt != NULL && dpkg != NULL;
}

/* (transfer container) */
static GPtrArray *
command(const char *first, const char *verb, const char *const *names)
{
    GPtrArray *argv = g_ptr_array_new();
    gboolean removes = strcmp(verb, "purge") == 0;

    g_ptr_array_add(argv, (gpointer) "apt-get");
    if (first != NULL)
        g_ptr_array_add(argv, (gpointer)first);
    for (guint i = 0; OPTIONS[i] != NULL; i++)
        if (!removes || strcmp(OPTIONS[i], "--no-remove") != 0)
            g_ptr_array_add(argv, (gpointer)OPTIONS[i]);
    g_ptr_array_add(argv, (gpointer)verb);
    if (names != NULL)
        g_ptr_array_add(argv, (gpointer) "--");
    for (guint i = 0; names != NULL && names[i] != NULL; i++)
        g_ptr_array_add(argv, (gpointer)names[i]);
    g_ptr_array_add(argv, NULL);
    return argv;
}

EbAptPlan *
eb_apt_simulate(const char *verb, const char *const *names, GError **error)
{
    g_autoptr(GPtrArray) argv = command("-s", verb, names);
    g_autoptr(GError) failure = NULL;
    g_autofree char *output = NULL;

    if (eb_run((const char *const *)argv->pdata, ASK_MS, &output, &failure))
        return eb_apt_plan_parse(output);
    if (strstr(failure->message, "Unable to locate package") != NULL ||
        strstr(failure->message, "no installation candidate") != NULL)
        eb_set_error(error, EB_ERROR_NOT_FOUND, "apt.unknown", "%s", failure->message);
    else
        g_propagate_error(error, g_steal_pointer(&failure));
    return NULL;
}

gboolean
eb_apt_knows(const char *name)
{
    const char *argv[] = {"apt-cache", "policy", name, NULL};
    g_autofree char *output = NULL;

    return eb_run(argv, ASK_MS, &output, NULL) && eb_apt_has_candidate(output);
}

gboolean
eb_apt_update(GError **error)
{
    g_autoptr(GPtrArray) argv = command(NULL, "update", NULL);
    g_autoptr(GError) failure = NULL;

    /* Without this a mirror that cannot be reached is a warning, and old lists are as good as none. */
    g_ptr_array_insert(argv, 1, (gpointer) "--error-on=any");
    if (eb_run_logged((const char *const *)argv->pdata, ENVIRONMENT, EB_APT_LOG, UPDATE_MS, &failure))
        return TRUE;
    eb_set_error(error, EB_ERROR_UNAVAILABLE, "apt.network",
                 "the package lists cannot be fetched: %s; when the network is back, run setup again",
                 failure->message);
    return FALSE;
}

/* dpkg was interrupted: it goes on where it was. */
static gboolean
finish_dpkg(GError **error)
{
    const char *audit[] = {"dpkg", "--audit", NULL};
    const char *configure[] = {"dpkg", "--force-confold", "--configure", "-a", NULL};
    g_autofree char *output = NULL;

    if (eb_run(audit, ASK_MS, &output, NULL) && *g_strstrip(output) == '\0')
        return TRUE;
    return eb_run_logged(configure, ENVIRONMENT, EB_APT_LOG, ACT_MS, error);
}

gboolean
eb_apt_act(const char *verb, const char *const *names, GError **error)
{
    g_autoptr(GPtrArray) argv = command(NULL, verb, names);
    g_autoptr(GError) failure = NULL;

    if (!finish_dpkg(error))
        return FALSE;
    if (eb_run_logged((const char *const *)argv->pdata, ENVIRONMENT, EB_APT_LOG, ACT_MS, &failure))
        return TRUE;
    if (strstr(failure->message, "Unable to fetch") != NULL || strstr(failure->message, "Failed to fetch") != NULL)
        eb_set_error(error, EB_ERROR_UNAVAILABLE, "apt.network",
                     "packages cannot be fetched: %s; when the network is back, run setup again", failure->message);
    else
        g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
}

char *
eb_apt_make_backports(GError **error)
{
    const char *argv[] = {
        "apt-get", "indextargets", "--format", "$(CODENAME) $(COMPONENT) $(REPO_URI)", "Created-By: Packages", NULL};
    g_autofree char *release = NULL;
    g_autofree char *codename = NULL;
    g_autofree char *targets = NULL;

    if (g_file_get_contents("/etc/os-release", &release, NULL, NULL))
        codename = eb_apt_release_codename(release);
    if (codename == NULL) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "apt.release", "/etc/os-release names no release");
        return NULL;
    }
    if (!eb_run(argv, ASK_MS, &targets, error))
        return NULL;
    return eb_apt_backports_source(targets, codename, g_file_test(KEYRING, G_FILE_TEST_EXISTS) ? KEYRING : NULL, error);
}

GHashTable *
eb_apt_list_installed(void)
{
    GHashTable *names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    const char *name = NULL;

    /* dpkg's own file: its answer about every package of a desktop is longer than eb_run() keeps. */
    if (!g_file_get_contents("/var/lib/dpkg/status", &text, NULL, NULL))
        return names;
    lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        if (g_str_has_prefix(lines[i], "Package: "))
            name = lines[i] + strlen("Package: ");
        else if (name != NULL && g_str_has_prefix(lines[i], "Status: ") &&
                 !g_str_has_suffix(lines[i], " not-installed") && !g_str_has_suffix(lines[i], " config-files"))
            g_hash_table_add(names, g_strdup(name));
    }
    return names;
}
