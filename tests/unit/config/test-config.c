/* SPDX-License-Identifier: MIT */
#include "core/config/eb-config-file.h"
#include "core/config/eb-config-private.h"
#include "core/config/eb-config-schema.h"
#include "core/config/eb-config.h"
#include "tests/lib/eb-test.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file in a directory of its own; the profiles are left out (data_dir NULL). */
static EbConfig *
load(const char *content, GError **error)
{
    g_autofree char *dir = eb_test_temp_dir("config");
    g_autofree char *path = g_build_filename(dir, "one.toml", NULL);

    eb_test_write_file(path, content);
    g_assert_cmpint(chmod(path, 0640), ==, 0);
    return eb_config_load(path, NULL, error);
}

static void
test_defaults(void)
{
    g_autofree char *dir = eb_test_temp_dir("config");
    g_autoptr(GError) error = NULL;
    g_autoptr(EbConfig) config = eb_config_load_dir(dir, NULL, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(eb_config_get_account(config), ==, "errand");
    g_assert_cmpstr(eb_config_get_state_dir(config), ==, "/var/lib/errand-box");
    g_assert_cmpstr(eb_config_get_project_root(config), ==, "/var/lib/errand-box/home/projects");
    const EbSessionConfig *session = eb_config_get_session(config);
    g_assert_cmpuint(session->memory, ==, G_GUINT64_CONSTANT(4) << 30);
    g_assert_cmpuint(session->idle_ms, ==, 30 * 60 * 1000);
    g_assert_cmpuint(session->n_egress_ports, ==, 1);
    g_assert_cmpuint(session->egress_ports[0], ==, 443);
    g_assert_cmpuint(session->max_live, ==, 4);
    g_assert_false(session->allow_internal);
    g_assert_null(session->model);
    g_assert_cmpuint(eb_config_get_providers(config)->len, ==, 0);
}

/* Every default passes its own check. */
static void
test_defaults_are_valid(void)
{
    g_autoptr(EbConfigSection) defaults = eb_config_defaults();
    g_autoptr(EbConfigProblems) problems = eb_config_problems_new();

    eb_config_schema_check(defaults, problems);
    for (guint i = 0; i < problems->lines->len; i++)
        g_test_message("%s", (const char *)problems->lines->pdata[i]);
    g_assert_cmpuint(problems->lines->len, ==, 0);
}

static void
test_merge(void)
{
    g_autofree char *dir = eb_test_temp_dir("config");
    g_autofree char *main_file = g_build_filename(dir, "errand-box.toml", NULL);
    g_autofree char *second = g_build_filename(dir, "conf.d", "20-b.toml", NULL);
    g_autofree char *first = g_build_filename(dir, "conf.d", "10-a.toml", NULL);
    g_autofree char *hidden = g_build_filename(dir, "conf.d", ".30-c.toml", NULL);
    g_autofree char *other = g_build_filename(dir, "conf.d", "40-d.toml.orig", NULL);
    g_autoptr(GError) error = NULL;

    eb_test_write_file(main_file, "[session]\nmemory = \"1GiB\"\ncpus = 1\n[egress]\nallow = [\"a.example\"]\n");
    eb_test_write_file(second, "[session]\ncpus = 8\n");
    eb_test_write_file(first, "[session]\n\ncpus = 4\n[egress]\nallow = [\"b.example\"]\n");
    eb_test_write_file(hidden, "nonsense");
    eb_test_write_file(other, "nonsense");
    g_autoptr(EbConfig) config = eb_config_load_dir(dir, NULL, &error);
    g_assert_no_error(error);
    const EbSessionConfig *session = eb_config_get_session(config);
    g_assert_cmpuint(session->memory, ==, 1 << 30);
    g_assert_cmpuint(session->cpus, ==, 8);
    g_assert_cmpuint(g_strv_length(session->egress_allow), ==, 1);
    g_assert_cmpstr(session->egress_allow[0], ==, "b.example");

    g_autofree char *shown = eb_config_show(config, FALSE);
    g_autofree char *line = g_strdup_printf("cpus = 8 # %s:2\n", second);
    g_assert_nonnull(strstr(shown, line));
    g_assert_nonnull(strstr(shown, "account = \"errand\" # default\n"));
    g_autofree char *json = eb_config_show(config, TRUE);
    g_autoptr(JsonNode) node = eb_json_parse(json, strlen(json), NULL, &error);
    g_assert_no_error(error);
    JsonObject *from = eb_json_get_object(eb_json_node_object(node), "from");
    g_autofree char *where = g_strdup_printf("%s:2", second);
    g_assert_cmpstr(eb_json_get_string(from, "session.cpus"), ==, where);
}

typedef struct {
    const char *name;
    const char *content;
    const char *says; /* (nullable): NULL = fine */
} Row;

#define PROVIDER(url) "[provider.p]\nkind = \"openai\"\nbase_url = \"" url "\"\nkey = \"cred:model-key\"\n"

static const Row rows[] = {
    {"unknown-table", "[sesion]\nmemory = \"1GiB\"\n", ":2: unknown table \"sesion\" (did you mean \"session\"?)"},
    {"unknown-key", "[session]\nmemroy = \"1GiB\"\n", ":2: unknown key \"session.memroy\" (did you mean \"memory\"?)"},
    {"key-at-top", "memory = 1\n", ":1: unknown key \"memory\""},
    {"sub-table", "[session.deep]\nx = 1\n", "unknown table \"session.deep\""},
    {"wrong-type", "[session]\nmemory = true\n", ":2: session.memory is true or false"},
    {"wrong-list", "[egress]\nallow = \"a.example\"\n", ":2: egress.allow"},
    {"size", "[session]\nmemory = \"4 gigs\"\n", ":2: session.memory"},
    {"size-low", "[session]\nmemory = \"1MiB\"\n", ":2: session.memory"},
    {"range", "[session]\ncpus = 0\n", ":2: session.cpus is 0 and must be 1 to 1024"},
    {"negative", "[session]\npids = -5\n", ":2: session.pids"},
    {"duration", "[session]\nidle = 30\n", ":2: session.idle"},
    {"choice", "[egress]\nmode = \"open\"\n", ":2: egress.mode: \"open\" is none of proxy, none"},
    {"choice-near", "[session]\nlink = \"sockt\"\n", "did you mean \"socket\"?"},
    {"star", "[egress]\nallow = [\"*\"]\n", "there is no open mode"},
    {"star-tld", "[egress]\nallow = [\"*.com\"]\n", "top-level"},
    {"star-inside", "[egress]\nallow = [\"a.*.example\"]\n", "at the beginning"},
    {"url-as-host", "[egress]\nallow = [\"https://a.example/\"]\n", "not a URL"},
    {"host-port", "[egress]\nallow = [\"a.example:443\"]\n", "without a port"},
    {"host-twice", "[egress]\nallow = [\"a.example\", \"a.example\"]\n", "twice"},
    {"money", "[budget]\nday_money = \"2,50\"\n", "no amount of money"},
    {"money-number", "[budget]\nday_money = 2\n", ":2: budget.day_money"},
    {"currency", "[budget]\ncurrency = \"dollars\"\n", "three capital letters"},
    {"cap", "[budget]\nday_tokens = -1\n", ":2: budget.day_tokens"},
    {"cap-name", "[budget]\nday_token = 1\n", "day_tokens"},
    {"budget", "[budget]\nday_tokens = 1000\nsession_money = \"2.50\"\ncurrency = \"EUR\"\n", NULL},
    {"price",
     "[provider.p]\nkind = \"openai\"\nbase_url = \"https://a.example\"\nkey = \"cred:k\"\nprices = [\"m 1\"]\n",
     "no price"},
    {"money-without-prices",
     "[budget]\nday_money = \"5\"\n[provider.p]\nkind = \"openai\"\nbase_url = \"https://a.example\"\nkey = "
     "\"cred:k\"\n",
     "provider.p.prices: missing"},
    {"prices",
     "[provider.p]\nkind = \"openai\"\nbase_url = \"https://a.example\"\nkey = \"cred:k\"\nprices = [\"m 1 2\", \"* 5 "
     "6.5 "
     "0.1\"]\n",
     NULL},
    {"hosts", "[egress]\nallow = [\"a.example\", \"*.b.example\", \"10.0.0.1\", \"::1\", \"A.Example\"]\n", NULL},
    {"international",
     "[egress]\nallow = [\"b\xc3\xbc"
     "cher.example\", \"*.xn--bcher-kva.example\"]\n",
     NULL},
    {"two-hosts", "[egress]\nallow = [\"fa\xc3\x9f.example\"]\n", "in its xn-- form"},
    {"look-alike", "[egress]\nallow = [\"\xef\xbd\x85vil.example\"]\n", "in plain letters"},
    {"no-address", "[egress]\nallow = [\"10.0.0\"]\n", "not an address"},
    {"ports", "[egress]\nports = [0]\n", "from 1 to 65535"},
    {"ports-type", "[egress]\nports = [\"https\"]\n", "from 1 to 65535"},
    {"ports-empty", "[egress]\nports = []\n", NULL},
    {"root", "[service]\naccount = \"root\"\n", "never runs as root"},
    {"relative", "[service]\nstate_dir = \"state\"\n", "absolute path"},
    {"dots", "[service]\nstate_dir = \"/srv/../etc/x\"\n", "without"},
    {"system-dir", "[service]\nstate_dir = \"/usr\"\n", "belongs to the system"},
    {"inside", "[service]\nstate_dir = \"/srv/eb\"\nproject_root = \"/srv/eb/projects\"\n",
     ":3: service.project_root: project_root lies inside state_dir"},
    {"around", "[service]\nstate_dir = \"/srv/p/state\"\nproject_root = \"/srv/p\"\n", "state_dir (/srv/p/state) lies"},
    {"same", "[service]\nstate_dir = \"/srv/p\"\nproject_root = \"/srv/p\"\n", "same directory"},
    {"home", "[service]\nstate_dir = \"/srv/eb\"\nproject_root = \"/srv/eb/home/projects\"\n", NULL},
    {"home-itself", "[service]\nstate_dir = \"/srv/eb\"\nproject_root = \"/srv/eb/home\"\n", "inside state_dir"},
    {"sibling", "[service]\nstate_dir = \"/srv/eb\"\nproject_root = \"/srv/eb-projects\"\n", NULL},
    {"degraded-id", "[service]\naccept_degraded = [\"E-05\", \"x-acme-disk\"]\n", NULL},
    {"degraded-bad", "[service]\naccept_degraded = [\"all\"]\n", "not the id of a check"},
    {"provider", PROVIDER("https://api.example"), NULL},
    {"provider-loopback", PROVIDER("http://127.0.0.1:8080/v1"), NULL},
    {"provider-http", PROVIDER("http://api.example"), "literal loopback"},
    {"provider-localhost", PROVIDER("http://localhost:80"), "literal loopback"},
    {"provider-user", PROVIDER("https://u:p@api.example"), "user or password"},
    {"provider-query", PROVIDER("https://api.example/?k=v"), "neither"},
    {"provider-scheme", PROVIDER("ftp://api.example"), "https:// is needed"},
    {"provider-kind", "[provider.p]\nkind = \"acme\"\nbase_url = \"https://a.example\"\nkey = \"cred:k\"\n", "none of"},
    {"provider-missing", "[provider.p]\nkind = \"openai\"\n", "needs \"base_url\""},
    {"provider-name", "[provider.P_1]\nkind = \"openai\"\n", "[provider.P_1]: a name is"},
    {"session-provider", "[session]\nprovider = \"q\"\n" PROVIDER("https://api.example"), "there is no [provider.q]"},
    {"literal-key", "[provider.p]\nkind = \"openai\"\nbase_url = \"https://a.example\"\nkey = \"hunter2hunter2\"\n",
     ":4: provider.p.key"},
    {"literal-token", "[plugin.acme]\ntoken = \"hunter2hunter2\"\n", ":2: plugin.acme.token: a secret does not belong"},
    {"token-reference", "[plugin.acme]\ntoken = \"cred:acme\"\nmax_tokens = \"5\"\n", NULL},
    {"token-shape", "[plugin.acme]\nsocket = \"ghp_0123456789abcdefghijklmnopqrstuv\"\n", "a secret does not belong"},
    {"plugin-slip", "[plugins]\nenabled = [\"acmedisk\"]\n[plugin.acmedsk]\nx = 1\n", "did you mean \"acmedisk\"?"},
    {"bot-token", "[plugin.acme]\nids = [\"MTE4MDAwMDAwMDAwMDAwMDAwMQ.hunter2.hunter2\"]\n",
     "a secret does not belong"},
    {"plugin-part", "[plugins]\nenabled = [\"acme-disk\"]\n[plugin.disk]\nx = 1\n", "did you mean \"acme-disk\"?"},
    {"plugin-off", "[plugins]\nenabled = [\"acme\"]\n[plugin.another-one]\nx = 1\n", NULL},
    {"plugin-key", "[plugin]\nx = 1\n", "a table [...] of a name is expected"},
    {"table-of-tables", "\n[providers.p]\nkind = \"openai\"\n",
     ":3: unknown table \"providers\" (did you mean \"provider\"?)"},
    {"known-keys", "[budget]\ntokens_per_day = 5\n",
     "unknown key \"budget.tokens_per_day\" (known: turn_tokens, session_tokens"},
    {"url-password", PROVIDER("https://me:hunter2/@a.example/v1"), "base_url: \"https://...@a.example/v1\": "},
    {"url-user", PROVIDER("https://hunter2@a.example"), "https://...@a.example"},
    {"url-key", PROVIDER("https://a.example/v1?key=hunter2#hunter2"),
     "https://a.example/v1?...\": a base URL has neither"},
    {"url-dots", PROVIDER("https://a.example/v1/../v2"), "its path has"},
    {"url-escaped-dots", PROVIDER("https://a.example/%2e%2e/v2"), "has no \"%\""},
    {"url-empty-part", PROVIDER("https://a.example/v1//v2"), "its path has"},
    {"url-blank", PROVIDER("https://a.example/v1 /x"), "or space"},
    {"url-plain", PROVIDER("https://a.example/openai/deployments/x_1.0~a:b/"), NULL},
    {"many-ports",
     "[egress]\nports = [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
     "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]\n",
     "more than 64 entries"},
};

static void
test_row(gconstpointer data)
{
    const Row *row = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(EbConfig) config = load(row->content, &error);

    if (row->says == NULL) {
        g_assert_no_error(error);
        return;
    }
    g_assert_null(config);
    eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, row->says);
    g_assert_null(strstr(error->message, "hunter2"));
    g_assert_null(strstr(error->message, "ghp_"));
}

static void
test_all_at_once(void)
{
    g_autofree char *dir = eb_test_temp_dir("config");
    g_autofree char *broken = g_build_filename(dir, "conf.d", "10-broken.toml", NULL);
    g_autofree char *wrong = g_build_filename(dir, "conf.d", "20-wrong.toml", NULL);
    g_autoptr(GError) error = NULL;

    eb_test_write_file(broken, "[session\n");
    eb_test_write_file(wrong, "[session]\ncpus = 0\nmemroy = 1\n[egress]\nmode = \"open\"\n");
    g_assert_null(eb_config_load_dir(dir, NULL, &error));
    g_auto(GStrv) lines = g_strsplit(error->message, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, 4);
    for (char **line = lines; *line != NULL; line++) {
        g_test_message("%s", *line);
        g_assert_true(g_str_has_prefix(*line, dir));
    }
}

static void
test_files(void)
{
    g_autofree char *dir = eb_test_temp_dir("config");
    g_autofree char *file = g_build_filename(dir, "a.toml", NULL);
    g_autofree char *link = g_build_filename(dir, "link.toml", NULL);
    g_autofree char *fifo = g_build_filename(dir, "fifo.toml", NULL);
    g_autofree char *absent = g_build_filename(dir, "absent.toml", NULL);
    const char *const refused[] = {"/dev/zero", dir, fifo, absent, NULL};

    eb_test_write_file(file, "[session]\n");
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    for (guint i = 0; refused[i] != NULL; i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(eb_config_load(refused[i], NULL, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, refused[i]);
    }
    g_assert_cmpint(symlink(file, link), ==, 0);
    g_autoptr(EbConfig) through = eb_config_load(link, NULL, NULL);
    g_assert_nonnull(through);
    for (guint mode = 0; mode < 2; mode++) {
        g_autoptr(GError) error = NULL;
        g_assert_cmpint(chmod(file, mode == 0 ? 0620 : 0602), ==, 0);
        g_assert_null(eb_config_load(link, NULL, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, "may write it (chmod go-w");
    }
    if (geteuid() != 0)
        return;
    g_assert_cmpint(chmod(file, 0600), ==, 0);
    g_assert_cmpint(chown(file, 12345, 12345), ==, 0);
    g_autoptr(GError) error = NULL;
    g_assert_null(eb_config_file_read(file, EB_CONFIG_TRUST_SYSTEM, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, "belongs to uid 12345");
}

/* What is found without being asked for: a wrong directory, a link that leads nowhere, names that are not read. */
static void
test_system_dir(void)
{
    g_autofree char *dir = eb_test_temp_dir("config");
    g_autofree char *main_file = g_build_filename(dir, "errand-box.toml", NULL);
    g_autofree char *conf_d = g_build_filename(dir, "conf.d", NULL);
    static const char *const NAMES[] = {"10-a.toml",  "20-b.conf",          "30-c.TOML", ".40-d.toml",
                                        "50-e.toml~", "60-f.toml.dpkg-old", "a\nb"};
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(NAMES); i++) {
        g_autofree char *path = g_build_filename(conf_d, NAMES[i], NULL);
        eb_test_write_file(path, i == 0 ? "[session]\ncpus = 7\n" : "nonsense");
    }
    g_auto(GStrv) ignored = eb_config_file_list_ignored(conf_d);
    g_autofree char *names = g_strjoinv(" ", ignored);
    g_assert_cmpstr(names, ==, "20-b.conf 30-c.TOML a\\x0ab");
    g_autoptr(EbConfig) config = eb_config_load_dir(dir, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(eb_config_get_session(config)->cpus, ==, 7);

    g_assert_cmpint(chmod(conf_d, 0770), ==, 0);
    g_assert_null(eb_config_load_dir(dir, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, "may write the directory");
    g_clear_error(&error);
    g_assert_cmpint(chmod(conf_d, 0755), ==, 0);
    /* An absent file is none; one that was meant to be there is not absent. */
    g_assert_cmpint(symlink("/nonexistent/x", main_file), ==, 0);
    g_assert_null(eb_config_load_dir(dir, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, "is a link to /nonexistent/x, which is not there");
    g_clear_error(&error);
    g_assert_cmpint(unlink(main_file), ==, 0);
    if (geteuid() != 0)
        return;
    g_assert_cmpint(chown(conf_d, 12345, 12345), ==, 0);
    g_assert_null(eb_config_load_dir(dir, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, "belongs to uid 12345, who may exchange the file (chown root");
}

/* conf.d is no directory, holds one that looks like a file, or too many files. */
static void
test_conf_d(void)
{
    g_autofree char *dir = eb_test_temp_dir("config");
    g_autofree char *conf_d = g_build_filename(dir, "conf.d", NULL);
    g_autofree char *folder = g_build_filename(conf_d, "x.toml", NULL);
    g_autoptr(GError) error = NULL;

    eb_test_write_file(conf_d, "");
    g_assert_null(eb_config_load_dir(dir, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, "conf.d: not a directory");
    g_clear_error(&error);
    g_assert_cmpint(unlink(conf_d) + mkdir(conf_d, 0755) + mkdir(folder, 0755), ==, 0);
    g_assert_null(eb_config_load_dir(dir, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, "conf.d/x.toml: not a regular file");
    g_clear_error(&error);
    g_assert_cmpint(rmdir(folder), ==, 0);
    for (guint i = 0; i <= EB_CONFIG_MAX_FILES; i++) {
        g_autofree char *path = g_strdup_printf("%s/%03u.toml", conf_d, i);
        eb_test_write_file(path, "");
    }
    g_assert_null(eb_config_load_dir(dir, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, "more than 200 files");
}

/* A value that is none leaves the rest of its file to be judged, and problems stand in the order of the lines. */
static void
test_half_a_file(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbConfig) config = load("[session]\nzz = 1\ncpus = 1979-05-27\nagent = 5\naa = [[1]]\n", &error);
    static const char *const ORDER[] = {":2: unknown key \"session.zz\"", ":3:8: cpus: dates", ":4: session.agent",
                                        ":5:7: aa: a list"};
    const char *at;

    g_assert_null(config);
    at = error->message;
    for (guint i = 0; i < G_N_ELEMENTS(ORDER); i++) {
        at = strstr(at, ORDER[i]);
        if (at == NULL)
            g_error("not in its place: %s in %s", ORDER[i], error->message);
    }
}

static void
test_dirs_through_links(void)
{
    g_autofree char *dir = eb_test_temp_dir("config");
    g_autofree char *state = g_build_filename(dir, "state", NULL);
    g_autofree char *projects = g_build_filename(dir, "projects", NULL);
    g_autofree char *text =
        g_strdup_printf("[service]\nstate_dir = \"%s\"\nproject_root = \"%s/deep\"\n", state, projects);
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(mkdir(state, 0700), ==, 0);
    g_assert_cmpint(symlink(state, projects), ==, 0);
    g_assert_null(load(text, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, "lies inside state_dir");
}

static void
test_schema(void)
{
    g_autofree char *schema = eb_config_schema();
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = eb_json_parse(schema, strlen(schema), NULL, &error);

    g_assert_no_error(error);
    JsonObject *properties = eb_json_get_object(eb_json_node_object(node), "properties");
    for (const EbConfigKey *key = eb_config_keys(); key->table != NULL; key++) {
        g_autofree char *table = g_strdup(key->table);
        char *star = strstr(table, ".*");
        if (star != NULL)
            *star = '\0';
        JsonObject *object = eb_json_get_object(properties, table);
        if (star != NULL)
            object = eb_json_get_object(object, "additionalProperties");
        g_assert_nonnull(eb_json_get_object(eb_json_get_object(object, "properties"), key->key));
    }
}

/* What the core itself looks at in a plugin's table is not what the plugin knows. */
static void
test_plugin_section(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbConfig) config =
        load("[plugin.acme]\nsocket = \"a\"\nsockt = \"b\"\nids = [\"c\"]\n[plugin.acme.more]\nx = 1\n", &error);
    g_assert_no_error(error);

    for (guint i = 0; i < 2; i++) {
        g_autoptr(EbConfigSection) section = eb_config_get_plugin_section(config, "acme");
        g_autofree char *socket = eb_config_section_get_string(section, "socket", NULL, &error);
        g_autofree char *where = eb_config_section_where(section, "ids");
        g_assert_cmpstr(socket, ==, "a");
        g_assert_cmpstr(eb_config_section_get_path(section), ==, "plugin.acme");
        g_assert_true(g_str_has_suffix(where, ":4"));
        g_assert_false(eb_config_section_check_unknown(section, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "config.unknown-key", ":4: unknown key plugin.acme.ids");
        eb_test_assert_error(error, EB_ERROR_CONFIG, "config.unknown-key",
                             ":3: unknown key plugin.acme.sockt (did you mean socket?)");
        eb_test_assert_error(error, EB_ERROR_CONFIG, "config.unknown-key", "unknown key plugin.acme.more");
        g_clear_error(&error);
    }
}

static void
test_show_masks(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbConfig) config =
        load("[plugin.acme]\ntoken = \"cred:acme\"\nurl = \"https://user:hunter2@a.example/x\"\n"
             "\"odd key\" = \"a\\\"b\\u0007\"\n",
             &error);
    g_assert_no_error(error);
    g_autofree char *shown = eb_config_show(config, FALSE);
    g_autofree char *json = eb_config_show(config, TRUE);

    g_assert_nonnull(strstr(shown, "token = \"cred:acme\""));
    g_assert_null(strstr(shown, "hunter2"));
    g_assert_null(strstr(json, "hunter2"));
    g_assert_nonnull(strstr(shown, "\"odd key\" = \"a\\\"b\\u0007\""));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_unsetenv("ERRAND_BOX_CONFIG");
    g_test_add_func("/config/defaults", test_defaults);
    g_test_add_func("/config/defaults-are-valid", test_defaults_are_valid);
    g_test_add_func("/config/merge", test_merge);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *path = g_strconcat("/config/row/", rows[i].name, NULL);
        g_test_add_data_func(path, &rows[i], test_row);
    }
    g_test_add_func("/config/plugin-section", test_plugin_section);
    g_test_add_func("/config/all-at-once", test_all_at_once);
    g_test_add_func("/config/files", test_files);
    g_test_add_func("/config/system-dir", test_system_dir);
    g_test_add_func("/config/conf-d", test_conf_d);
    g_test_add_func("/config/half-a-file", test_half_a_file);
    g_test_add_func("/config/dirs-through-links", test_dirs_through_links);
    g_test_add_func("/config/schema", test_schema);
    g_test_add_func("/config/show-masks", test_show_masks);
    return g_test_run();
}
