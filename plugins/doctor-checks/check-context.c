/* SPDX-License-Identifier: MIT */
#include "check-context.h"

#include <stdio.h>
#include <string.h>

char *
dc_setting(EbConfigSection *settings, const char *key, const char *fallback)
{
    char *value = eb_config_section_get_string(settings, key, NULL, NULL);

    if (value != NULL && *value == '\0')
        g_clear_pointer(&value, g_free);
    return value != NULL ? value : g_strdup(fallback);
}

char *
dc_account(EbConfigSection *settings)
{
    return dc_setting(settings, "account", "errand");
}

/* One line of passwd(5). */
static gboolean
parse_account(const char *line, const char *name, guint *uid, guint *gid)
{
    g_auto(GStrv) fields = g_strsplit(line, ":", 7);

    return g_strv_length(fields) >= 4 && strcmp(fields[0], name) == 0 && sscanf(fields[2], "%u", uid) == 1 &&
           sscanf(fields[3], "%u", gid) == 1;
}

gboolean
dc_account_ids(EbHost *host, EbConfigSection *settings, guint *uid, guint *gid)
{
    g_autofree char *name = dc_account(settings);
    g_autofree char *text = eb_host_read_file(host, "/etc/passwd", NULL, NULL);
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);
    const char *argv[] = {"getent", "passwd", name, NULL};
    g_autofree char *entry = NULL;
    int code = 1;

    for (guint i = 0; lines[i] != NULL; i++)
        if (parse_account(lines[i], name, uid, gid))
            return TRUE;
    /* Accounts may come from a directory service. */
    entry = eb_host_run(host, argv, 2000, &code, NULL);
    return entry != NULL && code == 0 && parse_account(entry, name, uid, gid);
}

char *
dc_daemon_dir(EbConfigSection *settings)
{
    return dc_setting(settings, "daemon.dir", "/var/lib/incus");
}

char *
dc_socket(EbConfigSection *settings)
{
    g_autofree char *known = dc_setting(settings, "daemon.socket", "/var/lib/incus/unix.socket");

    return dc_setting(settings, "backend.socket", known);
}

char *
dc_project(EbHost *host, EbConfigSection *settings)
{
    char *project = dc_setting(settings, "backend.project", NULL);
    guint uid, gid;

    if (project == NULL && dc_account_ids(host, settings, &uid, &gid))
        project = g_strdup_printf("user-%u", uid);
    return project;
}

char *
dc_pool(EbConfigSection *settings)
{
    return dc_setting(settings, "backend.pool", "errand");
}

/* The users' socket that was asked first, and how that ended. */
static struct {
    GMutex lock;
    char *socket;
    GError *error;
} contact;

gboolean
dc_contact(EbHost *host, EbConfigSection *settings, GError **error)
{
    g_autofree char *socket = dc_socket(settings);
    gboolean ok = TRUE;

    if (eb_host_is_fixture(host) || !g_str_has_suffix(socket, "/unix.socket.user"))
        return TRUE;
    g_mutex_lock(&contact.lock);
    if (g_strcmp0(contact.socket, socket) != 0) {
        g_autofree char *ignored = NULL;
        g_free(contact.socket);
        contact.socket = g_steal_pointer(&socket);
        g_clear_error(&contact.error);
        ignored = eb_host_unix_http_get(host, contact.socket, "/1.0", DC_CALL_MS, &contact.error);
    }
    if (g_error_matches(contact.error, EB_ERROR, EB_ERROR_TIMEOUT)) {
        ok = FALSE;
        if (error != NULL)
            *error = g_error_copy(contact.error);
    }
    g_mutex_unlock(&contact.lock);
    return ok;
}

/* GET @request: the body. */
static char *
get_body(EbHost *host, EbConfigSection *settings, const char *request, GError **error)
{
    g_autofree char *socket = dc_socket(settings);

    return dc_contact(host, settings, error) ? eb_host_unix_http_get(host, socket, request, DC_CALL_MS, error) : NULL;
}

JsonObject *
dc_get(EbHost *host, EbConfigSection *settings, const char *request, const char *missing, EbCheckResult **skip)
{
    g_autofree char *socket = dc_socket(settings);
    g_autoptr(GError) error = NULL;
    g_autofree char *body = get_body(host, settings, request, &error);
    g_autoptr(JsonNode) node = NULL;
    JsonObject *metadata;

    if (body == NULL) {
        if (missing != NULL && g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND) &&
            eb_host_connect_unix(host, socket, DC_CALL_MS, NULL))
            *skip = eb_check_result_new(EB_CHECK_FAIL, "%s", missing);
        else
            *skip = eb_check_result_new(EB_CHECK_SKIPPED, "incusd cannot be asked: %s", error->message);
        return NULL;
    }
    node = eb_json_parse(body, strlen(body), &EB_JSON_LIMITS_SMALL, &error);
    metadata = eb_json_get_object(eb_json_node_object(node), "metadata");
    if (metadata == NULL) {
        *skip = eb_check_result_new(EB_CHECK_SKIPPED, "the answer of incusd to %s is not understood", request);
        return NULL;
    }
    return json_object_ref(metadata);
}

JsonNode *
dc_get_guests(EbHost *host, EbConfigSection *settings, EbCheckResult **skip)
{
    g_autofree char *project = dc_project(host, settings);
    g_autofree char *request = NULL;
    g_autofree char *full = NULL;
    g_autofree char *body = NULL;
    g_autoptr(JsonNode) node = NULL;
    g_autoptr(GError) error = NULL;

    if (project == NULL) {
        *skip = eb_check_result_new(EB_CHECK_SKIPPED, "the account does not exist, so its project cannot be named");
        return NULL;
    }
    request = dc_request("/1.0/instances%s", "", project);
    full = g_strconcat(request, "&recursion=1", NULL);
    body = get_body(host, settings, full, &error);
    node = body != NULL ? eb_json_parse(body, strlen(body), &EB_JSON_LIMITS_SMALL, &error) : NULL;
    if (eb_json_get_array(eb_json_node_object(node), "metadata") != NULL)
        return g_steal_pointer(&node);
    *skip = eb_check_result_new(EB_CHECK_SKIPPED, "incusd cannot be asked: %s",
                                error != NULL ? error->message : "its answer is not understood");
    return NULL;
}

gboolean
dc_has_device(JsonObject *guest, const char *type)
{
    JsonObject *devices = eb_json_get_object(guest, "expanded_devices");
    g_autoptr(GList) keys = devices != NULL ? json_object_get_members(devices) : NULL;

    for (GList *l = keys; l != NULL; l = l->next)
        if (g_strcmp0(eb_json_get_string(eb_json_get_object(devices, l->data), "type"), type) == 0)
            return TRUE;
    return FALSE;
}

gboolean
dc_is_below(const char *path, const char *top)
{
    gsize length = strlen(top);

    return strncmp(path, top, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

gboolean
dc_range_holds(const char *text, const char *owner, guint64 start, guint64 count)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) fields = g_strsplit(lines[i], ":", 4);
        guint64 first, size;
        if (g_strv_length(fields) == 3 && strcmp(fields[0], owner) == 0 &&
            g_ascii_string_to_unsigned(fields[1], 10, 0, G_MAXUINT32, &first, NULL) &&
            g_ascii_string_to_unsigned(g_strchomp(fields[2]), 10, 1, G_MAXUINT32, &size, NULL) && start >= first &&
            start + count <= first + size)
            return TRUE;
    }
    return FALSE;
}

char *
dc_request(const char *format, const char *name, const char *project)
{
    g_autofree char *escaped = g_uri_escape_string(name, NULL, FALSE);
    g_autofree char *escaped_project = project != NULL ? g_uri_escape_string(project, NULL, FALSE) : NULL;
    g_auto(GStrv) parts = g_strsplit(format, "%s", 2);
    g_autofree char *path = g_strjoinv(escaped, parts);

    return escaped_project != NULL ? g_strconcat(path, "?project=", escaped_project, NULL) : g_steal_pointer(&path);
}

gboolean
dc_read_number(EbHost *host, const char *path, guint64 *value)
{
    g_autofree char *text = eb_host_read_file(host, path, NULL, NULL);
    char *end;

    if (text == NULL)
        return FALSE;
    *value = g_ascii_strtoull(text, &end, 10);
    return end != text;
}

gboolean
dc_parse_version(const char *text, DcVersion *version)
{
    *version = (DcVersion){0};
    return text != NULL && sscanf(text, "%u.%u.%u", &version->major, &version->minor, &version->patch) >= 1;
}

gboolean
dc_version_less(const DcVersion *version, guint major, guint minor, guint patch)
{
    if (version->major != major)
        return version->major < major;
    if (version->minor != minor)
        return version->minor < minor;
    return version->patch < patch;
}

char *
dc_package_version(EbHost *host, const char *package)
{
    const char *argv[] = {"dpkg-query", "-W", "-f", "${Version}", package, NULL};
    int code = 1;
    g_autofree char *version = eb_host_run(host, argv, 2000, &code, NULL);

    return version != NULL && code == 0 ? g_steal_pointer(&version) : NULL;
}

gboolean
dc_package_less(EbHost *host, const char *a, const char *b)
{
    const char *argv[] = {"dpkg", "--compare-versions", a, "lt", b, NULL};
    int code = 1;
    g_autofree char *output = eb_host_run(host, argv, 2000, &code, NULL);

    return output != NULL && code == 0;
}

gboolean
dc_kernel(EbHost *host, DcVersion *version)
{
    g_autofree char *release = eb_host_uname_release(host);

    return dc_parse_version(release, version);
}
