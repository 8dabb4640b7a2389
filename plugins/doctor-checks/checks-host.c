/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "check-context.h"
#include "doctor-checks.h"

/* --- id ranges of others --- */

typedef struct {
    const char *owner;
    guint64 start, end;
} Range;

static gboolean
parse_range(char **fields, Range *range)
{
    guint64 count;

    if (g_strv_length(fields) != 3 || fields[0][0] == '#' ||
        !g_ascii_string_to_unsigned(fields[1], 10, 0, G_MAXUINT32, &range->start, NULL) ||
        !g_ascii_string_to_unsigned(g_strchomp(fields[2]), 10, 1, G_MAXUINT32, &count, NULL))
        return FALSE;
    range->owner = fields[0];
    range->end = range->start + count;
    return TRUE;
}

/* (transfer full) (nullable): two owners of the same ids, of which root is one */
static char *
find_overlap(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GArray) ranges = g_array_new(FALSE, FALSE, sizeof(Range));
    g_autoptr(GPtrArray) keep = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);

    for (guint i = 0; lines[i] != NULL; i++) {
        char **fields = g_strsplit(lines[i], ":", 4);
        Range range;
        g_ptr_array_add(keep, fields);
        if (parse_range(fields, &range))
            g_array_append_val(ranges, range);
    }
    for (guint i = 0; i < ranges->len; i++) {
        const Range *ours = &g_array_index(ranges, Range, i);
        for (guint j = 0; strcmp(ours->owner, "root") == 0 && j < ranges->len; j++) {
            const Range *other = &g_array_index(ranges, Range, j);
            if (strcmp(other->owner, "root") != 0 && ours->start < other->end && other->start < ours->end)
                return g_strdup_printf("%s has ids of root's range, from %" G_GUINT64_FORMAT " on", other->owner,
                                       MAX(ours->start, other->start));
        }
    }
    return NULL;
}

static EbCheckResult *
check_overlap(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    static const char *const FILES[] = {"/etc/subuid", "/etc/subgid"};

    for (guint i = 0; i < G_N_ELEMENTS(FILES); i++) {
        g_autofree char *text = eb_host_read_file(host, FILES[i], NULL, NULL);
        g_autofree char *overlap = text != NULL ? find_overlap(text) : NULL;
        if (text == NULL)
            return eb_check_result_new(EB_CHECK_SKIPPED, "%s cannot be read", FILES[i]);
        if (overlap != NULL)
            return eb_check_result_new(EB_CHECK_DEGRADED, "%s: %s", FILES[i], overlap);
    }
    return eb_check_result_new(EB_CHECK_OK, "root's ranges are its own");
}

/* --- memory --- */

/* A restricted project lets no guest have a limit of its own for swap. */
static EbCheckResult *
check_swap(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *text = eb_host_read_file(host, "/proc/swaps", NULL, NULL);
    g_auto(GStrv) lines = NULL;

    if (text == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "/proc/swaps cannot be read");
    lines = g_strsplit(g_strchomp(text), "\n", -1);
    if (g_strv_length(lines) > 1) {
        lines[1][strcspn(lines[1], " \t")] = '\0';
        return eb_check_result_new(EB_CHECK_DEGRADED, "this host swaps to %s", lines[1]);
    }
    return eb_check_result_new(EB_CHECK_OK, "no swap");
}

static EbCheckResult *
judge_number(EbHost *host, const char *path, const char *name, guint64 least)
{
    guint64 value;

    if (!dc_read_number(host, path, &value))
        return eb_check_result_new(EB_CHECK_SKIPPED, "%s cannot be read", name);
    return eb_check_result_new(value < least ? EB_CHECK_DEGRADED : EB_CHECK_OK, "%s is %" G_GUINT64_FORMAT, name,
                               value);
}

static EbCheckResult *
check_map_count(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    return judge_number(host, "/proc/sys/vm/max_map_count", "vm.max_map_count", 262144);
}

static EbCheckResult *
check_aio(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    return judge_number(host, "/proc/sys/fs/aio-max-nr", "fs.aio-max-nr", 524288);
}

/* --- where incusd runs --- */

/* The root directory's own line in /proc/self/mountinfo; a chroot has none. */
static gboolean
has_root_mount(const char *mounts)
{
    g_auto(GStrv) lines = g_strsplit(mounts, "\n", -1);

    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) fields = g_strsplit(lines[i], " ", 6);
        if (g_strv_length(fields) >= 5 && strcmp(fields[4], "/") == 0)
            return TRUE;
    }
    return FALSE;
}

static EbCheckResult *
check_nested(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *mounts = eb_host_read_file(host, "/proc/self/mountinfo", NULL, NULL);
    g_autofree char *container = eb_host_read_file(host, "/run/systemd/container", NULL, NULL);

    if (mounts == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "/proc/self/mountinfo cannot be read");
    if (!has_root_mount(mounts))
        return eb_check_result_new(EB_CHECK_FAIL, "this is a chroot: the kernel makes no user namespace in one");
    if (container != NULL)
        return eb_check_result_new(EB_CHECK_DEGRADED, "this host is a container itself (%s)", g_strchomp(container));
    if (eb_host_exists(host, "/run/.containerenv"))
        return eb_check_result_new(EB_CHECK_DEGRADED, "this host is a container itself");
    return eb_check_result_new(EB_CHECK_OK, "a machine of its own");
}

/* Accounts of people: what is neither ours nor the system's and may log in. */
static guint
count_people(const char *passwd, const char *account)
{
    g_auto(GStrv) lines = g_strsplit(passwd, "\n", -1);
    guint n = 0;

    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) fields = g_strsplit(lines[i], ":", 7);
        guint uid;
        if (g_strv_length(fields) != 7 || sscanf(fields[2], "%u", &uid) != 1 || uid < 1000 || uid >= 60000 ||
            strcmp(fields[0], account) == 0 || g_str_has_suffix(fields[6], "nologin") ||
            g_str_has_suffix(fields[6], "false"))
            continue;
        n++;
    }
    return n;
}

static EbCheckResult *
check_hidepid(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *mounts = eb_host_read_file(host, "/proc/self/mounts", NULL, NULL);
    g_autofree char *passwd = eb_host_read_file(host, "/etc/passwd", NULL, NULL);
    g_autofree char *account = dc_account(settings);
    g_auto(GStrv) lines = NULL;
    guint people;

    if (mounts == NULL || passwd == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "the mounts or the accounts cannot be read");
    people = count_people(passwd, account);
    lines = g_strsplit(mounts, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++)
        if (strstr(lines[i], " /proc proc ") != NULL && strstr(lines[i], "hidepid=") != NULL &&
            strstr(lines[i], "hidepid=0") == NULL)
            return eb_check_result_new(EB_CHECK_OK, "processes of others are hidden");
    if (people == 0)
        return eb_check_result_new(EB_CHECK_OK, "nobody else has an account here");
    return eb_check_result_new(EB_CHECK_DEGRADED, "accounts of people on this host: %u; they see every process",
                               people);
}

/* --- the clock --- */

/* Nothing of this program is older. */
#define OLDEST_CLOCK G_GINT64_CONSTANT(1767225600) /* 2026-01-01 */

static EbCheckResult *
check_clock(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    const char *argv[] = {"date", "+%s", NULL};
    int code = 1;
    g_autofree char *text = eb_host_run(host, argv, 2000, &code, NULL);
    gint64 now = text != NULL ? g_ascii_strtoll(text, NULL, 10) : 0;
    EbCheckResult *skip = NULL;
    g_autoptr(JsonObject) server = NULL;
    const char *pem;
    g_autoptr(GTlsCertificate) certificate = NULL;
    g_autoptr(GDateTime) begin = NULL;

    if (code != 0 || now <= 0)
        return eb_check_result_new(EB_CHECK_SKIPPED, "the time is not known");
    if (now < OLDEST_CLOCK)
        return eb_check_result_new(EB_CHECK_DEGRADED, "the clock stands before the year 2026");
    server = dc_get(host, settings, "/1.0", NULL, &skip);
    if (server == NULL)
        return skip;
    pem = eb_json_get_string(eb_json_get_object(server, "environment"), "certificate");
    certificate = pem != NULL ? g_tls_certificate_new_from_pem(pem, -1, NULL) : NULL;
    begin = certificate != NULL ? g_tls_certificate_get_not_valid_before(certificate) : NULL;
    if (begin != NULL && g_date_time_to_unix(begin) > now)
        return eb_check_result_new(EB_CHECK_DEGRADED,
                                   "the certificate of incusd begins in the future: the clock went back");
    return eb_check_result_new(EB_CHECK_OK, "plausible");
}

/* --- what is left of guests --- */

/* Names of guests that have a monitor: "[lxc monitor] DIR PROJECT_NAME", in the project "default" NAME alone. */
static GPtrArray *
list_monitors(EbHost *host, EbConfigSection *settings, const char *project)
{
    g_autofree char *dir = dc_daemon_dir(settings);
    gboolean bare = strcmp(project, "default") == 0;
    g_autofree char *start =
        g_strdup_printf("[lxc monitor] %s/containers %s%s", dir, bare ? "" : project, bare ? "" : "_");
    g_auto(GStrv) names = eb_host_list_dir(host, "/proc", NULL);
    GPtrArray *found = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; names != NULL && names[i] != NULL; i++) {
        g_autofree char *path = g_strdup_printf("/proc/%s/cmdline", names[i]);
        g_autofree char *line = NULL;
        if (!g_ascii_isdigit(names[i][0]))
            continue;
        line = eb_host_read_file(host, path, NULL, NULL);
        if (line != NULL && g_str_has_prefix(line, start) && strchr(line + strlen(start), '_') == NULL)
            g_ptr_array_add(found, g_strdup(g_strchomp(line) + strlen(start)));
    }
    return found;
}

static gboolean
has_guest(JsonNode *answer, const char *name)
{
    JsonArray *list = eb_json_get_array(eb_json_node_object(answer), "metadata");

    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++)
        if (g_strcmp0(eb_json_get_string(eb_json_array_object(list, i), "name"), name) == 0)
            return TRUE;
    return FALSE;
}

static EbCheckResult *
check_monitors(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *project = dc_project(host, settings);
    g_autoptr(GPtrArray) before = NULL;
    g_autoptr(GPtrArray) after = NULL;
    EbCheckResult *skip = NULL;
    g_autoptr(JsonNode) answer = NULL;

    if (project == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "the account does not exist, so its project cannot be named");
    before = list_monitors(host, settings, project);
    answer = dc_get_guests(host, settings, &skip);
    if (answer == NULL)
        return skip;
    /* One that is being removed right now is gone from the list before its monitor has ended. */
    after = before->len > 0 ? list_monitors(host, settings, project) : NULL;
    for (guint i = 0; i < before->len; i++)
        if (!has_guest(answer, before->pdata[i]) &&
            g_ptr_array_find_with_equal_func(after, before->pdata[i], g_str_equal, NULL))
            return eb_check_result_new(EB_CHECK_DEGRADED, "a monitor of guest %s runs, and there is no such guest",
                                       (const char *)before->pdata[i]);
    return eb_check_result_new(EB_CHECK_OK, "%u guests run", before->len);
}

/* --- network --- */

/* Guests have no network device; who gives them one meets the policy that Docker and ufw set. */
static EbCheckResult *
check_forward(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    const char *argv[] = {"iptables", "-S", "FORWARD", NULL};
    int code = 1;
    g_autofree char *rules = eb_host_run(host, argv, 2000, &code, NULL);
    EbCheckResult *skip = NULL;
    g_autoptr(JsonNode) answer = NULL;
    JsonArray *list;

    if (rules == NULL || code != 0)
        return eb_check_result_new(EB_CHECK_SKIPPED, "the rules cannot be read: no iptables, or not root");
    if (strstr(rules, "-P FORWARD DROP") == NULL)
        return eb_check_result_new(EB_CHECK_OK, "forwarding is not dropped");
    answer = dc_get_guests(host, settings, &skip);
    if (answer == NULL)
        return skip;
    list = eb_json_get_array(eb_json_node_object(answer), "metadata");
    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++) {
        JsonObject *guest = eb_json_array_object(list, i);
        if (dc_has_device(guest, "nic"))
            return eb_check_result_new(EB_CHECK_DEGRADED,
                                       "this host drops what is forwarded, and guest %s has a network device",
                                       eb_json_get_string(guest, "name"));
    }
    return eb_check_result_new(EB_CHECK_OK, "forwarding is dropped, and no guest needs it");
}

/* --- containers in guests --- */

/* From 1.3.3 on runc opens /proc in a way that the AppArmor profiles of older packages forbid. */
static EbCheckResult *
check_runc(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *enabled = eb_host_read_file(host, "/sys/module/apparmor/parameters/enabled", NULL, NULL);
    g_autofree char *version = NULL;
    DcVersion upstream;

    if (enabled == NULL || enabled[0] != 'Y')
        return eb_check_result_new(EB_CHECK_OK, "no AppArmor profile stands in the way");
    version = dc_package_version(host, "incus-base");
    if (version == NULL || !dc_parse_version(version, &upstream))
        return eb_check_result_new(EB_CHECK_SKIPPED, "Incus was not installed from a Debian package");
    if (upstream.major == 6 && upstream.minor == 0 ? dc_package_less(host, version, "6.0.4-2+deb13u3~")
                                                   : dc_version_less(&upstream, 6, 19, 0))
        return eb_check_result_new(EB_CHECK_DEGRADED, "incus-base %s has the older AppArmor profiles", version);
    return eb_check_result_new(EB_CHECK_OK, "incus-base %s", version);
}

const DcRow DC_HOST_CHECKS[] = {
    DC_ROW(E_44, check_overlap),  DC_ROW(E_48, check_swap),    DC_ROW(E_54, check_map_count),
    DC_ROW(E_56, check_nested),   DC_ROW(E_57, check_aio),     DC_ROW(E_63, check_clock),
    DC_ROW(E_67, check_monitors), DC_ROW(E_69, check_hidepid), DC_ROW(E_76, check_forward),
    DC_ROW(E_77, check_runc),     {NULL, NULL, NULL},
};
