/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/eb-tree-remove.h"
#include "core/provision/eb-setup-private.h"

/*
 * incus-user keeps a certificate of each account in users/UID of the daemon's directory, and the daemon trusts it for
 * one project. It makes both when the account first asks and never looks at them again: once the project was removed
 * and made anew, or the daemon forgot the certificate, the account is refused for good.
 */

#define CALL_MS 30000
#define TREE_MS 10000

/* Certificates called @name that reach no other project than @project: an interrupted setup may have left more than one.
 * Returns: (transfer full) (element-type utf8): fingerprints */
static GPtrArray *
find_certificates(EbSetup *self, const char *name, const char *project)
{
    g_autoptr(JsonNode) node =
        eb_provision_client_call(self->client, "GET", "/1.0/certificates?recursion=1", NULL, CALL_MS, NULL);
    JsonArray *list = node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
    GPtrArray *found = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++) {
        JsonObject *certificate = eb_json_array_object(list, i);
        JsonArray *projects = eb_json_get_array(certificate, "projects");
        const guint n = projects != NULL ? json_array_get_length(projects) : 0;
        const char *fingerprint = eb_json_get_string(certificate, "fingerprint");
        if (fingerprint != NULL && g_strcmp0(eb_json_get_string(certificate, "name"), name) == 0 &&
            (n == 0 || (n == 1 && g_strcmp0(eb_json_array_string(projects, 0), project) == 0)))
            g_ptr_array_add(found, g_strdup(fingerprint));
    }
    return found;
}

/* Root's own directory that nobody else can write; -1: there is none. */
static int
open_users(EbSetup *self)
{
    g_autofree char *path = g_build_filename(self->daemon_dir, "users", NULL);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;

    if (fd >= 0 && (fstat(fd, &info) < 0 || info.st_uid != 0 || (info.st_mode & 022) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

gboolean
eb_setup_knows_incus_user(EbSetup *self, guint uid)
{
    g_autofree char *entry = g_strdup_printf("%u", uid);
    int users = open_users(self);
    gboolean known = users >= 0 && faccessat(users, entry, F_OK, AT_SYMLINK_NOFOLLOW) == 0;

    if (users >= 0)
        close(users);
    return known;
}

gboolean
eb_setup_forget_incus_user(EbSetup *self, guint uid, GError **error)
{
    g_autofree char *name = g_strdup_printf("incus-user-%u", uid);
    g_autofree char *project = g_strdup_printf("user-%u", uid);
    g_autofree char *entry = g_strdup_printf("%u", uid);
    g_autoptr(GPtrArray) fingerprints = find_certificates(self, name, project);
    int users;
    gboolean ok;

    for (guint i = 0; i < fingerprints->len; i++) {
        g_autofree char *path = eb_provision_path("/1.0/certificates/%s", (const char *)fingerprints->pdata[i]);
        g_autoptr(GError) failure = NULL;
        g_autoptr(JsonNode) answer = eb_provision_client_call(self->client, "DELETE", path, NULL, CALL_MS, &failure);
        if (answer == NULL && !g_error_matches(failure, EB_ERROR, EB_ERROR_NOT_FOUND)) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return FALSE;
        }
    }
    users = open_users(self);
    if (users < 0)
        return TRUE;
    ok = eb_tree_remove_at(users, entry, TREE_MS, NULL, error);
    close(users);
    return ok;
}
