/* SPDX-License-Identifier: MIT */
/* What is sent to incusd and how its answers are read. */
#include "eb-test.h"
#include "incus-error.h"
#include "incus-events.h"
#include "incus-exec-start.h"
#include "incus-instance-json.h"
#include "incus-probe.h"
#include "incus-websocket.h"

static EbContainerSpec *
new_spec(void)
{
    EbContainerSpec *spec = eb_container_spec_new("s-1", "errand-box/guest");
    spec->memory_bytes = 2147483648;
    spec->pids = 512;
    spec->cpus = 2;
    spec->disk_bytes = 5368709120;
    spec->ephemeral = TRUE;
    return spec;
}

static JsonNode *
parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    JsonNode *node = eb_json_parse(text, strlen(text), NULL, &error);
    g_assert_no_error(error);
    return node;
}

static const char *
config_of(JsonNode *body, const char *key)
{
    return eb_json_get_string(eb_json_get_object(eb_json_node_object(body), "config"), key);
}

static JsonObject *
device_of(JsonNode *body, const char *name)
{
    return eb_json_get_object(eb_json_get_object(eb_json_node_object(body), "devices"), name);
}

/* --- sent --- */

static void
test_instance(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbContainerSpec) spec = new_spec();
    eb_container_spec_add_directory(spec, "run", "/srv/s/1/run", "/opt/errand/run", TRUE);
    eb_container_spec_add_volume(spec, "ws", "s-1-ws", 1048576, "/workspace");
    eb_container_spec_set_label(spec, "session", "s-1");
    g_autoptr(JsonNode) body = incus_instance_to_json(spec, "pool", "launch", &error);
    g_assert_no_error(error);
    JsonObject *object = eb_json_node_object(body);

    /* an empty list, not none: none means the default profile with whatever is in it */
    JsonArray *profiles = eb_json_get_array(object, "profiles");
    g_assert_nonnull(profiles);
    g_assert_cmpuint(json_array_get_length(profiles), ==, 0);
    g_assert_true(eb_json_get_bool(object, "ephemeral", FALSE));
    g_assert_cmpstr(eb_json_get_string(eb_json_get_object(object, "source"), "alias"), ==, "errand-box/guest");

    g_assert_cmpstr(config_of(body, "security.idmap.isolated"), ==, "true");
    g_assert_cmpstr(config_of(body, "security.guestapi"), ==, "false");
    g_assert_cmpstr(config_of(body, "security.privileged"), ==, "false");
    g_assert_cmpstr(config_of(body, "security.nesting"), ==, "false");
    g_assert_cmpstr(config_of(body, "security.syscalls.deny_compat"), ==, "true");
    g_assert_cmpstr(config_of(body, "boot.autostart"), ==, "false");
    g_assert_cmpstr(config_of(body, "limits.memory"), ==, "2147483648");
    g_assert_cmpstr(config_of(body, "limits.processes"), ==, "512");
    g_assert_cmpstr(config_of(body, "limits.cpu"), ==, "2");
    g_assert_cmpstr(config_of(body, "linux.sysctl.user.max_inotify_instances"), ==, "64");
    g_assert_cmpstr(config_of(body, "user.errand.session"), ==, "s-1");
    g_assert_cmpstr(config_of(body, "user.errand-launch"), ==, "launch");
    g_assert_null(config_of(body, "raw.idmap"));
    const char *deny = config_of(body, "security.syscalls.deny");
    for (guint i = 0; i < 4; i++) {
        static const char *const numbers[] = {"0x5000940e", "0x50009418", "0x50009401", "0x50009417"};
        g_assert_nonnull(strstr(deny, numbers[i]));
    }
    g_assert_nonnull(strstr(deny, "socket errno 97 [0,40,SCMP_CMP_EQ]"));

    g_assert_cmpstr(eb_json_get_string(device_of(body, "root"), "size"), ==, "5368709120");
    g_assert_cmpstr(eb_json_get_string(device_of(body, "root"), "pool"), ==, "pool");
    g_assert_cmpstr(eb_json_get_string(device_of(body, "run"), "readonly"), ==, "true");
    g_assert_cmpstr(eb_json_get_string(device_of(body, "run"), "source"), ==, "/srv/s/1/run");
    g_assert_cmpstr(eb_json_get_string(device_of(body, "ws"), "pool"), ==, "pool");
    g_assert_cmpstr(eb_json_get_string(device_of(body, "ws"), "source"), ==, "s-1-ws");
    g_assert_null(eb_json_get_string(device_of(body, "ws"), "readonly"));
}

static void
test_instance_id_map(void)
{
    g_autoptr(EbContainerSpec) spec = new_spec();
    spec->agent_uid = spec->agent_gid = 1001;
    g_autoptr(JsonNode) same = incus_instance_to_json(spec, "pool", "l", NULL);
    g_assert_cmpstr(config_of(same, "raw.idmap"), ==, "both 1001 1000");
    spec->agent_gid = 1002;
    g_autoptr(JsonNode) differ = incus_instance_to_json(spec, "pool", "l", NULL);
    g_assert_cmpstr(config_of(differ, "raw.idmap"), ==, "uid 1001 1000\ngid 1002 1000");
    spec->nesting = TRUE;
    spec->inotify = 128;
    g_free(spec->image);
    spec->image = g_strdup("98ad304898b11c1d3041a8f76e1eecdfe358188c62aacd601bc304c9b41f1ad4");
    g_autoptr(JsonNode) nested = incus_instance_to_json(spec, "pool", "l", NULL);
    g_assert_cmpstr(config_of(nested, "security.nesting"), ==, "true");
    g_assert_cmpstr(config_of(nested, "linux.sysctl.user.max_inotify_instances"), ==, "128");
    JsonObject *source = eb_json_get_object(eb_json_node_object(nested), "source");
    g_assert_cmpstr(eb_json_get_string(source, "fingerprint"), ==, spec->image);
    g_assert_null(eb_json_get_string(source, "alias"));
}

static void
test_instance_refused(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbContainerSpec) spec = new_spec();
    spec->memory_bytes = 0;
    g_assert_null(incus_instance_to_json(spec, "pool", "l", &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "incus.no-memory-limit", NULL);
    g_clear_error(&error);

    /* a line break would become a line of incusd's own files */
    g_autoptr(EbContainerSpec) label = new_spec();
    eb_container_spec_set_label(label, "session", "x\nlxc.hook.start=/bin/sh");
    g_assert_null(incus_instance_to_json(label, "pool", "l", &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "incus.label", NULL);
    g_clear_error(&error);

    g_autoptr(EbContainerSpec) mount = new_spec();
    eb_container_spec_add_directory(mount, "work", "/srv/a\nb", "/workspace", FALSE);
    g_assert_null(incus_instance_to_json(mount, "pool", "l", &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "incus.mount", NULL);
    g_clear_error(&error);

    g_autoptr(EbContainerSpec) root = new_spec();
    eb_container_spec_add_directory(root, "root", "/srv/a", "/workspace", FALSE);
    g_assert_null(incus_instance_to_json(root, "pool", "l", &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "incus.mount", NULL);
}

static void
test_update(void)
{
    g_autoptr(EbContainerSpec) spec = new_spec();
    eb_container_spec_add_directory(spec, "run", "/srv/run", "/opt/errand/run", TRUE);
    eb_container_spec_add_directory(spec, "work", "/srv/work", "/workspace", FALSE);
    g_autoptr(JsonNode) now = parse("{\"devices\":{\"root\":{\"type\":\"disk\"},\"run\":{\"type\":\"disk\"}}}");
    g_autoptr(JsonNode) body = incus_instance_update_json(spec, "pool", eb_json_node_object(now), NULL);
    g_assert_null(device_of(body, "run"));
    g_assert_null(device_of(body, "root"));
    g_assert_nonnull(device_of(body, "work"));
    g_assert_cmpstr(config_of(body, "limits.memory"), ==, "2147483648");
    g_assert_null(config_of(body, "security.nesting"));
}

static void
test_exec_body(void)
{
    static const char *const argv[] = {"/opt/errand/run/launch", "--", "agent", NULL};
    g_autoptr(EbExecSpec) spec = eb_exec_spec_new(argv);
    spec->uid = 0;
    spec->gid = 0;
    g_autoptr(JsonNode) body = incus_exec_body(spec);
    JsonObject *object = eb_json_node_object(body);
    g_assert_null(eb_json_get_node(object, "environment"));
    g_assert_nonnull(eb_json_get_node(object, "group"));
    g_assert_true(eb_json_get_bool(object, "wait-for-websocket", FALSE));
    g_assert_cmpuint(json_array_get_length(eb_json_get_array(object, "command")), ==, 3);
}

/* --- received --- */

static IncusReply *
reply(const char *text, guint status, GError **error)
{
    return incus_reply_parse(text, strlen(text), status, error);
}

static void
test_failed_operation_shapes(void)
{
    g_autoptr(GError) error = NULL;
    /* 6.0: an error envelope with HTTP 200 */
    g_assert_null(reply("{\"type\":\"error\",\"status\":\"\",\"error_code\":400,\"error\":\"Command not found\","
                        "\"metadata\":null}",
                        200, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "incus.command-not-found", NULL);
    g_clear_error(&error);
    /* 7.x: a good envelope around a bad operation */
    g_autoptr(IncusReply) seven = reply("{\"type\":\"sync\",\"status_code\":200,\"metadata\":{\"status\":\"Failure\","
                                        "\"status_code\":400,\"err\":\"Command not found\"}}",
                                        200, &error);
    g_assert_no_error(error);
    g_assert_false(incus_reply_outcome(seven, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "incus.command-not-found", NULL);
    g_clear_error(&error);
    g_autoptr(IncusReply) cancelled = reply(
        "{\"type\":\"sync\",\"metadata\":{\"status\":\"Cancelled\",\"status_code\":401,\"err\":\"\"}}", 200, NULL);
    g_assert_false(incus_reply_outcome(cancelled, &error));
    g_clear_error(&error);
    g_autoptr(IncusReply) good = reply("{\"type\":\"sync\",\"metadata\":{\"status\":\"Success\",\"status_code\":200,"
                                       "\"metadata\":{\"return\":3}}}",
                                       200, NULL);
    g_assert_true(incus_reply_outcome(good, &error));
    g_assert_cmpint(incus_exec_outcome(good, NULL, &error), ==, 3);
    g_assert_no_error(error);
}

static void
test_exec_outcome(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) missing = incus_error_new(400, "Command not found");
    g_autoptr(GError) forbidden = incus_error_new(400, "Command not executable");
    g_autoptr(GError) pid = incus_error_new(500, "Failed to retrieve PID of executing child process");
    g_assert_cmpint(incus_exec_outcome(NULL, missing, &error), ==, 127);
    g_assert_cmpint(incus_exec_outcome(NULL, forbidden, &error), ==, 126);
    g_assert_no_error(error);
    g_assert_cmpint(incus_exec_outcome(NULL, pid, &error), ==, -1);
    eb_test_assert_error(error, EB_ERROR_QUOTA, "incus.exec-no-pid", NULL);
    g_assert_true(eb_error_get_retry(error, NULL));
    g_clear_error(&error);
    g_autoptr(IncusReply) none = reply("{\"type\":\"sync\",\"metadata\":{\"status\":\"Success\"}}", 200, NULL);
    g_assert_cmpint(incus_exec_outcome(none, NULL, &error), ==, -1);
    eb_test_assert_error(error, EB_ERROR_PROTOCOL, NULL, NULL);
}

static void
test_bad_replies(void)
{
    static const struct {
        const char *text;
        guint status;
        EbErrorCode code;
    } cases[] = {
        {"", 200, EB_ERROR_UNAVAILABLE},
        {"<html>", 200, EB_ERROR_PROTOCOL},
        {"[]", 200, EB_ERROR_PROTOCOL},
        {"{\"type\":5}", 200, EB_ERROR_PROTOCOL},
        {"not found", 404, EB_ERROR_NOT_FOUND},
        {"{\"type\":\"async\",\"metadata\":{\"id\":\"../../x\"}}", 202, EB_ERROR_PROTOCOL},
        {"{\"type\":\"async\",\"metadata\":null}", 202, EB_ERROR_PROTOCOL},
        {"{\"type\":\"error\",\"error_code\":403,\"error\":\"not authorized\"}", 403, EB_ERROR_DENIED},
        {"{\"type\":\"error\",\"error_code\":\"x\",\"error\":7}", 500, EB_ERROR_FAILED},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(reply(cases[i].text, cases[i].status, &error));
        eb_test_assert_error(error, cases[i].code, NULL, NULL);
    }
}

static void
test_errors(void)
{
    static const struct {
        const char *text;
        EbErrorCode code;
        const char *reason;
        gboolean retry;
    } cases[] = {
        {"Instance is busy running a \"stop\" operation", EB_ERROR_BUSY, "incus.busy", TRUE},
        {"Failed checking if instance creation allowed: x", EB_ERROR_DENIED, "incus.restricted", FALSE},
        {"write /x/backup.yaml: no space left on device", EB_ERROR_QUOTA, "incus.pool-full", FALSE},
        {"Not enough uid/gid available for the container", EB_ERROR_QUOTA, "incus.id-range", FALSE},
        {"System doesn't have a functional idmap setup", EB_ERROR_CONFIG, "incus.id-range", FALSE},
        {"Failed shutting down instance, status is \"Running\": context deadline exceeded", EB_ERROR_TIMEOUT,
         "incus.stop-timeout", FALSE},
        {"Failed to fetch instance \"x\" in project \"p\": Instance not found", EB_ERROR_NOT_FOUND, "incus.not-found",
         FALSE},
        {"something nobody has seen", EB_ERROR_FAILED, "incus.failed", FALSE},
        {NULL, EB_ERROR_FAILED, "incus.failed", FALSE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = incus_error_new(500, cases[i].text);
        eb_test_assert_error(error, cases[i].code, cases[i].reason, NULL);
        g_assert_cmpint(eb_error_get_retry(error, NULL), ==, cases[i].retry);
    }
    /* a guest's or an image's text may be in it */
    g_autoptr(GError) escaped = incus_error_new(500, "bad \x1b[31m name\n");
    g_assert_null(strchr(escaped->message, '\x1b'));
    g_assert_null(strchr(escaped->message, '\n'));
}

#define GOOD_CONFIG                                                                                                    \
    "\"security.guestapi\":\"false\",\"security.idmap.isolated\":\"true\",\"security.syscalls.deny_compat\":\"true\"," \
    "\"security.syscalls.deny\":\"x\",\"boot.autostart\":\"false\",\"limits.memory\":\"1\""

static void
assert_verified(const char *config, const char *devices, const char *reason)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text =
        g_strdup_printf("{\"name\":\"s-1\",\"expanded_config\":{%s},\"expanded_devices\":{%s}}", config, devices);
    g_autoptr(JsonNode) node = parse(text);
    gboolean ok = incus_instance_verify(eb_json_node_object(node), &error);
    g_assert_cmpint(ok, ==, reason == NULL);
    if (reason != NULL)
        eb_test_assert_error(error, EB_ERROR_DENIED, reason, NULL);
}

static void
test_verify(void)
{
    static const char root[] = "\"root\":{\"type\":\"disk\",\"path\":\"/\"}";
    assert_verified(GOOD_CONFIG, root, NULL);
    assert_verified(GOOD_CONFIG, "\"root\":{\"type\":\"disk\"},\"eth0\":{\"type\":\"nic\"}", "incus.device");
    assert_verified(GOOD_CONFIG, "\"p\":{\"type\":\"proxy\"}", "incus.device");
    assert_verified(GOOD_CONFIG, "\"p\":{}", "incus.device");
    assert_verified(GOOD_CONFIG, "\"p\":7", "incus.device");
    assert_verified(GOOD_CONFIG, "\"eth0\":{\"type\":\"none\"}", NULL);
    assert_verified(GOOD_CONFIG ",\"security.privileged\":\"true\"", root, "incus.protection");
    assert_verified(GOOD_CONFIG ",\"security.syscalls.deny_default\":\"false\"", root, "incus.protection");
    assert_verified("\"security.guestapi\":\"false\"", root, "incus.protection");
    assert_verified("", root, "incus.protection");
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) empty = parse("{}");
    g_assert_false(incus_instance_verify(eb_json_node_object(empty), &error));
    g_assert_nonnull(error);
}

static void
test_info(void)
{
    g_autoptr(JsonNode) node =
        parse("{\"name\":\"s-1\",\"status\":\"Running\",\"created_at\":\"2026-11-30T03:27:51.166664625Z\","
              "\"location\":\"none\",\"config\":{\"user.errand.session\":\"a\",\"user.other\":\"b\","
              "\"user.errand-launch\":\"l\"},\"expanded_config\":{\"limits.memory\":\"256MiB\","
              "\"user.errand-launch\":\"l\"},\"state\":{\"memory\":{\"usage\":1000},\"cpu\":{\"usage\":5},"
              "\"processes\":3,\"disk\":{\"root\":{\"usage\":77}}}}");
    JsonObject *object = eb_json_node_object(node);
    g_autoptr(EbInstanceInfo) info = incus_instance_info(object);
    g_assert_true(incus_instance_is_ours(object));
    g_assert_cmpint(info->state, ==, EB_INSTANCE_RUNNING);
    g_assert_cmpuint(info->memory_limit, ==, 256 * 1024 * 1024);
    g_assert_cmpuint(info->memory_usage, ==, 1000);
    g_assert_cmpuint(info->disk_usage, ==, 77);
    g_assert_cmpuint(info->tasks, ==, 3);
    g_assert_cmpint(info->created_unix, ==, 1796009271);
    g_assert_null(info->location);
    g_assert_cmpuint(g_hash_table_size(info->labels), ==, 1);
    g_assert_cmpstr(g_hash_table_lookup(info->labels, "session"), ==, "a");

    g_autoptr(JsonNode) odd = parse("{\"name\":\"x\",\"status\":7,\"config\":[],\"state\":null,\"location\":\"n2\"}");
    g_autoptr(EbInstanceInfo) poor = incus_instance_info(eb_json_node_object(odd));
    g_assert_cmpint(poor->state, ==, EB_INSTANCE_UNKNOWN);
    g_assert_cmpstr(poor->location, ==, "n2");
    g_assert_false(incus_instance_is_ours(eb_json_node_object(odd)));
    g_autoptr(JsonNode) nameless = parse("{}");
    g_assert_null(incus_instance_info(eb_json_node_object(nameless)));
}

static void
test_log_reason(void)
{
    static const char log[] = "lxc s-1 20261130 INFO  x - y\nlxc 20261130 ERROR    conf - newuidmap: \x1b not allowed\n"
                              "lxc ERROR second\n";
    g_autofree char *reason = incus_lxc_log_reason(log, strlen(log));
    g_assert_true(g_str_has_prefix(reason, "conf - newuidmap: "));
    g_assert_null(strchr(reason, '\x1b'));
    g_assert_null(strstr(reason, "second"));
    g_assert_null(incus_lxc_log_reason("nothing here", 12));
    g_assert_null(incus_lxc_log_reason(" ERROR ", 7));
    g_assert_null(incus_lxc_log_reason("", 0));
}

static void
test_events(void)
{
    static const struct {
        const char *action;
        const char *source;
        int event; /* -1: none */
    } cases[] = {
        {"instance-started", "/1.0/instances/s-1?project=p", EB_INSTANCE_EVENT_STARTED},
        {"instance-stopped", "/1.0/instances/s-1", EB_INSTANCE_EVENT_STOPPED},
        {"instance-shutdown", "/1.0/instances/s-1", EB_INSTANCE_EVENT_STOPPED},
        {"instance-deleted", "/1.0/instances/s-1", EB_INSTANCE_EVENT_DELETED},
        {"instance-exec", "/1.0/instances/s-1", -1},
        {"image-created", "/1.0/images/x", -1},
        {"instance-deleted", "/1.0/instances/", -1},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        EbInstanceEvent event = 99;
        g_autofree char *name = NULL;
        g_autofree char *text =
            g_strdup_printf("{\"type\":\"lifecycle\",\"metadata\":{\"action\":\"%s\",\"source\":\"%s\"}}",
                            cases[i].action, cases[i].source);
        gboolean got = incus_event_parse(text, strlen(text), &event, &name);
        g_assert_cmpint(got, ==, cases[i].event >= 0);
        if (got) {
            g_assert_cmpint((int)event, ==, cases[i].event);
            g_assert_cmpstr(name, ==, "s-1");
        }
    }
    EbInstanceEvent event;
    char *name = NULL;
    g_assert_false(incus_event_parse("{", 1, &event, &name));
    g_assert_false(incus_event_parse("{\"type\":\"logging\"}", 18, &event, &name));
}

static gssize
handshake(const char *text, GError **error)
{
    return incus_handshake_parse((const guint8 *)text, strlen(text), "good", error);
}

static void
test_handshake(void)
{
    g_autoptr(GError) error = NULL;
    /* the example of RFC 6455 */
    g_autofree char *accept = incus_handshake_accept("dGhlIHNhbXBsZSBub25jZQ==");
    g_assert_cmpstr(accept, ==, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    static const char good[] =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nsec-websocket-accept:  good\r\n"
        "\r\nrest";
    g_assert_cmpint(handshake(good, &error), ==, (gssize)strlen(good) - 4);
    g_assert_cmpint(handshake("HTTP/1.1 101 Switching\r\n", &error), ==, 0);
    g_assert_no_error(error);
    g_assert_cmpint(handshake("HTTP/1.1 101 x\r\nSec-WebSocket-Accept: bad\r\n\r\n", &error), ==, -1);
    eb_test_assert_error(error, EB_ERROR_PROTOCOL, NULL, NULL);
    g_clear_error(&error);
    g_assert_cmpint(handshake("HTTP/1.1 403 Forbidden\r\n\r\n", &error), ==, -1);
    eb_test_assert_error(error, EB_ERROR_DENIED, NULL, NULL);
    g_clear_error(&error);
    g_assert_cmpint(handshake("SSH-2.0-x\r\n\r\n", &error), ==, -1);
    eb_test_assert_error(error, EB_ERROR_PROTOCOL, NULL, NULL);
    g_clear_error(&error);
    g_autofree char *endless = g_strnfill(INCUS_HANDSHAKE_MAX, 'x');
    g_assert_cmpint(handshake(endless, &error), ==, -1);
    eb_test_assert_error(error, EB_ERROR_PROTOCOL, NULL, NULL);
}

/* --- judged --- */

static void
test_server_check(void)
{
    static const struct {
        const char *text;
        const char *reason; /* NULL: accepted */
    } cases[] = {
        {"{\"auth\":\"trusted\",\"environment\":{\"server\":\"incus\"}}", NULL},
        {"{\"auth\":\"trusted\",\"environment\":{\"server\":\"lxd\"}}", "incus.lxd"},
        {"{\"auth\":\"trusted\",\"environment\":{}}", "incus.server"},
        {"{\"auth\":\"untrusted\"}", "incus.untrusted"},
        {"{}", "incus.untrusted"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(JsonNode) node = parse(cases[i].text);
        g_assert_cmpint(incus_server_check(eb_json_node_object(node), &error), ==, cases[i].reason == NULL);
        if (cases[i].reason != NULL)
            g_assert_cmpstr(eb_error_get_reason(error), ==, cases[i].reason);
    }
}

static const EbProbeItem *
probe_item(EbProbeReport *report, const char *guarantee)
{
    for (guint i = 0; i < report->items->len; i++) {
        const EbProbeItem *item = report->items->pdata[i];
        if (g_str_equal(item->guarantee, guarantee))
            return item;
    }
    return NULL;
}

#define RESTRICTED                                                                                                     \
    "\"restricted\":\"true\",\"restricted.devices.nic\":\"block\",\"restricted.devices.disk\":\"allow\","              \
    "\"restricted.containers.privilege\":\"isolated\",\"features.images\":\"true\""

typedef struct {
    const char *version;
    const char *driver;
    const char *project;
    IncusHostFacts facts;
    const char *guarantee;
    const char *degraded; /* NULL: enforced; "": not enforced, without an id */
} ProbeCase;

static void
test_probe_report(void)
{
    static const IncusHostFacts fine = {TRUE, TRUE, TRUE, TRUE, TRUE, TRUE, TRUE, TRUE, 1000000000, 6, 12};
    IncusHostFacts no_lxcfs = fine, stale = fine, bare = fine, hybrid = fine, small = fine;
    no_lxcfs.lxcfs_mounted = no_lxcfs.lxcfs_answers = FALSE;
    stale.lxcfs_answers = FALSE;
    bare.apparmor = FALSE;
    hybrid.unified = FALSE;
    small.subuid_count = 65536;
    const ProbeCase cases[] = {
        {"6.0.4", "btrfs", RESTRICTED ",\"restricted.devices.disk.paths\":\"/srv/s\"", fine, "project-restricted",
         NULL},
        {"6.0.4", "btrfs", RESTRICTED, fine, "project-restricted", "E-61"},
        {"6.0.4", "btrfs", RESTRICTED ",\"restricted.devices.disk.paths\":\"/\"", fine, "project-restricted", "E-61"},
        {"6.0.4", "btrfs",
         RESTRICTED ",\"restricted.devices.disk.paths\":\"/srv/s\",\"restricted.devices.proxy\":\"allow\"", fine,
         "project-restricted", "E-61"},
        {"6.0.4", "btrfs", "", fine, "project-restricted", "E-61"},
        {"6.0.4", "btrfs", "", fine, "disk-quota", NULL},
        {"6.0.4", "dir", "", fine, "disk-quota", "E-05"},
        {"6.0.4", NULL, "", fine, "disk-quota", "E-05"},
        {"6.0.4", "btrfs", "", fine, "rootfs-mapped", NULL},
        {"6.0.0", "btrfs", "", fine, "rootfs-mapped", "E-20"},
        {"6.0", "btrfs", "", fine, "rootfs-mapped", "E-20"},
        {"6.1", "btrfs", "", fine, "rootfs-mapped", "E-20"},
        {"6.2", "btrfs", "", fine, "rootfs-mapped", NULL},
        {"6.0.4", "btrfs", "", fine, "lxcfs", NULL},
        {"6.0.4", "btrfs", "", no_lxcfs, "lxcfs", "E-08"},
        {"6.0.4", "btrfs", "", stale, "lxcfs", "E-08"},
        {"6.0.4", "btrfs", "", bare, "apparmor", "E-17"},
        {"6.0.4", "btrfs", "", hybrid, "memory-limit", NULL},
        {"7.0.2", "btrfs", "", hybrid, "memory-limit", ""},
        {"7.0.2", "btrfs", "", fine, "memory-limit", NULL},
        {"6.0.4", "btrfs", "", small, "id-range", ""},
        {"6.0.4", "btrfs", "", {.known = FALSE}, "host", ""},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("{%s}", cases[i].project);
        IncusServer *server = g_new0(IncusServer, 1);
        g_atomic_ref_count_init(&server->refs);
        server->name = g_strdup("incus");
        server->version = g_strdup(cases[i].version);
        server->project = g_strdup("p");
        server->pool = g_strdup("pool");
        server->pool_driver = g_strdup(cases[i].driver);
        server->project_config = parse(text);
        g_autoptr(EbProbeReport) report = incus_probe_report(server, "socket", &cases[i].facts);
        const EbProbeItem *item = probe_item(report, cases[i].guarantee);
        g_assert_nonnull(item);
        g_assert_cmpint(item->enforced, ==, cases[i].degraded == NULL);
        if (cases[i].degraded != NULL && *cases[i].degraded != '\0')
            g_assert_cmpstr(item->degraded_id, ==, cases[i].degraded);
        incus_server_unref(server);
    }
}

static void
test_host_facts(void)
{
    g_autofree char *root = eb_test_temp_dir("facts");
    static const struct {
        const char *path;
        const char *text;
    } files[] = {
        {"proc/self/mountinfo", "36 25 0:32 / /var/lib/lxcfs rw shared:1 - fuse.lxcfs lxcfs rw\n"},
        {"var/lib/lxcfs/proc/meminfo", "MemTotal: 1 kB\n"},
        {"sys/module/apparmor/parameters/enabled", "Y\n"},
        {"proc/cgroups",
         "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t1\t2\t1\npids\t1\t2\t0\ncpu\t1\t1\t1\n"},
        {"etc/subuid", "user:100000:65536\nroot:1000000:1000000000\nroot:1001:1\nbroken\n"},
        {"etc/subgid", "root:1000000:65536\n"},
        {".eb/uname", "6.9.3-amd64\n"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(root, files[i].path, NULL);
        eb_test_write_file(path, files[i].text);
    }
    g_autoptr(EbHost) host = eb_host_new_fixture(root);
    IncusHostFacts facts = {0};
    incus_host_facts_read(host, &facts);
    g_assert_true(facts.known);
    g_assert_true(facts.lxcfs_mounted);
    g_assert_true(facts.lxcfs_answers);
    g_assert_true(facts.apparmor);
    g_assert_false(facts.unified);
    g_assert_true(facts.memory);
    g_assert_false(facts.pids);
    g_assert_cmpuint(facts.subuid_count, ==, 65536);
    g_assert_cmpuint(facts.kernel_major, ==, 6);
    g_assert_cmpuint(facts.kernel_minor, ==, 9);

    g_autofree char *bare = eb_test_temp_dir("bare");
    g_autoptr(EbHost) nothing = eb_host_new_fixture(bare);
    IncusHostFacts none = {0};
    incus_host_facts_read(nothing, &none);
    g_assert_false(none.lxcfs_mounted);
    g_assert_false(none.apparmor);
    g_assert_cmpuint(none.subuid_count, ==, 0);
}

/* --- configured --- */

static IncusEndpoint *
endpoint(const char *key, const char *value, GError **error)
{
    g_autoptr(EbConfigSection) section = eb_config_section_new("plugin.incus");
    if (key != NULL) {
        g_autoptr(GVariant) text = g_variant_ref_sink(g_variant_new_string(value));
        eb_config_section_set(section, key, text, "x.toml", 3);
    }
    return incus_endpoint_from_section(section, error);
}

static void
test_endpoint(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(IncusEndpoint) user = endpoint("socket", "/run/x/unix.socket.user", &error);
    g_assert_no_error(error);
    g_assert_true(user->per_user);
    g_assert_cmpstr(user->access, ==, "incus-user socket");
    g_autoptr(IncusEndpoint) plain = endpoint("socket", "/run/x/unix.socket", &error);
    g_assert_false(plain->per_user);
    g_assert_cmpstr(plain->access, ==, "socket");
    g_autoptr(IncusEndpoint) chosen = endpoint(NULL, NULL, &error);
    g_assert_true(g_path_is_absolute(chosen->socket_path));

    g_assert_null(endpoint("socket", "relative", &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "incus.socket-path", "x.toml:3");
    g_clear_error(&error);
    g_autofree char *fill = g_strnfill(120, 'x');
    g_autofree char *longer = g_strconcat("/", fill, NULL);
    g_assert_null(endpoint("socket", longer, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "incus.socket-path", NULL);
    g_clear_error(&error);
    g_assert_null(endpoint("url", "http://127.0.0.1:8443", &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "incus.tls-config", "x.toml:3");
    g_clear_error(&error);
    /* https without the certificates would mean trusting whoever answers */
    g_assert_null(endpoint("url", "https://127.0.0.1:8443", &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "incus.tls-config", "server_cert");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/incus/json/instance", test_instance);
    g_test_add_func("/incus/json/instance-id-map", test_instance_id_map);
    g_test_add_func("/incus/json/instance-refused", test_instance_refused);
    g_test_add_func("/incus/json/update", test_update);
    g_test_add_func("/incus/json/exec-body", test_exec_body);
    g_test_add_func("/incus/json/failed-operation-shapes", test_failed_operation_shapes);
    g_test_add_func("/incus/json/exec-outcome", test_exec_outcome);
    g_test_add_func("/incus/json/bad-replies", test_bad_replies);
    g_test_add_func("/incus/json/errors", test_errors);
    g_test_add_func("/incus/json/verify", test_verify);
    g_test_add_func("/incus/json/info", test_info);
    g_test_add_func("/incus/json/log-reason", test_log_reason);
    g_test_add_func("/incus/json/events", test_events);
    g_test_add_func("/incus/json/handshake", test_handshake);
    g_test_add_func("/incus/json/server-check", test_server_check);
    g_test_add_func("/incus/json/probe-report", test_probe_report);
    g_test_add_func("/incus/json/host-facts", test_host_facts);
    g_test_add_func("/incus/json/endpoint", test_endpoint);
    return g_test_run();
}
