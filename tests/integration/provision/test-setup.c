/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <glib/gstdio.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/provision/eb-daemon-process.h"
#include "core/provision/eb-provision-client.h"
#include "core/provision/eb-setup.h"
#include "tests/lib/eb-test.h"

/* Setup against a real daemon of its own: INCUS_DIR is a fresh directory, the account is a real one of this machine. */

typedef struct {
    char *dir;
    char *state_dir;
    char *config_file;
    char *creds_file;
    char *env_file;
} World;

static World world;

static EbSetup *
make_setup(gboolean plan, EbConfig **config)
{
    g_autoptr(GError) error = NULL;
    EbSetupOptions options = {.plan = plan, .creds_file = world.creds_file, .env_file = world.env_file};
    g_autofree char *written = g_build_filename(world.dir, "written.toml", NULL);

    *config = eb_config_load(world.config_file, g_getenv("EB_DATA_DIR"), &error);
    g_assert_no_error(error);
    options.config = *config;
    options.config_file = g_intern_string(written);
    return eb_setup_new(&options);
}

static const EbSetupRow *
find_row(EbSetup *setup, const char *id)
{
    GPtrArray *rows = eb_setup_get_rows(setup);

    for (guint i = 0; i < rows->len; i++)
        if (strcmp(((EbSetupRow *)rows->pdata[i])->id, id) == 0)
            return rows->pdata[i];
    return NULL;
}

static void
assert_no_secret(EbSetup *setup)
{
    g_autoptr(JsonNode) node = eb_setup_to_json(setup);
    g_autofree char *json = eb_json_write(node, NULL);

    g_assert_null(strstr(json, "sk-secret-value"));
}

/* A plan names what would change and makes none of it. */
static void
test_plan(void)
{
    g_autoptr(EbConfig) config = NULL;
    g_autoptr(EbSetup) setup = make_setup(TRUE, &config);
    g_autoptr(GError) error = NULL;
    g_autofree char *socket = g_build_filename(g_getenv("INCUS_DIR"), "unix.socket", NULL);

    g_assert_true(eb_setup_run(setup, &error));
    g_assert_no_error(error);
    g_assert_cmpint(find_row(setup, "directories")->result, ==, EB_SETUP_PLANNED);
    g_assert_cmpint(find_row(setup, "incusd")->result, ==, EB_SETUP_PLANNED);
    g_assert_cmpint(find_row(setup, "pool")->result, ==, EB_SETUP_PLANNED);
    g_assert_nonnull(strstr(find_row(setup, "pool")->detail, "storage pool errand"));
    g_assert_cmpint(find_row(setup, "project")->result, ==, EB_SETUP_PLANNED);
    g_assert_nonnull(find_row(setup, "directories")->undo);
    g_assert_false(g_file_test(world.state_dir, G_FILE_TEST_EXISTS));
    g_assert_false(g_file_test(socket, G_FILE_TEST_EXISTS));
    assert_no_secret(setup);
}

/* A listener of another mount namespace stands in the network namespace's table under our path, without a file here. */
static int
listen_without_a_file(void)
{
    g_autofree char *path = g_build_filename(g_getenv("INCUS_DIR"), "unix.socket.user", NULL);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(g_mkdir_with_parents(g_getenv("INCUS_DIR"), 0711), ==, 0);
    g_assert_cmpuint(g_strlcpy(address.sun_path, path, sizeof address.sun_path), <, sizeof address.sun_path);
    g_assert_cmpint(bind(fd, (const struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(listen(fd, 1), ==, 0);
    g_assert_cmpint(g_unlink(path), ==, 0);
    return fd;
}

static void
test_run(void)
{
    int elsewhere = listen_without_a_file();
    g_autoptr(EbConfig) config = NULL;
    g_autoptr(EbSetup) setup = make_setup(FALSE, &config);
    g_autoptr(GError) error = NULL;
    g_autofree char *creds = g_build_filename(world.state_dir, "creds.env", NULL);
    g_autofree char *written = g_build_filename(world.dir, "written.toml", NULL);
    g_autofree char *toml = NULL;
    const struct passwd *account = getpwnam("errand");
    struct stat info;

    g_assert_true(eb_setup_run(setup, &error));
    g_assert_no_error(error);
    account = getpwnam("errand");
    g_assert_nonnull(account);
    g_assert_cmpint(g_stat(world.state_dir, &info), ==, 0);
    g_assert_cmpuint(info.st_uid, ==, account->pw_uid);
    g_assert_cmpuint(info.st_mode & 07777, ==, 0700);
    g_assert_cmpint(g_stat(creds, &info), ==, 0);
    g_assert_cmpuint(info.st_uid, ==, account->pw_uid);
    g_assert_cmpuint(info.st_mode & 07777, ==, 0600);
    g_assert_true(g_file_get_contents(written, &toml, NULL, NULL));
    g_assert_nonnull(strstr(toml, "[provider.anthropic]"));
    g_assert_null(strstr(toml, "sk-secret-value"));
    g_assert_cmpint(find_row(setup, "incus-user")->result, ==, EB_SETUP_CHANGED);
    g_assert_cmpint(find_row(setup, "reach")->result, ==, EB_SETUP_OK);
    assert_no_secret(setup);
    close(elsewhere);
}

/* The second run finds nothing to do. */
static void
test_again(void)
{
    g_autoptr(EbConfig) config = NULL;
    g_autoptr(EbSetup) setup = make_setup(FALSE, &config);
    g_autoptr(GError) error = NULL;
    GPtrArray *rows;

    g_assert_true(eb_setup_run(setup, &error));
    g_assert_no_error(error);
    rows = eb_setup_get_rows(setup);
    for (guint i = 0; i < rows->len; i++) {
        const EbSetupRow *row = rows->pdata[i];
        if (row->result != EB_SETUP_OK && row->result != EB_SETUP_DEGRADED)
            g_error("%s is %s on the second run: %s", row->id, eb_setup_result_to_string(row->result), row->detail);
    }
}

/* What was taken away comes back: setup converges from wherever the host is. */
static void
test_repair(void)
{
    g_autoptr(EbConfig) config = NULL;
    g_autoptr(EbSetup) setup = make_setup(FALSE, &config);
    g_autoptr(GError) error = NULL;
    g_autofree char *try_dir = g_build_filename(world.state_dir, "try", NULL);
    g_autofree char *pid_file = g_build_filename(g_getenv("INCUS_DIR"), "incus-user.pid", NULL);

    g_assert_cmpint(g_rmdir(try_dir), ==, 0);
    g_assert_true(eb_daemon_process_stop(pid_file, SIGTERM, 5000, &error));
    g_assert_true(eb_setup_run(setup, &error));
    g_assert_no_error(error);
    g_assert_cmpint(find_row(setup, "directories")->result, ==, EB_SETUP_CHANGED);
    g_assert_cmpint(find_row(setup, "incus-user")->result, ==, EB_SETUP_CHANGED);
    g_assert_cmpint(find_row(setup, "project")->result, ==, EB_SETUP_OK);
}

static JsonArray *
list_certificates(EbProvisionClient *client, JsonNode **node)
{
    *node = eb_provision_client_call(client, "GET", "/1.0/certificates?recursion=1", NULL, 10000, NULL);
    g_assert_true(*node != NULL && JSON_NODE_HOLDS_ARRAY(*node));
    return json_node_get_array(*node);
}

/* What incus-user keeps of the account is refused by the daemon: the project was made anew, or the certificate is no
 * longer trusted. Setup has it made again instead of ending there each time. */
static void
test_refused_account(void)
{
    g_autofree char *socket = g_build_filename(g_getenv("INCUS_DIR"), "unix.socket", NULL);
    EbProvisionClient *client = eb_provision_client_new(socket);

    for (guint round = 0; round < 2; round++) {
        g_autoptr(EbConfig) config = NULL;
        g_autoptr(EbSetup) setup = make_setup(FALSE, &config);
        g_autoptr(GError) error = NULL;
        g_autoptr(JsonNode) node = NULL;
        g_autoptr(JsonNode) after = NULL;
        g_autoptr(JsonNode) answer = NULL;
        g_autoptr(JsonNode) body = NULL;
        JsonArray *list = list_certificates(client, &node);

        g_assert_cmpuint(json_array_get_length(list), ==, 1);
        JsonObject *certificate = eb_json_array_object(list, 0);
        g_autofree char *path =
            eb_provision_path("/1.0/certificates/%s", eb_json_get_string(certificate, "fingerprint"));
        if (round == 0) {
            body = eb_json_parse("{\"projects\":[]}", 15, NULL, NULL);
            answer = eb_provision_client_call(client, "PATCH", path, g_steal_pointer(&body), 10000, &error);
        } else {
            answer = eb_provision_client_call(client, "DELETE", path, NULL, 10000, &error);
        }
        g_assert_no_error(error);
        g_assert_true(eb_setup_run(setup, &error));
        g_assert_no_error(error);
        g_assert_cmpint(find_row(setup, "reach")->result, ==, EB_SETUP_CHANGED);
        g_assert_nonnull(strstr(find_row(setup, "reach")->detail, "the old one is refused"));
        /* The refused one does not pile up. */
        g_assert_cmpuint(json_array_get_length(list_certificates(client, &after)), ==, 1);
    }
    eb_provision_client_free(client);
}

static void
test_open_credentials(void)
{
    g_autoptr(EbConfig) config = NULL;
    g_autoptr(EbSetup) setup = make_setup(FALSE, &config);
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(g_chmod(world.creds_file, 0644), ==, 0);
    g_assert_false(eb_setup_run(setup, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "provision.open-credentials", "chmod 600");
    g_assert_cmpint(find_row(setup, "credentials")->result, ==, EB_SETUP_FAILED);
    assert_no_secret(setup);
    g_assert_cmpint(g_chmod(world.creds_file, 0600), ==, 0);
}

/* What is handed over can be anything; each is answered before anything is changed, with the file, the line where there
 * is one, and no value. */
static void
test_inputs(void)
{
    static const struct {
        gboolean credentials;
        const char *text;
        gssize length; /* -1: a string */
        guint mode;
        const char *reason, *part;
    } CASES[] = {
        {TRUE, "ERRAND_PROVIDER_CREDENTIAL=sk-secret-value\n", -1, 0604, "provision.open-credentials", "chmod 600"},
        {TRUE, "ERRAND_PROVIDER_CREDENTIAL=sk-secret-value\n", -1, 0620, "provision.open-file", "mode 0620"},
        {TRUE, "# x\nERRAND_PROVIDER_CREDENTAIL=sk-secret-value\n", -1, 0600, "env-file.key",
         "line 2: ERRAND_PROVIDER_CREDENTAIL is no key of this file (did you mean ERRAND_PROVIDER_CREDENTIAL?)"},
        {TRUE, "ERRAND_CHAT_TOKEN=sk-secret-value\nERRAND_CHAT_TOKEN=\n", -1, 0600, "env-file.twice",
         "line 2: ERRAND_CHAT_TOKEN is assigned a second time"},
        {TRUE, "ERRAND_CHAT_TOKEN=\"sk-secret-value\n", -1, 0600, "env-file.quote", "line 1"},
        {TRUE, "sk-secret-value\n", -1, 0600, "env-file.line", "line 1 is not KEY=VALUE"},
        {TRUE, "A\0B=1\n", 6, 0600, "env-file.binary", "line 1 holds a NUL byte"},
        {TRUE, "E\0R\0R\0", 6, 0600, "env-file.binary", "save it as UTF-8"},
        {FALSE, "ERRAND_MODEL=test\n", -1, 0666, "provision.open-file", "chmod go-w"},
        {FALSE, "ERRAND_CHAT_TOKEN=sk-secret-value\n", -1, 0600, "env-file.key",
         "line 1: ERRAND_CHAT_TOKEN belongs into creds.env"},
        {TRUE, "ERRAND_MODEL=test\n", -1, 0600, "env-file.key", "line 1: ERRAND_MODEL belongs into errand-box.env"},
        {TRUE, "errand_chat_token=sk-secret-value\n", -1, 0600, "env-file.key", "did you mean ERRAND_CHAT_TOKEN?"},
        {FALSE, "ERRAND_EGRESS_ALLOW=http://x.example,*\n", -1, 0600, "settings.value", "a host, not a URL"},
        {FALSE, "ERRAND_EGRESS_ALLOW=*\n", -1, 0600, "settings.value", "there is no open mode"},
        {FALSE, "ERRAND_PROVIDER=openai\nERRAND_PROVIDER_BASE_URL=nowhere\n", -1, 0600, "settings.value", "not a URL"},
        {FALSE, "ERRAND_PROVIDER_KIND=magic\n", -1, 0600, "settings.provider", "anthropic, openai or gemini"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        const char *file = CASES[i].credentials ? world.creds_file : world.env_file;
        g_autoptr(EbConfig) config = NULL;
        g_autoptr(EbSetup) setup = NULL;
        g_autoptr(GError) error = NULL;
        g_autofree char *kept = NULL;
        gsize length = 0;

        g_assert_true(g_file_get_contents(file, &kept, &length, NULL));
        g_assert_true(g_file_set_contents(file, CASES[i].text, CASES[i].length, NULL));
        g_assert_cmpint(g_chmod(file, (int)CASES[i].mode), ==, 0);
        setup = make_setup(FALSE, &config);
        g_assert_false(eb_setup_run(setup, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, CASES[i].reason, CASES[i].part);
        g_assert_true(strstr(error->message, file) != NULL || g_str_has_prefix(CASES[i].reason, "settings"));
        g_assert_null(strstr(error->message, "sk-secret"));
        g_assert_cmpuint(eb_setup_get_rows(setup)->len, ==, 1);
        assert_no_secret(setup);
        g_assert_true(g_file_set_contents(file, kept, (gssize)length, NULL));
        g_chmod(file, 0600);
    }
}

/* The file itself is odd. */
static void
test_odd_files(void)
{
    g_autofree char *kept = g_strconcat(world.creds_file, ".kept", NULL);
    g_autofree char *large = g_strnfill(10 * 1024 * 1024, '#');

    for (guint i = 0; i < 5; i++) {
        static const char *const PARTS[] = {"symbolic link", "uid 65534", "longer than 1 MiB", "not a regular file",
                                            "No such file"};
        g_autoptr(EbConfig) config = NULL;
        g_autoptr(EbSetup) setup = NULL;
        g_autoptr(GError) error = NULL;

        g_assert_cmpint(g_rename(world.creds_file, kept), ==, 0);
        if (i == 0)
            g_assert_cmpint(symlink(kept, world.creds_file), ==, 0);
        else if (i == 1 || i == 2)
            g_assert_true(g_file_set_contents_full(world.creds_file, i == 1 ? "" : large, -1, G_FILE_SET_CONTENTS_NONE,
                                                   0600, NULL));
        else if (i == 3)
            g_assert_cmpint(mkfifo(world.creds_file, 0600), ==, 0);
        if (i == 1)
            g_assert_cmpint(chown(world.creds_file, 65534, 65534), ==, 0);
        setup = make_setup(FALSE, &config);
        g_assert_false(eb_setup_run(setup, &error));
        if (strstr(error->message, PARTS[i]) == NULL)
            g_error("\"%s\" does not say \"%s\"", error->message, PARTS[i]);
        g_unlink(world.creds_file);
        g_assert_cmpint(g_rename(kept, world.creds_file), ==, 0);
    }
}

/* Quotes, empty values, CRLF, a byte order mark and "export" are fine; what was read is said, without values. */
static void
test_good_inputs(void)
{
    g_autoptr(EbConfig) config = NULL;
    g_autoptr(EbSetup) setup = NULL;
    g_autoptr(GError) error = NULL;
    const EbSetupRow *row;

    g_assert_true(g_file_set_contents(world.creds_file,
                                      "\xef\xbb\xbf"
                                      "export ERRAND_PROVIDER_CREDENTIAL='sk-secret-value'\r\n"
                                      "ERRAND_GITHUB_TOKEN=\r\n",
                                      -1, NULL));
    g_chmod(world.creds_file, 0600);
    setup = make_setup(FALSE, &config);
    g_assert_true(eb_setup_run(setup, &error));
    g_assert_no_error(error);
    row = find_row(setup, "credentials");
    g_assert_nonnull(strstr(row->detail, "ERRAND_PROVIDER_CREDENTIAL"));
    g_assert_nonnull(strstr(row->detail, "ERRAND_GITHUB_TOKEN is empty"));
    assert_no_secret(setup);
}

static void
test_stop(void)
{
    g_autoptr(EbConfig) config = NULL;
    g_autoptr(EbSetup) setup = make_setup(FALSE, &config);
    g_autoptr(GError) error = NULL;
    g_autofree char *pid_file = g_build_filename(g_getenv("INCUS_DIR"), "incusd.pid", NULL);

    g_assert_true(eb_daemon_process_alive(pid_file));
    g_assert_true(eb_setup_stop_daemons(setup, &error));
    g_assert_no_error(error);
    g_assert_false(eb_daemon_process_alive(pid_file));
    /* Again: nothing to stop is fine. */
    g_assert_true(eb_setup_stop_daemons(setup, &error));
    g_assert_no_error(error);
}

static void
make_world(void)
{
    g_autofree char *text = NULL;
    g_autofree char *incus_dir = NULL;

    world.dir = eb_test_temp_dir("eb-setup");
    /* The account must get through to its own directories. */
    g_chmod(world.dir, 0755);
    world.state_dir = g_build_filename(world.dir, "s", NULL);
    world.config_file = g_build_filename(world.dir, "errand-box.toml", NULL);
    world.creds_file = g_build_filename(world.dir, "creds.env", NULL);
    world.env_file = g_build_filename(world.dir, "errand-box.env", NULL);
    incus_dir = g_build_filename(world.dir, "i", NULL);
    text = g_strdup_printf("[service]\nstate_dir = \"%s\"\nproject_root = \"%s/home/projects\"\n", world.state_dir,
                           world.state_dir);
    eb_test_write_file(world.config_file, text);
    eb_test_write_file(world.creds_file, "ERRAND_PROVIDER_CREDENTIAL=sk-secret-value\n");
    eb_test_write_file(world.env_file, "ERRAND_PROVIDER=anthropic\nERRAND_MODEL=test\n");
    g_chmod(world.creds_file, 0600);
    g_setenv("INCUS_DIR", incus_dir, TRUE);
    g_setenv("ERRAND_BOX_POOL_SIZE", "2GiB", TRUE);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    if (geteuid() != 0 || access("/usr/libexec/incus/incusd", X_OK) < 0) {
        g_print("1..0 # SKIP needs root and incusd\n");
        return 77;
    }
    make_world();
    g_test_add_func("/setup/plan", test_plan);
    g_test_add_func("/setup/run", test_run);
    g_test_add_func("/setup/again", test_again);
    g_test_add_func("/setup/repair", test_repair);
    g_test_add_func("/setup/refused-account", test_refused_account);
    g_test_add_func("/setup/open-credentials", test_open_credentials);
    g_test_add_func("/setup/inputs", test_inputs);
    g_test_add_func("/setup/odd-files", test_odd_files);
    g_test_add_func("/setup/good-inputs", test_good_inputs);
    g_test_add_func("/setup/stop", test_stop);
    return g_test_run();
}
