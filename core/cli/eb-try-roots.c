/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-try.h"

#include <string.h>
#include <sys/stat.h>

/* Tries kept on disk; a listing beyond this asks for a prune. */
#define MAX_ROOTS 10000

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char **
eb_try_roots(const char *state_dir)
{
    g_autofree char *dir = g_build_filename(state_dir, EB_TRY_DIR, NULL);
    g_autoptr(GDir) handle = g_dir_open(dir, 0, NULL);
    g_autoptr(GPtrArray) roots = g_ptr_array_new_with_free_func(g_free);
    const char *name;

    while (handle != NULL && roots->len < MAX_ROOTS && (name = g_dir_read_name(handle)) != NULL) {
        g_autofree char *path = g_build_filename(dir, name, NULL);
        struct stat info;
        if (name[0] != '.' && lstat(path, &info) == 0 && S_ISDIR(info.st_mode))
            g_ptr_array_add(roots, g_steal_pointer(&path));
    }
    g_ptr_array_sort(roots, compare_names);
    g_ptr_array_add(roots, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&roots), FALSE);
}

static gboolean
is_id(const char *id)
{
    gsize length = strlen(id);
    return length > 0 && length <= 64 && strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

char *
eb_try_find_root(const char *state_dir, const char *id, GError **error)
{
    g_auto(GStrv) roots = eb_try_roots(state_dir);

    for (char **root = roots; is_id(id) && *root != NULL; root++) {
        g_autofree char *session = g_build_filename(*root, "sessions", id, NULL);
        struct stat info;
        if (lstat(session, &info) == 0 && S_ISDIR(info.st_mode))
            return g_strdup(*root);
    }
    g_autofree char *shown = eb_log_escape(id, -1, 64);
    eb_set_error(error, EB_ERROR_NOT_FOUND, "try.resume",
                 "there is no earlier try with session \"%s\" (errand-box sessions list)", shown);
    return NULL;
}
