/* SPDX-License-Identifier: MIT */
/* The commands as an operator runs them: exit codes, one line on stderr, JSON that parses, no value of a credential. */
#include "tests/component/cli/eb-test-program.h"

#include "core/session/eb-dir-lock.h"
#include "core/session/eb-session-manager.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    char *dir;
    char *config;
    char *creds;
} Fixture;

static void
set_up(Fixture *fixture, gconstpointer data)
{
    fixture->dir = eb_test_temp_dir("cmd");
    fixture->config = g_build_filename(fixture->dir, "eb.toml", NULL);
    fixture->creds = g_build_filename(fixture->dir, "state", "creds.env", NULL);
    g_autofree char *state = g_build_filename(fixture->dir, "state", NULL);
    g_autofree char *text =
        g_strdup_printf("[service]\nstate_dir = \"%s\"\nproject_root = \"%s/projects\"\n", state, fixture->dir);
    g_assert_cmpint(mkdir(state, 0700), ==, 0);
    eb_test_write_file(fixture->config, text);
    g_assert_cmpint(chmod(fixture->config, 0600), ==, 0);
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    g_free(fixture->dir);
    g_free(fixture->config);
    g_free(fixture->creds);
}

static JsonObject *
parse(const EbTestRun *run, JsonNode **node)
{
    g_autoptr(GError) error = NULL;

    /* One document and nothing else. */
    g_assert_true(g_str_has_suffix(run->out, "\n"));
    *node = eb_json_parse(run->out, strlen(run->out) - 1, NULL, &error);
    g_assert_no_error(error);
    return eb_json_node_object(*node);
}

/* "errand-box: ...", one line */
static void
assert_one_line(const EbTestRun *run)
{
    g_assert_true(g_str_has_prefix(run->err, "errand-box: "));
    g_assert_cmpint(strchr(run->err, '\n') - run->err, ==, strlen(run->err) - 1);
}

static void
test_version(Fixture *fixture, gconstpointer data)
{
    g_auto(EbTestRun) text = eb_test_run_program(NULL, NULL, "--version");
    g_auto(EbTestRun) json = eb_test_run_program("/no/such/file", NULL, "version --json");
    g_autoptr(JsonNode) node = NULL;

    g_assert_cmpint(text.code, ==, 0);
    g_assert_cmpstr(text.out, ==, "errand-box " EB_VERSION "\n");
    g_assert_cmpint(json.code, ==, 0);
    JsonObject *object = parse(&json, &node);
    g_assert_cmpstr(eb_json_get_string(object, "version"), ==, EB_VERSION);
    g_assert_nonnull(eb_json_get_object(object, "libraries"));
}

static void
test_usage(Fixture *fixture, gconstpointer data)
{
    const char *const lines[] = {"frobnicate",    "config",        "config shwo",   "--nope version",
                                 "sessions show", "creds set a b", "version extra", NULL};

    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(EbTestRun) run = eb_test_run_program(fixture->config, NULL, lines[i]);
        g_assert_cmpint(run.code, ==, 2);
        g_assert_cmpstr(run.out, ==, "");
        assert_one_line(&run);
    }
    g_auto(EbTestRun) unsure = eb_test_run_program(fixture->config, NULL, "sessions remove abc");
    g_assert_cmpint(unsure.code, ==, 2);
    g_assert_nonnull(strstr(unsure.err, "--yes"));
}

static void
test_config(Fixture *fixture, gconstpointer data)
{
    g_auto(EbTestRun) check = eb_test_run_program(fixture->config, NULL, "config check");
    g_auto(EbTestRun) show = eb_test_run_program(fixture->config, NULL, "config show");
    g_auto(EbTestRun) schema = eb_test_run_program("/no/such/file", NULL, "config schema --json");
    g_autoptr(JsonNode) node = NULL;

    g_assert_cmpint(check.code, ==, 0);
    g_assert_cmpint(show.code, ==, 0);
    g_autofree char *line = g_strdup_printf("# %s:2\n", fixture->config);
    g_assert_nonnull(strstr(show.out, line));
    g_assert_cmpint(schema.code, ==, 0);
    g_assert_nonnull(eb_json_get_object(parse(&schema, &node), "properties"));
}

/* What a plugin says of its own table is said once. */
static void
test_bad_plugin_table(Fixture *fixture, gconstpointer data)
{
    eb_test_write_file(fixture->config, "[plugin.chat-console]\ncolour = true\n");
    g_auto(EbTestRun) check = eb_test_run_program(fixture->config, NULL, "config check");
    g_auto(EbTestRun) list = eb_test_run_program(fixture->config, NULL, "plugin list");

    g_assert_cmpint(check.code, ==, 2);
    assert_one_line(&check);
    g_assert_nonnull(strstr(check.err, ":2: unknown key plugin.chat-console.colour (did you mean color?)"));
    g_assert_cmpint(list.code, ==, 0);
    g_assert_cmpstr(list.err, ==, "");
    g_assert_nonnull(strstr(list.out, "unknown key plugin.chat-console.colour"));
}

static void
test_bad_config(Fixture *fixture, gconstpointer data)
{
    eb_test_write_file(fixture->config,
                       "[session]\ncpus = 0\nagent = \"kagge\"\n[plugin.x]\ntoken = \"hunter2hunter2\"\n");
    g_auto(EbTestRun) check = eb_test_run_program(fixture->config, NULL, "config check");
    g_auto(EbTestRun) json = eb_test_run_program(fixture->config, NULL, "config check --json");
    g_auto(EbTestRun) list = eb_test_run_program(fixture->config, NULL, "sessions list");
    g_autoptr(JsonNode) node = NULL;

    g_assert_cmpint(check.code, ==, 2);
    g_assert_nonnull(strstr(check.err, ":2: session.cpus"));
    g_assert_nonnull(strstr(check.err, "did you mean \"kage\"?"));
    g_assert_nonnull(strstr(check.err, ":5: plugin.x.token"));
    g_assert_null(strstr(check.err, "hunter2"));
    g_assert_cmpint(json.code, ==, 2);
    JsonObject *object = parse(&json, &node);
    g_assert_false(eb_json_get_bool(object, "ok", TRUE));
    g_assert_cmpuint(json_array_get_length(eb_json_get_array(object, "problems")), ==, 3);
    g_assert_cmpint(list.code, ==, 2);
    g_auto(EbTestRun) absent = eb_test_run_program("/no/such/file.toml", NULL, "config check");
    g_assert_cmpint(absent.code, ==, 2);
    g_assert_nonnull(strstr(absent.err, "/no/such/file.toml"));
}

static void
test_plugins(Fixture *fixture, gconstpointer data)
{
    g_auto(EbTestRun) list = eb_test_run_program(fixture->config, NULL, "plugin list --json");
    g_autoptr(JsonNode) node = NULL;
    JsonArray *plugins = eb_json_get_array(parse(&list, &node), "plugins");
    guint found = 0;

    g_assert_cmpint(list.code, ==, 0);
    for (guint i = 0; i < json_array_get_length(plugins); i++) {
        JsonObject *plugin = eb_json_array_object(plugins, i);
        const char *name = eb_json_get_string(plugin, "name");
        if (strcmp(name, "credentials") != 0 && strcmp(name, "chat-console") != 0)
            continue;
        found++;
        g_assert_cmpstr(eb_json_get_string(plugin, "state"), ==, "loaded");
        g_assert_cmpuint(json_array_get_length(eb_json_get_array(plugin, "provides")), ==,
                         strcmp(name, "credentials") == 0 ? 3 : 1);
        g_assert_cmpuint(json_array_get_length(eb_json_get_array(plugin, "accesses")), >, 0);
        g_autofree char *line = g_strdup_printf("plugin check %s", eb_json_get_string(plugin, "path"));
        g_auto(EbTestRun) check = eb_test_run_program(fixture->config, NULL, line);
        g_assert_cmpint(check.code, ==, 0);
    }
    g_assert_cmpuint(found, ==, 2);
    g_auto(EbTestRun) no_such = eb_test_run_program(fixture->config, NULL, "plugin show credentails");
    g_assert_cmpint(no_such.code, ==, 2);
    g_assert_nonnull(strstr(no_such.err, "did you mean \"credentials\"?"));
    g_auto(EbTestRun) no_module = eb_test_run_program(fixture->config, NULL, "plugin check /etc/hostname");
    g_assert_cmpint(no_module.code, ==, 2);
    assert_one_line(&no_module);
}

/* No command ever shows a value. */
static void
assert_silent(const EbTestRun *run)
{
    g_assert_null(strstr(run->out, "hunter"));
    g_assert_null(strstr(run->err, "hunter"));
}

static void
test_creds(Fixture *fixture, gconstpointer data)
{
    g_autofree char *text = NULL;
    struct stat info;
    g_autoptr(JsonNode) node = NULL;

    g_auto(EbTestRun) set = eb_test_run_program(fixture->config, "hunter-1\n", "creds set model-key");
    g_assert_cmpint(set.code, ==, 0);
    assert_silent(&set);
    g_assert_cmpint(stat(fixture->creds, &info), ==, 0);
    g_assert_cmpint(info.st_mode & 0777, ==, 0600);
    g_assert_true(g_file_get_contents(fixture->creds, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "ERRAND_PROVIDER_CREDENTIAL=hunter-1\n");

    g_auto(EbTestRun) list = eb_test_run_program(fixture->config, NULL, "creds list --json");
    g_assert_cmpint(list.code, ==, 0);
    assert_silent(&list);
    JsonArray *names = eb_json_get_array(parse(&list, &node), "credentials");
    g_assert_cmpuint(json_array_get_length(names), ==, 1);
    g_assert_cmpstr(eb_json_get_string(eb_json_array_object(names, 0), "name"), ==, "model-key");

    g_auto(EbTestRun) removed = eb_test_run_program(fixture->config, NULL, "creds remove model-key");
    g_assert_cmpint(removed.code, ==, 0);
    g_auto(EbTestRun) again = eb_test_run_program(fixture->config, NULL, "creds remove model-key");
    g_assert_cmpint(again.code, ==, 2);
    assert_one_line(&again);

    g_auto(EbTestRun) empty = eb_test_run_program(fixture->config, "", "creds set model-key");
    g_assert_cmpint(empty.code, ==, 2);
    g_auto(EbTestRun) lines = eb_test_run_program(fixture->config, "hunter-1\nhunter-2\n", "creds set model-key");
    g_assert_cmpint(lines.code, ==, 2);
    assert_silent(&lines);
    g_auto(EbTestRun) name = eb_test_run_program(fixture->config, "hunter-1", "creds set Model_Key");
    g_assert_cmpint(name.code, ==, 2);
    g_auto(EbTestRun) store = eb_test_run_program(fixture->config, "hunter-1", "creds set a --store nope");
    g_assert_cmpint(store.code, ==, 2);
    assert_silent(&store);
}

static void
test_creds_import(Fixture *fixture, gconstpointer data)
{
    g_autofree char *file = g_build_filename(fixture->dir, "mine.env", NULL);
    g_autofree char *line = g_strconcat("creds import ", file, NULL);
    g_autofree char *text = NULL;

    eb_test_write_file(file,
                       "# mine\r\nERRAND_CHAT_TOKEN='hunter-1'\r\nERRAND_GITHUB_TOKEN=\nERRAND_CRED_X=hunter-2\n");
    g_auto(EbTestRun) run = eb_test_run_program(fixture->config, NULL, line);
    g_assert_cmpint(run.code, ==, 0);
    assert_silent(&run);
    g_assert_true(g_file_get_contents(fixture->creds, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "ERRAND_CHAT_TOKEN=hunter-1\nERRAND_CRED_X=hunter-2\n");

    /* The end of base64 reads as an assignment. */
    eb_test_write_file(file, "hunter42hunter42=\n");
    g_auto(EbTestRun) pasted = eb_test_run_program(fixture->config, NULL, line);
    g_assert_cmpint(pasted.code, ==, 2);
    g_assert_nonnull(strstr(pasted.err, "line 1"));
    assert_silent(&pasted);
    eb_test_write_file(file, "ERRAND_CHAT_CHANNEL_ID=hunter-3\n");
    g_auto(EbTestRun) bad = eb_test_run_program(fixture->config, NULL, line);
    g_assert_cmpint(bad.code, ==, 2);
    g_assert_nonnull(strstr(bad.err, "ERRAND_CHAT_CHANNEL_ID is no key of a credential"));
    assert_silent(&bad);
}

static void
test_exposed_creds(Fixture *fixture, gconstpointer data)
{
    eb_test_write_file(fixture->creds, "ERRAND_PROVIDER_CREDENTIAL=hunter-1\n");
    g_assert_cmpint(chmod(fixture->creds, 0644), ==, 0);
    g_auto(EbTestRun) list = eb_test_run_program(fixture->config, NULL, "creds list");
    g_assert_cmpint(list.code, ==, 2);
    g_assert_nonnull(strstr(list.err, "chmod 600"));
    assert_silent(&list);
}

/* A pipe nobody writes to, a directory, a device: said at once, never waited for. */
static void
test_creds_odd_files(Fixture *fixture, gconstpointer data)
{
    g_autofree char *pipe = g_build_filename(fixture->dir, "pipe", NULL);
    const char *const files[] = {pipe, fixture->dir, "/dev/zero", "/no/such/file"};
    const char *const commands[] = {"creds import", "creds set model-key --file"};

    g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
    for (guint i = 0; i < G_N_ELEMENTS(files) * G_N_ELEMENTS(commands); i++) {
        const char *file = files[i % G_N_ELEMENTS(files)];
        g_autofree char *line = g_strdup_printf("%s %s", commands[i / G_N_ELEMENTS(files)], file);
        g_auto(EbTestRun) run = eb_test_run_program(fixture->config, NULL, line);
        g_assert_cmpint(run.code, ==, 2);
        g_assert_nonnull(strstr(run.err, file));
        assert_one_line(&run);
    }
    g_assert_false(g_file_test(fixture->creds, G_FILE_TEST_EXISTS));
}

/* What is wrong with the files handed over is told before the first step. */
static void
test_setup_inputs(Fixture *fixture, gconstpointer data)
{
    g_autofree char *file = g_build_filename(fixture->dir, "in.env", NULL);
    g_autofree char *pipe = g_build_filename(fixture->dir, "pipe", NULL);
    static const struct {
        const char *option;
        mode_t mode;
        const char *content; /* NULL: none */
        const char *says;
    } rows[] = {
        {"creds", 0600, NULL, "No such file"},
        {"creds", 0644, "ERRAND_CHAT_TOKEN=hunter-1\n", "chmod 600"},
        {"creds", 0600, "ERRAND_CHAT_TOKEN=hunter-1\nERRAND_CHAT_TOKEN=hunter-2\n", "second time"},
        {"creds", 0600, "hunter-1\n", "line 1"},
        {"creds", 0600, "ERRAND_NO_SUCH=hunter-1\n", "ERRAND_NO_SUCH"},
        {"env", 0644, "ERRAND_CHAT_TOKEN=hunter-1\n", "ERRAND_CHAT_TOKEN"},
        {"env", 0644, "ERRAND_CHAT_ALLOWED_USER_IDS=somebody\n", "ERRAND_CHAT_ALLOWED_USER_IDS"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *line = g_strdup_printf("setup --plan --%s %s", rows[i].option, file);
        unlink(file);
        if (rows[i].content != NULL) {
            eb_test_write_file(file, rows[i].content);
            g_assert_cmpint(chmod(file, rows[i].mode), ==, 0);
        }
        g_auto(EbTestRun) run = eb_test_run_program(fixture->config, NULL, line);
        g_assert_cmpint(run.code, ==, 2);
        g_assert_cmpstr(run.out, ==, "");
        g_assert_nonnull(strstr(run.err, rows[i].says));
        assert_one_line(&run);
        assert_silent(&run);
    }
    g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
    g_autofree char *line = g_strconcat("setup --plan --creds ", pipe, NULL);
    g_auto(EbTestRun) run = eb_test_run_program(fixture->config, NULL, line);
    g_assert_cmpint(run.code, ==, 2);
    g_assert_nonnull(strstr(run.err, "not a regular file"));
}

/* What would be passed over is refused: somebody who types --plan relies on it. */
static void
test_setup_options(Fixture *fixture, gconstpointer data)
{
    static const char *const lines[] = {"setup --stop-daemons --plan",    "setup --plan --undo --creds x",
                                        "setup --plan --undo --env x",    "setup --plan --yes-data",
                                        "setup --undo --stop-daemons",    "setup --stop-daemons --creds x",
                                        "setup --stop-daemons --yes-data"};

    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        g_auto(EbTestRun) run = eb_test_run_program(fixture->config, NULL, lines[i]);
        g_assert_cmpint(run.code, ==, 2);
        g_assert_cmpstr(run.out, ==, "");
        assert_one_line(&run);
    }
}

/* The service does not run: what to type is said. */
static void
test_sessions_without_service(Fixture *fixture, gconstpointer data)
{
    static const char *const lines[] = {"sessions show abc", "sessions stop abc", "sessions logs abc",
                                        "sessions pin abc"};

    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        g_auto(EbTestRun) run = eb_test_run_program(fixture->config, NULL, lines[i]);
        g_assert_cmpint(run.code, ==, 1);
        g_assert_nonnull(strstr(run.err, "(errand-box up)"));
        assert_one_line(&run);
    }
}

/* The backend's own reason, once. */
static void
test_no_backend(Fixture *fixture, gconstpointer data)
{
    const char *const lines[] = {"image list", "image verify"};

    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(fixture->config, &text, NULL, NULL));
    g_autofree char *more = g_strconcat(text, "[plugin.incus]\nsocket = \"/no/such/socket\"\n", NULL);
    eb_test_write_file(fixture->config, more);
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        g_auto(EbTestRun) run = eb_test_run_program(fixture->config, NULL, lines[i]);
        g_assert_cmpint(run.code, !=, 0);
        g_assert_nonnull(strstr(run.err, "/no/such/socket"));
        assert_one_line(&run);
    }
}

static void
test_no_service(Fixture *fixture, gconstpointer data)
{
    g_auto(EbTestRun) status = eb_test_run_program(fixture->config, NULL, "status");
    g_assert_cmpint(status.code, ==, 1);
    g_assert_nonnull(strstr(status.err, "not running"));
    assert_one_line(&status);
}

/* Whoever asks may be root, and the files are the account's, who may be taken over: nothing there is waited for. */
static void
test_pipes(Fixture *fixture, gconstpointer data)
{
    static const char *const NAMES[] = {"state/" EB_STATE_LOCK_FILE, "state/run/watchdog.lock",
                                        "state/run/watchdog.json", "state/run/control.sock"};
    static const char *const LINES[] = {"status", "down", "up --help", "maint --plan"};
    g_autofree char *run_dir = g_build_filename(fixture->dir, "state", "run", NULL);

    g_assert_cmpint(mkdir(run_dir, 0700), ==, 0);
    for (guint i = 0; i < G_N_ELEMENTS(NAMES); i++) {
        g_autofree char *path = g_build_filename(fixture->dir, NAMES[i], NULL);
        g_assert_cmpint(mkfifo(path, 0600), ==, 0);
    }
    for (guint i = 0; i < G_N_ELEMENTS(LINES); i++) {
        g_auto(EbTestRun) run = eb_test_run_program(fixture->config, NULL, LINES[i]);
        g_assert_cmpint(run.code, <, 128);
    }
}

/* A lock whose open file was handed on names a process that may be anybody's by now. `down` ends the account's alone,
 * also when whoever asks could end it. */
static void
test_down_other(Fixture *fixture, gconstpointer data)
{
    g_autofree char *state = g_build_filename(fixture->dir, "state", NULL);
    g_autofree char *text = g_strdup_printf("[service]\nstate_dir = \"%s\"\nproject_root = \"%s/projects\"\n"
                                            "account = \"nobody\"\n",
                                            state, fixture->dir);
    int said[2], status = 0;
    char byte;
    pid_t pid;

    eb_test_write_file(fixture->config, text);
    g_assert_cmpint(pipe(said), ==, 0);
    pid = fork();
    if (pid == 0) {
        EbDirLock *lock = eb_dir_lock_take(state, EB_STATE_LOCK_FILE, NULL);
        if (lock != NULL)
            eb_dir_lock_set_id(lock, "abcdef");
        (void)!write(said[1], "x", 1);
        pause();
        _exit(0);
    }
    g_assert_cmpint(read(said[0], &byte, 1), ==, 1);
    g_auto(EbTestRun) run = eb_test_run_program(fixture->config, NULL, "down");
    g_assert_cmpint(run.code, ==, 2);
    g_assert_nonnull(strstr(run.err, "not the account's"));
    g_assert_cmpint(waitpid(pid, &status, WNOHANG), ==, 0);
    kill(pid, SIGKILL);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    close(said[0]);
    close(said[1]);
}

static void
test_try_refused(Fixture *fixture, gconstpointer data)
{
    static const struct {
        const char *line;
        const char *says;
    } rows[] = {
        {"try --project ../x hello", ".."},
        {"try --project a/b hello", "a/b"},
        {"try --agent kagge hello", "did you mean \"kage\"?"},
        {"try --permissions maybe hello", "ask, allow or reject"},
        {"try --session x hello", "--service"},
        {"try --service --resume x hello", "--session"},
        {"try --service hello", "not running"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(EbTestRun) run = eb_test_run_program(fixture->config, NULL, rows[i].line);
        g_assert_cmpint(run.code, ==, i == G_N_ELEMENTS(rows) - 1 ? 1 : 2);
        g_assert_nonnull(strstr(run.err, rows[i].says));
        assert_one_line(&run);
    }
    g_auto(EbTestRun) json = eb_test_run_program(fixture->config, NULL, "try --json --agent kagge hello");
    g_autoptr(JsonNode) node = NULL;
    JsonObject *end = parse(&json, &node);
    g_assert_cmpstr(eb_json_get_string(end, "event"), ==, "end");
    g_assert_cmpstr(eb_json_get_string(end, "stop_reason"), ==, "error");
    JsonObject *ms = eb_json_get_object(end, "ms");
    g_assert_cmpint(eb_json_get_int(ms, "guest", -1), ==, 0);
    g_assert_cmpint(eb_json_get_int(ms, "agent", -1), ==, 0);
    g_assert_cmpint(eb_json_get_int(ms, "turn", -1), ==, 0);
    g_auto(EbTestRun) empty = eb_test_run_program(fixture->config, "  \n", "try -");
    g_assert_cmpint(empty.code, ==, 2);
    g_assert_nonnull(strstr(empty.err, "empty"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(name, func) g_test_add("/commands/" name, Fixture, NULL, set_up, func, tear_down)
    ADD("version", test_version);
    ADD("usage", test_usage);
    ADD("config", test_config);
    ADD("bad-config", test_bad_config);
    ADD("bad-plugin-table", test_bad_plugin_table);
    ADD("plugins", test_plugins);
    ADD("creds", test_creds);
    ADD("creds-import", test_creds_import);
    ADD("exposed-creds", test_exposed_creds);
    ADD("creds-odd-files", test_creds_odd_files);
    ADD("setup-inputs", test_setup_inputs);
    ADD("setup-options", test_setup_options);
    ADD("sessions-without-service", test_sessions_without_service);
    ADD("no-backend", test_no_backend);
    ADD("no-service", test_no_service);
    ADD("pipes", test_pipes);
    ADD("down-other", test_down_other);
    ADD("try-refused", test_try_refused);
    return g_test_run();
}
