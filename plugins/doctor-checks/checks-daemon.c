/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "check-context.h"
#include "doctor-checks.h"

#define DAEMON "/usr/libexec/incus/incusd"

static EbCheckResult *
check_installed(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    if (eb_host_exists(host, DAEMON))
        return eb_check_result_new(EB_CHECK_OK, DAEMON);
    return eb_check_result_new(EB_CHECK_FAIL, "there is no " DAEMON);
}

static EbCheckResult *
check_listening(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *socket = dc_socket(settings);
    g_autoptr(GError) error = NULL;

    if (!dc_contact(host, settings, NULL) || eb_host_connect_unix(host, socket, DC_CALL_MS, &error))
        return eb_check_result_new(EB_CHECK_OK, "somebody listens on %s", socket);
    if (g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND))
        return eb_check_result_new(EB_CHECK_FAIL, "%s does not exist: incusd is not running", socket);
    if (g_error_matches(error, EB_ERROR, EB_ERROR_UNAVAILABLE))
        return eb_check_result_new(EB_CHECK_FAIL, "%s is a leftover: nobody listens on it", socket);
    return eb_check_result_new(EB_CHECK_SKIPPED, "%s: %s", socket, error->message);
}

static EbCheckResult *
check_permission(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *socket = dc_socket(settings);
    g_autoptr(GError) error = NULL;

    if (!dc_contact(host, settings, NULL) || eb_host_connect_unix(host, socket, DC_CALL_MS, &error))
        return eb_check_result_new(EB_CHECK_OK, "%s may be used", socket);
    if (g_error_matches(error, EB_ERROR, EB_ERROR_DENIED))
        return eb_check_result_new(EB_CHECK_FAIL, "this user may not use %s", socket);
    return eb_check_result_new(EB_CHECK_SKIPPED, "%s", error->message);
}

/* incus-user hangs up without a word when the certificate it keeps for an account is no longer whole. */
static EbCheckResult *
judge_unanswered(EbHost *host, EbConfigSection *settings, const char *socket, const GError *error)
{
    EbCheckResult *result = eb_check_result_new(EB_CHECK_FAIL, "incusd answers with an error: %s", error->message);
    g_autofree char *dir = g_path_get_dirname(socket);
    guint uid, gid;

    if (g_str_has_suffix(socket, "/unix.socket.user") && dc_account_ids(host, settings, &uid, &gid))
        eb_check_result_set_remedy(
            result,
            "when incusd itself answers root, what incus-user keeps of the account is spoilt: as "
            "root rm -r %s/users/%u, then `errand-box setup`, which has it made anew",
            dir, uid);
    return result;
}

static EbCheckResult *
check_answering(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *socket = dc_socket(settings);
    g_autoptr(GError) error = NULL;
    g_autofree char *body = NULL;

    if (!dc_contact(host, settings, &error))
        return eb_check_result_new(EB_CHECK_FAIL, "incusd takes a connection, then does not answer within %d ms",
                                   DC_CALL_MS);
    if (!eb_host_connect_unix(host, socket, DC_CALL_MS, &error))
        return g_error_matches(error, EB_ERROR, EB_ERROR_TIMEOUT)
                   ? eb_check_result_new(EB_CHECK_FAIL, "incusd takes no connection on %s", socket)
                   : eb_check_result_new(EB_CHECK_SKIPPED, "%s", error->message);
    body = eb_host_unix_http_get(host, socket, "/1.0", DC_CALL_MS, &error);
    if (body != NULL)
        return eb_check_result_new(EB_CHECK_OK, "it answers");
    if (g_error_matches(error, EB_ERROR, EB_ERROR_TIMEOUT))
        return eb_check_result_new(EB_CHECK_FAIL, "incusd takes a connection, then does not answer within %d ms",
                                   DC_CALL_MS);
    return judge_unanswered(host, settings, socket, error);
}

static EbCheckResult *
check_server(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autoptr(JsonObject) server = dc_get(host, settings, "/1.0", NULL, &skip);
    const char *name;

    if (server == NULL)
        return skip;
    name = eb_json_get_string(eb_json_get_object(server, "environment"), "server");
    if (g_strcmp0(name, "incus") == 0)
        return eb_check_result_new(EB_CHECK_OK, "Incus %s",
                                   eb_json_get_string(eb_json_get_object(server, "environment"), "server_version"));
    return eb_check_result_new(EB_CHECK_FAIL, "the daemon is %s", name != NULL ? name : "of an unknown kind");
}

/* Kernels from 6.9 on refuse the probe by which old daemons recognise idmapped mounts; these then chown every file. */
static EbCheckResult *
check_rewrite(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autoptr(JsonObject) server = dc_get(host, settings, "/1.0", NULL, &skip);
    const char *text;
    DcVersion version, kernel;

    if (server == NULL)
        return skip;
    text = eb_json_get_string(eb_json_get_object(server, "environment"), "server_version");
    if (!dc_parse_version(text, &version) || !dc_kernel(host, &kernel))
        return eb_check_result_new(EB_CHECK_SKIPPED, "the versions are not known");
    if (dc_version_less(&kernel, 6, 9, 0))
        return eb_check_result_new(EB_CHECK_OK, "kernel %u.%u", kernel.major, kernel.minor);
    if (dc_version_less(&version, 6, 0, 1) || (version.major == 6 && version.minor == 1))
        return eb_check_result_new(EB_CHECK_DEGRADED, "Incus %s on kernel %u.%u", text, kernel.major, kernel.minor);
    return eb_check_result_new(EB_CHECK_OK, "Incus %s", text);
}

/* The version that the daemon reports stays the same over security updates, so the package is asked. */
static EbCheckResult *
check_package(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *version = dc_package_version(host, "incus-base");
    DcVersion upstream;

    if (version == NULL || !dc_parse_version(version, &upstream))
        return eb_check_result_new(EB_CHECK_SKIPPED, "Incus was not installed from a Debian package");
    if (upstream.major == 6 && upstream.minor == 0) {
        if (dc_package_less(host, version, "6.0.4-2+deb13u4~"))
            return eb_check_result_new(
                EB_CHECK_FAIL, "incus-base %s: known ways from a restricted project to root of the host", version);
        if (dc_package_less(host, version, "6.0.4-2+deb13u12~"))
            return eb_check_result_new(EB_CHECK_DEGRADED, "incus-base %s lacks later security updates", version);
        return eb_check_result_new(EB_CHECK_OK, "incus-base %s", version);
    }
    if (upstream.major == 7 && upstream.minor == 0 && !dc_package_less(host, version, "7.0.2-3~"))
        return eb_check_result_new(EB_CHECK_OK, "incus-base %s", version);
    return eb_check_result_new(EB_CHECK_DEGRADED, "incus-base %s gets no security updates, or lacks some", version);
}

static EbCheckResult *
check_addresses(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autoptr(JsonObject) server = dc_get(host, settings, "/1.0", NULL, &skip);
    JsonArray *addresses;

    if (server == NULL)
        return skip;
    addresses = eb_json_get_array(eb_json_get_object(server, "environment"), "addresses");
    for (guint i = 0; addresses != NULL && i < json_array_get_length(addresses); i++) {
        const char *address = eb_json_array_string(addresses, i);
        if (address != NULL && !g_str_has_prefix(address, "127.") && !g_str_has_prefix(address, "[::1]"))
            return eb_check_result_new(EB_CHECK_DEGRADED, "incusd listens on %s", address);
    }
    return eb_check_result_new(EB_CHECK_OK, "no address beyond this host");
}

/* A pid of incusd, 0 when none is seen. */
static guint
find_daemon(EbHost *host)
{
    g_auto(GStrv) names = eb_host_list_dir(host, "/proc", NULL);

    for (guint i = 0; names != NULL && names[i] != NULL; i++) {
        g_autofree char *path = g_strdup_printf("/proc/%s/cmdline", names[i]);
        g_autofree char *line = NULL;
        if (!g_ascii_isdigit(names[i][0]))
            continue;
        line = eb_host_read_file(host, path, NULL, NULL);
        if (line != NULL && strcmp(line, DAEMON) == 0)
            return (guint)g_ascii_strtoull(names[i], NULL, 10);
    }
    return 0;
}

static EbCheckResult *
check_debug(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    guint pid = find_daemon(host);
    g_autofree char *path = g_strdup_printf("/proc/%u/cmdline", pid);
    gsize length = 0;
    g_autofree char *line = pid > 0 ? eb_host_read_file(host, path, &length, NULL) : NULL;

    if (line == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "no incusd is seen among the processes");
    for (const char *word = line; word < line + length; word += strlen(word) + 1)
        if (strcmp(word, "--debug") == 0 || strcmp(word, "-d") == 0)
            return eb_check_result_new(EB_CHECK_DEGRADED, "incusd runs with %s", word);
    return eb_check_result_new(EB_CHECK_OK, "not in use");
}

static EbCheckResult *
check_open_files(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    guint pid = find_daemon(host);
    g_autofree char *path = g_strdup_printf("/proc/%u/limits", pid);
    g_autofree char *limits = pid > 0 ? eb_host_read_file(host, path, NULL, NULL) : NULL;
    const char *line = limits != NULL ? strstr(limits, "Max open files") : NULL;
    guint64 value;

    if (line == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "the limits of incusd cannot be read");
    value = g_ascii_strtoull(line + strlen("Max open files"), NULL, 10);
    /* Some ten descriptors a guest and exec: enough for every session this host can hold. */
    if (value < 16384)
        return eb_check_result_new(EB_CHECK_DEGRADED, "incusd may open %" G_GUINT64_FORMAT " files", value);
    return eb_check_result_new(EB_CHECK_OK, "%" G_GUINT64_FORMAT, value);
}

/* A wedged server of the mount is there and cannot be read. */
static EbCheckResult *
check_lxcfs(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    static const char *const PLACES[] = {"/var/lib/lxcfs", "/var/lib/incus-lxcfs"};
    g_autofree char *mounts = eb_host_read_file(host, "/proc/self/mountinfo", NULL, NULL);

    for (guint i = 0; mounts != NULL && i < G_N_ELEMENTS(PLACES); i++) {
        g_autofree char *point = g_strdup_printf(" %s ", PLACES[i]);
        g_autofree char *file = g_build_filename(PLACES[i], "proc/meminfo", NULL);
        g_autofree char *text = NULL;
        if (strstr(mounts, point) == NULL)
            continue;
        text = eb_host_read_file(host, file, NULL, NULL);
        if (text != NULL)
            return eb_check_result_new(EB_CHECK_OK, "%s", PLACES[i]);
        return eb_check_result_new(EB_CHECK_FAIL,
                                   "%s is mounted, but its server is gone: /proc of every guest is broken", PLACES[i]);
    }
    return eb_check_result_new(EB_CHECK_DEGRADED, "lxcfs is not running");
}

/* 5.0 takes no notice of the place it is told to serve, and guests then start without. */
static EbCheckResult *
check_lxcfs_instances(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autoptr(JsonObject) server = dc_get(host, settings, "/1.0", NULL, &skip);
    JsonObject *config = eb_json_get_object(server, "config");
    g_autofree char *text = NULL;
    DcVersion version;

    if (server == NULL)
        return skip;
    if (config == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "incusd shows its settings to administrators alone");
    if (g_strcmp0(eb_json_get_string(config, "instances.lxcfs.per_instance"), "true") != 0)
        return eb_check_result_new(EB_CHECK_OK, "one lxcfs for all guests");
    text = dc_package_version(host, "lxcfs");
    if (text == NULL || !dc_parse_version(text, &version))
        return eb_check_result_new(EB_CHECK_SKIPPED, "the version of lxcfs is not known");
    if (version.major < 6)
        return eb_check_result_new(EB_CHECK_DEGRADED,
                                   "instances.lxcfs.per_instance is true, which lxcfs %u.%u does not know",
                                   version.major, version.minor);
    return eb_check_result_new(EB_CHECK_OK, "lxcfs %u.%u, one a guest", version.major, version.minor);
}

static EbCheckResult *
check_cluster(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autoptr(JsonObject) server = dc_get(host, settings, "/1.0", NULL, &skip);
    g_autofree char *socket = dc_socket(settings);
    g_autofree char *body = NULL;
    g_autoptr(JsonNode) node = NULL;
    g_autoptr(GError) error = NULL;
    JsonArray *members;

    if (server == NULL) /* asked before: no first contact */
        return skip;
    if (!eb_json_get_bool(eb_json_get_object(server, "environment"), "server_clustered", FALSE))
        return eb_check_result_new(EB_CHECK_OK, "no cluster");
    body = eb_host_unix_http_get(host, socket, "/1.0/cluster/members?recursion=1", DC_CALL_MS, &error);
    if (body == NULL && g_error_matches(error, EB_ERROR, EB_ERROR_DENIED))
        return eb_check_result_new(EB_CHECK_SKIPPED, "incusd shows the cluster to administrators alone");
    if (body == NULL)
        return eb_check_result_new(EB_CHECK_FAIL, "the cluster does not answer: %s", error->message);
    node = eb_json_parse(body, strlen(body), &EB_JSON_LIMITS_SMALL, NULL);
    members = eb_json_get_array(eb_json_node_object(node), "metadata");
    for (guint i = 0; members != NULL && i < json_array_get_length(members); i++) {
        JsonObject *member = eb_json_array_object(members, i);
        const char *status = eb_json_get_string(member, "status"), *name = eb_json_get_string(member, "server_name");
        if (g_strcmp0(status, "Online") != 0)
            return eb_check_result_new(EB_CHECK_FAIL, "member %s is %s", name != NULL ? name : "?",
                                       status != NULL ? status : "in an unknown state");
    }
    return eb_check_result_new(EB_CHECK_OK, "%u members", members != NULL ? json_array_get_length(members) : 0);
}

const DcRow DC_DAEMON_CHECKS[] = {
    DC_ROW(E_10, check_installed),  DC_ROW(E_11, check_listening),
    DC_ROW(E_12, check_permission), DC_ROW(E_13, check_answering),
    DC_ROW(E_14, check_server),     DC_ROW(E_20, check_rewrite),
    DC_ROW(E_22, check_package),    DC_ROW(E_46, check_addresses),
    DC_ROW(E_43, check_debug),      DC_ROW(E_42, check_open_files),
    DC_ROW(E_08, check_lxcfs),      DC_ROW(E_50, check_lxcfs_instances),
    DC_ROW(E_59, check_cluster),    {NULL, NULL, NULL},
};
