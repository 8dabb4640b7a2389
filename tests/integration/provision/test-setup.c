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
    g_test_add_func("/setup/open-credentials", test_open_credentials);
    g_test_add_func("/setup/stop", test_stop);
    return g_test_run();
}
