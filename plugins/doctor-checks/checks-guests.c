/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "check-context.h"
#include "doctor-checks.h"

/* What each guest must have and must not have, as the container daemon describes it. */

/* Guests whose files are looked into: one question each. */
#define MAX_ASKED 20

/** Judge: (transfer full) (nullable): what is wrong with one guest, in a sentence that begins with its name. */
typedef char *(*Judge)(JsonObject *guest, EbConfigSection *settings);

static const char *
name_of(JsonObject *guest)
{
    const char *name = eb_json_get_string(guest, "name");

    return name != NULL ? name : "?";
}

static const char *
config_of(JsonObject *guest, const char *key)
{
    return eb_json_get_string(eb_json_get_object(guest, "expanded_config"), key);
}

static gboolean
is_running(JsonObject *guest)
{
    return g_strcmp0(eb_json_get_string(guest, "status"), "Running") == 0;
}

/* @bad for the first guest with a fault. */
static EbCheckResult *
judge_all(EbHost *host, EbConfigSection *settings, EbCheckStatus bad, Judge judge)
{
    EbCheckResult *skip = NULL;
    g_autoptr(JsonNode) answer = dc_get_guests(host, settings, &skip);
    JsonArray *list = eb_json_get_array(eb_json_node_object(answer), "metadata");
    guint n = list != NULL ? json_array_get_length(list) : 0;

    if (answer == NULL)
        return skip;
    for (guint i = 0; i < n; i++) {
        JsonObject *guest = eb_json_array_object(list, i);
        g_autofree char *fault = guest != NULL ? judge(guest, settings) : NULL;
        if (fault != NULL)
            return eb_check_result_new(bad, "guest %s %s", name_of(guest), fault);
    }
    return eb_check_result_new(EB_CHECK_OK, "%u guests", n);
}

/* --- limits --- */

/* Bytes of "4GiB", "512MiB", "1073741824"; 0: no such amount, e.g. a share of the host. */
static guint64
parse_amount(const char *text)
{
    static const char *const UNITS[] = {"", "KiB", "MiB", "GiB", "TiB"};
    char *end = NULL;
    guint64 number = text != NULL ? g_ascii_strtoull(text, &end, 10) : 0;

    for (guint i = 0; number > 0 && i < G_N_ELEMENTS(UNITS); i++)
        if (strcmp(end, UNITS[i]) == 0)
            return number << (10 * i);
    return 0;
}

/* A guest that uses no memory at all is not counted: its cgroup lacks the controller, and no limit holds. */
static char *
judge_memory(JsonObject *guest, JsonObject *memory)
{
    guint64 limit = parse_amount(config_of(guest, "limits.memory"));
    gint64 usage = eb_json_get_int(memory, "usage", 0), total = eb_json_get_int(memory, "total", 0);

    if (usage <= 0)
        return g_strdup("runs with its memory not counted, so no limit of it holds");
    if (limit > 0 && total > 0 && (guint64)total > limit)
        return g_strdup_printf("may use %" G_GINT64_FORMAT " MiB of memory, its limit says %" G_GUINT64_FORMAT " MiB",
                               total >> 20, limit >> 20);
    return NULL;
}

/* Only of those that run: incusd mounts what it is asked about, and one that is being made would fail of that. */
static EbCheckResult *
check_limits(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autoptr(JsonNode) answer = dc_get_guests(host, settings, &skip);
    JsonArray *list = eb_json_get_array(eb_json_node_object(answer), "metadata");
    g_autofree char *project = dc_project(host, settings);
    guint n = list != NULL ? json_array_get_length(list) : 0, asked = 0;

    if (answer == NULL)
        return skip;
    for (guint i = 0; i < n && asked < MAX_ASKED && !g_cancellable_is_cancelled(cancellable); i++) {
        JsonObject *guest = eb_json_array_object(list, i);
        g_autofree char *request = NULL;
        g_autoptr(JsonObject) state = NULL;
        g_autofree char *fault = NULL;

        if (!is_running(guest))
            continue;
        asked++;
        request = dc_request("/1.0/instances/%s/state", name_of(guest), project);
        state = dc_get(host, settings, request, NULL, &skip);
        if (state == NULL)
            g_clear_pointer(&skip, eb_check_result_free); /* it may have ended meanwhile */
        else if (g_strcmp0(eb_json_get_string(state, "status"), "Running") == 0)
            fault = judge_memory(guest, eb_json_get_object(state, "memory"));
        if (fault != NULL)
            return eb_check_result_new(EB_CHECK_FAIL, "guest %s %s", name_of(guest), fault);
    }
    return eb_check_result_new(EB_CHECK_OK, "%u guests run", asked);
}

/* --- what a guest could do on btrfs --- */

/* Whoever may make subvolumes in a guest writes past its quota, root in it or not. */
static char *
judge_subvolumes(JsonObject *guest, EbConfigSection *settings)
{
    static const char *const CALLS[] = {"0x5000940e", "0x50009418", "0x50009401", "0x50009417"};
    const char *rules = config_of(guest, "security.syscalls.deny");

    for (guint i = 0; i < G_N_ELEMENTS(CALLS); i++)
        if (rules == NULL || strstr(rules, CALLS[i]) == NULL)
            return g_strdup("may make subvolumes, which have no quota");
    return NULL;
}

static EbCheckResult *
check_subvolumes(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autofree char *name = dc_pool(settings);
    g_autofree char *request = dc_request("/1.0/storage-pools/%s", name, NULL);
    g_autoptr(JsonObject) pool = dc_get(host, settings, request, NULL, &skip);

    if (pool == NULL)
        return skip;
    if (g_strcmp0(eb_json_get_string(pool, "driver"), "btrfs") != 0)
        return eb_check_result_new(EB_CHECK_OK, "pool %s is no btrfs", name);
    return judge_all(host, settings, EB_CHECK_DEGRADED, judge_subvolumes);
}

/* --- devices --- */

/* @judge for each disk of @guest that comes from a path of the host, until one has a fault. */
static char *
each_disk(JsonObject *guest, EbConfigSection *settings,
          char *(*judge)(JsonObject *disk, const char *key, EbConfigSection *settings))
{
    JsonObject *devices = eb_json_get_object(guest, "expanded_devices");
    g_autoptr(GList) keys = devices != NULL ? json_object_get_members(devices) : NULL;
    char *fault = NULL;

    for (GList *l = keys; l != NULL && fault == NULL; l = l->next) {
        JsonObject *disk = eb_json_get_object(devices, l->data);
        if (g_strcmp0(eb_json_get_string(disk, "type"), "disk") == 0)
            fault = judge(disk, l->data, settings);
    }
    return fault;
}

/* @parts: what follows "sessions" in a path; "try" holds the same once more for each try. The session's directory itself,
 * or its run; what lies beside run is the guest's own. */
static gboolean
holds_run(char **parts, gboolean tries)
{
    if (parts[0] == NULL || parts[1] == NULL || strcmp(parts[1], "run") == 0)
        return TRUE;
    return tries && strcmp(parts[1], "sessions") == 0 && holds_run(parts + 2, FALSE);
}

/* "sessions/ID/run" and "try/ID/sessions/ID/run" of the state directory hold a broker's socket: who may write there can
 * put another one in its place. Projects may have these names as well. */
static char *
judge_socket_disk(JsonObject *disk, const char *key, EbConfigSection *settings)
{
    static const char *const HOLDERS[] = {"sessions", "try"};
    const char *source = eb_json_get_string(disk, "source");
    g_autofree char *state_dir = dc_setting(settings, "state_dir", "/var/lib/errand-box");
    gboolean bad = FALSE;

    if (source == NULL || source[0] != '/' || g_strcmp0(eb_json_get_string(disk, "readonly"), "true") == 0)
        return NULL;
    for (guint i = 0; i < G_N_ELEMENTS(HOLDERS) && !bad; i++) {
        g_autofree char *top = g_build_filename(state_dir, HOLDERS[i], NULL);
        g_auto(GStrv) parts = NULL;
        bad = strcmp(source, "/") == 0 || dc_is_below(top, source);
        if (bad || !dc_is_below(source, top))
            continue;
        parts = g_strsplit(source + strlen(top) + 1, "/", -1);
        bad = holds_run(parts, i == 1);
    }
    return bad ? g_strdup_printf("may write %s, where its broker listens (device %s)", source, key) : NULL;
}

static char *
judge_sockets(JsonObject *guest, EbConfigSection *settings)
{
    return each_disk(guest, settings, judge_socket_disk);
}

static EbCheckResult *
check_sockets(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    return judge_all(host, settings, EB_CHECK_FAIL, judge_sockets);
}

/* An init puts file systems of its own over these. */
static char *
judge_target_disk(JsonObject *disk, const char *key, EbConfigSection *settings)
{
    static const char *const COVERED[] = {"/run", "/tmp", "/dev", "/var/run", "/proc", "/sys"};
    const char *path = eb_json_get_string(disk, "path");

    for (guint i = 0; path != NULL && i < G_N_ELEMENTS(COVERED); i++)
        if (dc_is_below(path, COVERED[i]))
            return g_strdup_printf("has device %s at %s, which its init covers", key, path);
    return NULL;
}

static char *
judge_targets(JsonObject *guest, EbConfigSection *settings)
{
    return each_disk(guest, settings, judge_target_disk);
}

static EbCheckResult *
check_targets(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    return judge_all(host, settings, EB_CHECK_FAIL, judge_targets);
}

/* --- settings --- */

static char *
judge_autostart(JsonObject *guest, EbConfigSection *settings)
{
    const char *value = config_of(guest, "boot.autostart");

    /* Not set means: as it was when the host went down. */
    if (g_strcmp0(value, "false") == 0 || (value == NULL && !is_running(guest)))
        return NULL;
    return g_strdup("would be started by incusd itself after a reboot, with nobody in charge of it");
}

static EbCheckResult *
check_autostart(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    return judge_all(host, settings, EB_CHECK_DEGRADED, judge_autostart);
}

static char *
judge_guest_api(JsonObject *guest, EbConfigSection *settings)
{
    return g_strcmp0(config_of(guest, "security.guestapi"), "false") == 0 ? NULL
                                                                          : g_strdup("has the socket of the guest API");
}

static EbCheckResult *
check_guest_api(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    return judge_all(host, settings, EB_CHECK_DEGRADED, judge_guest_api);
}

/* --- id ranges --- */

/* incusd reads the ranges at its start alone: what it gives out may be from before a change. */
static EbCheckResult *
check_ranges_in_use(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *text = eb_host_read_file(host, "/etc/subuid", NULL, NULL);
    EbCheckResult *skip = NULL;
    g_autoptr(JsonNode) answer = NULL;
    JsonArray *list;

    if (text == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "/etc/subuid cannot be read");
    answer = dc_get_guests(host, settings, &skip);
    if (answer == NULL)
        return skip;
    list = eb_json_get_array(eb_json_node_object(answer), "metadata");
    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++) {
        JsonObject *guest = eb_json_array_object(list, i);
        const char *base_text = config_of(guest, "volatile.idmap.base");
        guint64 base;
        if (base_text == NULL || !g_ascii_string_to_unsigned(base_text, 10, 1, G_MAXUINT32, &base, NULL))
            continue;
        if (!dc_range_holds(text, "root", base, 65536))
            return eb_check_result_new(EB_CHECK_FAIL,
                                       "guest %s has ids from %" G_GUINT64_FORMAT
                                       " on, which /etc/subuid does not give to root",
                                       name_of(guest), base);
    }
    return eb_check_result_new(EB_CHECK_OK, "%u guests", list != NULL ? json_array_get_length(list) : 0);
}

/* --- image templates --- */

/* incusd writes them as root into a guest's files; that is how foreign images got out of their guests. */
static EbCheckResult *
check_templates(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autoptr(JsonNode) answer = dc_get_guests(host, settings, &skip);
    JsonArray *list = eb_json_get_array(eb_json_node_object(answer), "metadata");
    g_autofree char *project = dc_project(host, settings);
    guint n = list != NULL ? json_array_get_length(list) : 0, asked = 0;

    if (answer == NULL)
        return skip;
    for (guint i = 0; i < n && asked < MAX_ASKED && !g_cancellable_is_cancelled(cancellable); i++) {
        JsonObject *guest = eb_json_array_object(list, i);
        /* For the answer incusd mounts the guest's volume and lets go of it again: under one that is just being made,
         * whose start fails then. */
        if (g_strcmp0(eb_json_get_string(guest, "status"), "Running") != 0)
            continue;
        asked++;
        g_autofree char *request = dc_request("/1.0/instances/%s/metadata", name_of(guest), project);
        g_autoptr(JsonObject) metadata = dc_get(host, settings, request, NULL, &skip);
        JsonObject *templates = eb_json_get_object(metadata, "templates");
        if (metadata == NULL)
            g_clear_pointer(&skip, eb_check_result_free); /* it may have ended meanwhile */
        else if (templates != NULL && json_object_get_size(templates) > 0)
            return eb_check_result_new(EB_CHECK_FAIL, "guest %s was made from an image with templates", name_of(guest));
    }
    return eb_check_result_new(EB_CHECK_OK, "%u running guests", asked);
}

const DcRow DC_GUEST_CHECKS[] = {
    DC_ROW(E_47, check_limits),    DC_ROW(E_51, check_subvolumes),    DC_ROW(E_55, check_sockets),
    DC_ROW(E_58, check_targets),   DC_ROW(E_60, check_ranges_in_use), DC_ROW(E_64, check_templates),
    DC_ROW(E_68, check_autostart), DC_ROW(E_78, check_guest_api),     {NULL, NULL, NULL},
};
