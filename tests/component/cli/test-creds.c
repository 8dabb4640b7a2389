/* SPDX-License-Identifier: MIT */
/* Sealing, expiry and listing of credentials as an operator does it; no value of one is ever shown. */
#include "tests/component/cli/eb-test-program.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    char *dir;
    char *config;
    char *env_file;
    char *sealed;
    char *key;
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    f->dir = eb_test_temp_dir("seal");
    f->config = g_build_filename(f->dir, "eb.toml", NULL);
    f->env_file = g_build_filename(f->dir, "state", "creds.env", NULL);
    f->sealed = g_build_filename(f->dir, "state", "creds.sealed", NULL);
    f->key = g_build_filename(f->dir, "seal.key", NULL);
    g_autofree char *state = g_build_filename(f->dir, "state", NULL);
    g_autofree char *text = g_strdup_printf("[service]\nstate_dir = \"%s\"\nproject_root = \"%s/projects\"\n"
                                            "[plugin.credentials]\nfile = \"%s\"\nsealed_key_file = \"%s\"\n",
                                            state, f->dir, f->env_file, f->key);
    g_assert_cmpint(mkdir(state, 0700), ==, 0);
    eb_test_write_file(f->config, text);
    g_assert_cmpint(chmod(f->config, 0600), ==, 0);
    eb_test_write_file(f->env_file, "# mine\nERRAND_PROVIDER_CREDENTIAL=hunter-key\nERRAND_CHAT_TOKEN=hunter-token\n");
    g_assert_cmpint(chmod(f->env_file, 0600), ==, 0);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    g_free(f->dir);
    g_free(f->config);
    g_free(f->env_file);
    g_free(f->sealed);
    g_free(f->key);
}

static void
assert_run(const EbTestRun *run, int code, const char *text)
{
    g_test_message("%s%s", run->out, run->err);
    g_assert_cmpint(run->code, ==, code);
    g_assert_null(strstr(run->out, "hunter"));
    g_assert_null(strstr(run->err, "hunter"));
    g_assert_true(text == NULL || strstr(run->out, text) != NULL || strstr(run->err, text) != NULL);
}

static void
run(Fixture *f, const char *input, const char *line, int code, const char *text)
{
    g_auto(EbTestRun) result = eb_test_run_program(f->config, input, line);
    assert_run(&result, code, text);
}

static char *
contents(const char *path)
{
    char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

static void
test_seal(Fixture *f, gconstpointer data)
{
    g_auto(EbTestRun) seal = eb_test_run_program(f->config, NULL, "creds seal");

    assert_run(&seal, 0, "model-key: moved from env-file");
    g_assert_nonnull(strstr(seal.out, "snapshots"));
    g_autofree char *plain = contents(f->env_file);
    g_assert_cmpstr(plain, ==, "# mine\n");
    g_assert_true(g_file_test(f->sealed, G_FILE_TEST_EXISTS));
    g_assert_true(g_file_test(f->key, G_FILE_TEST_EXISTS));
    run(f, NULL, "creds list", 0, "sealed");
    run(f, NULL, "creds seal", 0, "nothing is left");
    /* From now on a value goes there by itself. */
    run(f, "hunter-new", "creds set model-key --expires 30d", 0, "kept in sealed");
    run(f, NULL, "creds list --json", 0, "\"expired\":false");
    run(f, NULL, "creds list", 0, ", expires in ");
    run(f, "hunter-new", "creds set model-key --expires yesterday", 2, "no time to come");
    run(f, "hunter-new", "creds set model-key --expires 2020-01-01", 2, "no time to come");
    run(f, "hunter-new", "creds set model-key --store env-file --expires 30d", 2, NULL);
}

static void
test_differs(Fixture *f, gconstpointer data)
{
    run(f, NULL, "creds seal", 0, NULL);
    run(f, "hunter-other", "creds set model-key --store env-file", 0, NULL);
    run(f, NULL, "creds list", 0, "not used: an earlier store has it");
    run(f, NULL, "creds seal", 1, "--replace");
    g_autofree char *kept = contents(f->env_file);
    g_assert_nonnull(strstr(kept, "hunter-other")); /* neither value is lost */
    run(f, NULL, "creds seal --replace", 0, "moved");
    g_autofree char *gone = contents(f->env_file);
    g_assert_null(strstr(gone, "hunter-other"));
}

static void
test_new_key(Fixture *f, gconstpointer data)
{
    g_autofree char *old = g_strconcat(f->key, ".old", NULL);
    g_autofree char *line = g_strconcat("creds seal --old-key ", old, NULL);

    run(f, NULL, "creds seal", 0, NULL);
    g_assert_cmpint(rename(f->key, old), ==, 0);
    run(f, NULL, "creds list", 2, "is not there (errand-box creds seal)");
    run(f, NULL, line, 0, "nothing is left");
    run(f, NULL, "creds list", 0, "model-key");
    g_autofree char *before = contents(old);
    g_autofree char *after = contents(f->key);
    g_assert_cmpstr(before, !=, after);
    /* The old one opens it no more. */
    g_assert_cmpint(rename(old, f->key), ==, 0);
    run(f, NULL, "creds list", 2, "another key");
}

static void
test_damaged(Fixture *f, gconstpointer data)
{
    run(f, NULL, "creds seal", 0, NULL);
    g_autofree char *bytes = NULL;
    gsize length;
    g_assert_true(g_file_get_contents(f->sealed, &bytes, &length, NULL));
    g_assert_true(
        g_file_set_contents_full(f->sealed, bytes, (gssize)length / 2, G_FILE_SET_CONTENTS_CONSISTENT, 0600, NULL));
    run(f, NULL, "creds list", 2, "cut off");
    run(f, "hunter-new", "creds set model-key", 2, "cut off"); /* never over what may be mended */
    g_assert_cmpint(chmod(f->sealed, 0644), ==, 0);
    run(f, NULL, "creds list", 2, "chmod 600");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(name, func) g_test_add("/creds/" name, Fixture, NULL, set_up, func, tear_down)
    ADD("seal", test_seal);
    ADD("differs", test_differs);
    ADD("new-key", test_new_key);
    ADD("damaged", test_damaged);
    return g_test_run();
}
