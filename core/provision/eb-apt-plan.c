/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-apt-plan.h"

#include <fnmatch.h>
#include <string.h>

/* Shell patterns of names. */
static const char *const KERNEL[] = {"linux-image*",   "linux-headers*",
                                     "linux-modules*", "linux-kbuild*",
                                     "linux-source*",  "*-dkms",
                                     "dkms",           "zfs*",
                                     "*-zfs*",         "spl",
                                     "spl-*",          "*-modules-[0-9]*",
                                     "*-kmod",         "initramfs-tools*",
                                     "dracut*",        "module-assistant"};

void
eb_apt_plan_free(EbAptPlan *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->installs);
    g_ptr_array_unref(self->upgrades);
    g_ptr_array_unref(self->removes);
    g_free(self);
}

/* "Inst NAME[:ARCH] [old version] (new version ...)", "Remv NAME [version]", "Purg NAME [version]" */
static void
parse_line(EbAptPlan *self, const char *line)
{
    gboolean install = g_str_has_prefix(line, "Inst ");
    const char *name = line + 5;
    gsize length;
    GPtrArray *list;

    if (!install && !g_str_has_prefix(line, "Remv ") && !g_str_has_prefix(line, "Purg "))
        return;
    length = strcspn(name, " :");
    if (length == 0 || length > 200)
        return;
    list = !install                                            ? self->removes
           : g_str_has_prefix(name + strcspn(name, " "), " [") ? self->upgrades
                                                               : self->installs;
    if (list->len < EB_APT_PLAN_MAX)
        g_ptr_array_add(list, g_strndup(name, length));
}

EbAptPlan *
eb_apt_plan_parse(const char *text)
{
    EbAptPlan *self = g_new0(EbAptPlan, 1);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    self->installs = g_ptr_array_new_with_free_func(g_free);
    self->upgrades = g_ptr_array_new_with_free_func(g_free);
    self->removes = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; lines[i] != NULL; i++)
        parse_line(self, lines[i]);
    return self;
}

gboolean
eb_apt_is_kernel_package(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(KERNEL); i++)
        if (fnmatch(KERNEL[i], name, 0) == 0)
            return TRUE;
    return FALSE;
}

char *
eb_apt_plan_kernel(const EbAptPlan *self)
{
    GPtrArray *const lists[] = {self->installs, self->upgrades};
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; i < G_N_ELEMENTS(lists); i++)
        for (guint j = 0; j < lists[i]->len; j++)
            if (eb_apt_is_kernel_package(lists[i]->pdata[j]))
                g_string_append_printf(text, "%s%s", text->len > 0 ? " " : "", (char *)lists[i]->pdata[j]);
    return text->len > 0 ? g_strdup(text->str) : NULL;
}

gboolean
eb_apt_has_candidate(const char *policy)
{
    const char *found = strstr(policy, "Candidate: ");

    return found != NULL && !g_str_has_prefix(found, "Candidate: (none)");
}

char *
eb_apt_backports_source(const char *targets, const char *codename, const char *keyring, GError **error)
{
    g_autofree char *wanted = g_strdup_printf("%s main ", codename);
    g_autofree char *backports = g_strdup_printf("%s-backports ", codename);
    g_auto(GStrv) lines = g_strsplit(targets, "\n", -1);
    g_autofree char *uri = NULL;

    for (guint i = 0; lines[i] != NULL; i++) {
        if (g_str_has_prefix(lines[i], backports)) {
            eb_set_error(error, EB_ERROR_EXISTS, "apt.backports", "%s-backports is one of apt's sources already",
                         codename);
            return NULL;
        }
        if (uri == NULL && g_str_has_prefix(lines[i], wanted))
            uri = g_strstrip(g_strdup(lines[i] + strlen(wanted)));
    }
    if (uri == NULL || *uri == '\0' || strpbrk(uri, " \t\r") != NULL) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "apt.mirror", "apt has no source for the release %s", codename);
        return NULL;
    }
    return g_strdup_printf("# added by errand-box setup: the release itself has no Incus\n"
                           "Types: deb\nURIs: %s\nSuites: %s-backports\nComponents: main\n%s%s%s",
                           uri, codename, keyring != NULL ? "Signed-By: " : "", keyring != NULL ? keyring : "",
                           keyring != NULL ? "\n" : "");
}

char *
eb_apt_release_codename(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (guint i = 0; lines[i] != NULL; i++)
        if (g_str_has_prefix(lines[i], "VERSION_CODENAME=")) {
            char *value = g_strdup(lines[i] + strlen("VERSION_CODENAME="));
            g_strdelimit(value, "\"'", ' ');
            g_strstrip(value);
            if (*value != '\0' && strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(value))
                return value;
            g_free(value);
        }
    return NULL;
}

char *
eb_apt_new_lines(const char *before, const char *after, char delimiter)
{
    const char stops[] = {delimiter, '\0'};
    g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_auto(GStrv) old = g_strsplit(before, "\n", -1);
    g_auto(GStrv) lines = g_strsplit(after, "\n", -1);
    GString *text = g_string_new(NULL);

    for (guint i = 0; old[i] != NULL; i++)
        g_hash_table_add(known, g_strndup(old[i], strcspn(old[i], stops)));
    for (guint i = 0; lines[i] != NULL; i++) {
        char *key = g_strndup(lines[i], strcspn(lines[i], stops));
        if (*key != '\0' && !g_hash_table_contains(known, key))
            g_string_append_printf(text, "%s%s", text->len > 0 ? "\n" : "", key);
        g_free(key);
    }
    return g_string_free(text, FALSE);
}
