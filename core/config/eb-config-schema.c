/* SPDX-License-Identifier: MIT */
#include "core/config/eb-config-schema.h"

#include <string.h>

#define KIB G_GUINT64_CONSTANT(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
/* Of a cap: more tokens than anybody pays for, and few enough to be added up. */
#define BUDGET_MOST G_GUINT64_CONSTANT(1000000000000)
#define SECOND G_GUINT64_CONSTANT(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

static const EbConfigKey keys[] = {
    {"service", "account", EB_KIND_TEXT, "\"errand\"", .check = eb_config_check_account,
     .doc = "the account the service runs as"},
    {"service", "state_dir", EB_KIND_TEXT, "\"/var/lib/errand-box\"", .check = eb_config_check_path,
     .doc = "where the service keeps what it has to remember"},
    {"service", "project_root", EB_KIND_TEXT, "\"/var/lib/errand-box/home/projects\"", .check = eb_config_check_path,
     .doc = "one directory a project below it; neither inside state_dir (except below its home) nor around it"},
    {"service", "accept_degraded", EB_KIND_TEXTS, "[]", .max = 100, .check = eb_config_check_degraded_id,
     .doc = "ids of gaps an operator has read and accepts"},
    {"service", "min_free", EB_KIND_SIZE, "1GiB", 1 * MIB, 1024 * GIB,
     .doc =
         "with less free space in state_dir or project_root no session starts; below twice as much people are warned"},
    {"service", "doctor_interval", EB_KIND_DURATION, "1min", SECOND, HOUR,
     .doc = "how often the checks that change by themselves are run; all of them run every tenth time"},

    {"plugins", "enabled", EB_KIND_TEXTS,
     "[\"incus\", \"credentials\", \"doctor-checks\", \"chat-console\", \"chat-discord\", \"github\"]", .max = 64,
     .check = eb_config_check_name, .doc = "plugins that are opened"},

    {"credentials", "order", EB_KIND_TEXTS, "[\"systemd\", \"sealed\", \"env-file\"]", .max = 16,
     .check = eb_config_check_name, .doc = "credential stores, asked in this order"},

    {"session", "backend", EB_KIND_TEXT, "\"incus\"", .check = eb_config_check_name, .doc = "the container backend"},
    {"session", "workspace", EB_KIND_TEXT, "\"directory\"", .choices = "directory|volume",
     .doc = "host directories, or volumes of the backend"},
    {"session", "link", EB_KIND_TEXT, "\"socket\"", .choices = "socket|stream",
     .doc = "how the guest reaches its broker"},
    {"session", "agent", EB_KIND_TEXT, "\"kage\"", .check = eb_config_check_name, .doc = "the agent profile"},
    {"session", "model", EB_KIND_TEXT, NULL, .doc = "the model; without it the agent's own default"},
    {"session", "provider", EB_KIND_TEXT, NULL, .check = eb_config_check_name,
     .doc = "the provider; without it the only or first one that the agent can talk to"},
    {"session", "memory", EB_KIND_SIZE, "4GiB", 64 * MIB, 1024 * GIB, .doc = "hard limit of a guest"},
    {"session", "cpus", EB_KIND_INT, "2", 1, 1024, .doc = "processors of a guest"},
    {"session", "pids", EB_KIND_INT, "512", 32, 65536, .doc = "tasks of a guest"},
    {"session", "inotify", EB_KIND_INT, "0", 0, 65536,
     .doc = "inotify instances in a guest, 0 = the backend's default"},
    {"session", "disk", EB_KIND_SIZE, "5GiB", 256 * MIB, 16384 * GIB, .doc = "root file system of a guest"},
    {"session", "tmp", EB_KIND_SIZE, "512MiB", 1 * MIB, 1024 * GIB, .doc = "/tmp of a guest (memory)"},
    {"session", "containers", EB_KIND_BOOL, "false",
     .doc = "rootless containers inside a guest (podman); leaves its set-uid programs newuidmap and newgidmap working"},
    {"session", "canary", EB_KIND_BOOL, "false",
     .doc =
         "plants a key of no use in each guest, and raises an alarm when it shows up in what the guest sends or says"},
    {"session", "canary_action", EB_KIND_TEXT, "\"tell\"", .choices = "tell|end",
     .doc = "what a planted key that shows up does: people are told, or the session is ended as well"},
    {"session", "idle", EB_KIND_DURATION, "30min", 10 * SECOND, 7 * 24 * HOUR,
     .doc = "without a turn for this long a guest is put away"},
    {"session", "startup", EB_KIND_DURATION, "60s", 5 * SECOND, HOUR,
     .doc = "from the message to an agent that answers"},
    {"session", "question", EB_KIND_DURATION, "5min", SECOND, 24 * HOUR, .doc = "how long a permission question waits"},
    {"session", "abort", EB_KIND_DURATION, "15s", SECOND, 10 * MINUTE,
     .doc = "from a cancel to the end of the agent's process"},
    {"session", "grace", EB_KIND_DURATION, "10s", SECOND, 10 * MINUTE, .doc = "from asking a guest to stop to force"},
    {"session", "pool", EB_KIND_INT, "0", 0, 16, .doc = "started guests that wait for a session"},

    {"limits", "max_live_sessions", EB_KIND_INT, "4", 1, 1000, .doc = "guests at one time"},
    {"limits", "max_concurrent_turns", EB_KIND_INT, "2", 1, 1000, .doc = "turns at one time"},
    {"limits", "max_queue_length", EB_KIND_INT, "32", 0, 10000, .doc = "messages that wait"},
    {"limits", "max_queue_wait", EB_KIND_DURATION, "15min", SECOND, 24 * HOUR, .doc = "how long a message waits"},

    {"egress", "mode", EB_KIND_TEXT, "\"proxy\"", .choices = "proxy|none", .doc = "the only way out, or none at all"},
    {"egress", "allow", EB_KIND_TEXTS, "[]", .max = 1000, .check = eb_config_check_egress_host,
     .doc = "hosts, or *.domain for names below it, international ones as written or in punycode; nothing else leaves"},
    {"egress", "ports", EB_KIND_INTS, "[443]", 1, 65535, .doc = "ports that leave"},
    {"egress", "allow_internal", EB_KIND_BOOL, "false",
     .doc = "literal internal addresses in allow; never a name that resolves inside"},
    {"egress", "who_allows", EB_KIND_TEXT, "\"operators\"", .choices = "operators|owners|nobody",
     .doc = "who may allow a session one more host from the chat: operators, also the session's owner, or nobody"},

    {"budget", "turn_tokens", EB_KIND_INT, "0", 0, BUDGET_MOST, .doc = "tokens one turn may use, 0 = no cap"},
    {"budget", "session_tokens", EB_KIND_INT, "0", 0, BUDGET_MOST, .doc = "tokens one session may use, 0 = no cap"},
    {"budget", "person_tokens", EB_KIND_INT, "0", 0, BUDGET_MOST,
     .doc = "tokens the turns of one person may use in a day (UTC), 0 = no cap"},
    {"budget", "day_tokens", EB_KIND_INT, "0", 0, BUDGET_MOST,
     .doc = "tokens all sessions may use in a day (UTC), 0 = no cap"},
    {"budget", "turn_money", EB_KIND_TEXT, NULL, .check = eb_config_check_money,
     .doc = "as turn_tokens, in money: \"2.50\"; counts models that have a price"},
    {"budget", "session_money", EB_KIND_TEXT, NULL, .check = eb_config_check_money,
     .doc = "as session_tokens, in money"},
    {"budget", "person_money", EB_KIND_TEXT, NULL, .check = eb_config_check_money, .doc = "as person_tokens, in money"},
    {"budget", "day_money", EB_KIND_TEXT, NULL, .check = eb_config_check_money, .doc = "as day_tokens, in money"},
    {"budget", "currency", EB_KIND_TEXT, "\"USD\"", .check = eb_config_check_currency,
     .doc = "what the prices are in; shown, never converted"},
    {"budget", "reserve_tokens", EB_KIND_INT, "8000", 256, 1000000,
     .doc = "set aside for the answer of a request that states no limit, until it is counted"},
    {"budget", "overshoot_tokens", EB_KIND_INT, "2000", 0, 1000000,
     .doc = "an answer that is going on when a cap is reached may use this much more before it is cut off"},

    {"provision", "pool_size", EB_KIND_SIZE, NULL, 1 * GIB, 65536 * GIB,
     .doc = "size of the storage pool that setup makes; without it a share of what is free"},

    {"provider.*", "kind", EB_KIND_TEXT, NULL, .choices = "anthropic|openai|gemini", .required = TRUE,
     .doc = "which header carries the key"},
    {"provider.*", "base_url", EB_KIND_TEXT, NULL, .check = eb_config_check_base_url, .required = TRUE,
     .doc = "https, or http to a literal loopback address"},
    {"provider.*", "key", EB_KIND_SECRET, NULL, .required = TRUE, .doc = "the credential, \"cred:NAME\""},
    {"provider.*", "prices", EB_KIND_TEXTS, NULL, .max = 200, .check = eb_config_check_price,
     .doc =
         "\"MODEL INPUT OUTPUT [CACHED [WRITTEN]]\", for a million tokens; MODEL may be the beginning of a name, or *"},
    {NULL},
};

const EbConfigKey *
eb_config_keys(void)
{
    return keys;
}

const EbConfigKey *
eb_config_key_find(const char *table, const char *key)
{
    for (const EbConfigKey *at = keys; at->table != NULL; at++)
        if (strcmp(at->table, table) == 0 && strcmp(at->key, key) == 0)
            return at;
    return NULL;
}
