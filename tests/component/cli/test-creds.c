/* SPDX-License-Identifier: MIT */
/* Sealing, expiry and listing of credentials as an operator does it; no value of one is ever shown. */
#include "tests/component/cli/eb-test-program.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

typedef struct {
    char *dir;
    char *config;
    char *env_file;
    char *sealed;
    char *key;
} Fixture;

static void
write_env(Fixture *f, const char *text)
{
    eb_test_write_file(f->env_file, text);
    g_assert_cmpint(chmod(f->env_file, 0600), ==, 0);
}

static void
set_up(Fixture *f, gconstpointer data)
{
    f->dir = eb_test_temp_dir("seal");
    f->config = g_build_filename(f->dir, "eb.toml", NULL);
    f->env_file = g_build_filename(f->dir, "state", "creds.env", NULL);
    f->sealed = g_build_filename(f->dir, "state", "creds.sealed", NULL);
    f->key = g_build_filename(f->dir, "seal.key", NULL);
    g_autofree char *state = g_build_filename(f->dir, "state", NULL);
    g_autofree char *text = g_strdup_printf(
        "[provider.main]\nkind = \"anthropic\"\nkey = \"cred:model-key\"\n"
        "base_url = \"https://203.0.113.7\"\n[service]\nstate_dir = \"%s\"\nproject_root = \"%s/projects\"\n"
        "[plugin.credentials]\nfile = \"%s\"\nsealed_key_file = \"%s\"\n",
        state, f->dir, f->env_file, f->key);
    g_assert_cmpint(mkdir(state, 0700), ==, 0);
    eb_test_write_file(f->config, text);
    g_assert_cmpint(chmod(f->config, 0600), ==, 0);
    write_env(f, "# mine\nERRAND_PROVIDER_CREDENTIAL=hunter-key\nERRAND_CHAT_TOKEN=hunter-token\n");
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
    g_assert_nonnull(strstr(seal.err, "was made, "));
    g_assert_nonnull(strstr(seal.err, "keep a copy"));
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
    run(f, NULL, "creds list", 2, "is not there (put it back");
    /* Where the key only is not there just now, a new one would be in its place. */
    run(f, NULL, "creds seal", 2, "is not there (put it back");
    g_assert_false(g_file_test(f->key, G_FILE_TEST_EXISTS));
    run(f, NULL, line, 0, "opens with the present key alone");
    run(f, NULL, "creds list", 0, "model-key");
    g_autofree char *before = contents(old);
    g_autofree char *after = contents(f->key);
    g_assert_cmpstr(before, !=, after);
    /* The old one opens it no more. */
    g_assert_cmpint(rename(old, f->key), ==, 0);
    run(f, NULL, "creds list", 2, "another key");
    run(f, NULL, "creds seal", 2, "another key (put the right one back; where this is to be the one from now on");
    run(f, NULL, "creds seal --old-key /nonexistent", 2, "No such file");
    g_assert_cmpint(rename(f->sealed, old), ==, 0);
    run(f, NULL, line, 2, "leave --old-key out");
}

/* Lines that a reader takes for assignments are those that a change replaces, however they are written. */
static void
test_written_by_people(Fixture *f, gconstpointer data)
{
    static const char text[] =
        "\xef\xbb\xbf export ERRAND_CHAT_TOKEN=hunter-old\r\n  ERRAND_PROVIDER_CREDENTIAL = 'hunter'\n"
        "export\tERRAND_GITHUB_TOKEN=\"hunter-gh\"\n# ERRAND_CHAT_TOKEN=mine";

    write_env(f, text);
    run(f, "hunter-new", "creds set chat-token --store env-file", 0, "kept");
    run(f, NULL, "creds list", 0, "chat-token");
    run(f, NULL, "creds remove github-token", 0, "github-token is removed");
    g_autofree char *kept = contents(f->env_file);
    g_assert_cmpstr(
        kept, ==, "  ERRAND_PROVIDER_CREDENTIAL = 'hunter'\n# ERRAND_CHAT_TOKEN=mine\nERRAND_CHAT_TOKEN=hunter-new\n");
    write_env(f, text);
    run(f, NULL, "creds seal", 0, "github-token: moved");
    g_autofree char *left = contents(f->env_file);
    g_assert_cmpstr(left, ==, "# ERRAND_CHAT_TOKEN=mine\n");
}

/* A change that was killed leaves a file that holds values and that nobody looks for. */
static void
test_killed_change(Fixture *f, gconstpointer data)
{
    g_autofree char *rest = g_build_filename(f->dir, "state", ".errand-creds.0badcafe", NULL);

    eb_test_write_file(rest, "ERRAND_CHAT_TOKEN=hunter-rest\n");
    run(f, NULL, "creds list", 0, "chat-token");
    run(f, NULL, "creds seal", 0, "moved");
    g_assert_false(g_file_test(rest, G_FILE_TEST_EXISTS));
    eb_test_write_file(rest, "ERRAND_CHAT_TOKEN=hunter-rest\n");
    run(f, "hunter-new", "creds set chat-token --store env-file", 0, NULL);
    g_assert_false(g_file_test(rest, G_FILE_TEST_EXISTS));
}

static void
test_stores(Fixture *f, gconstpointer data)
{
    run(f, NULL, "creds list --store nosuch", 2, "no credential store \"nosuch\"");
    run(f, NULL, "creds remove chat-token --store nosuch", 2, "no credential store \"nosuch\"");
    run(f, "hunter", "creds set chat-token --store nosuch", 2, "systemd, sealed, env-file");
    run(f, NULL, "creds remove nosuch", 2, "there is no credential \"nosuch\" to remove");
    run(f, NULL, "creds remove chat-token --store sealed", 2, "there is no credential \"chat-token\" in sealed");
    run(f, "hunter", "creds set chat-token --store systemd", 2, "store systemd holds cannot be changed by this");
    run(f, NULL, "creds list --expires 30d", 2, "creds list has no --expires");
    run(f, NULL, "creds remove chat-token --replace", 2, "creds remove has no --replace");

    g_autofree char *state = g_path_get_dirname(f->sealed), *aside = g_strconcat(state, ".aside", NULL);
    g_assert_cmpint(rename(state, aside), ==, 0);
    run(f, "hunter", "creds set chat-token --store sealed", 2, "have it made (errand-box setup)");
    g_assert_cmpint(rename(aside, state), ==, 0);
    run(f, "hunter", "creds set ERRAND_CHAT_TOKEN --store env-file", 2, "the name is chat-token");
    run(f, "hunter", "creds set Chat_Token --store env-file", 2, "a name is lower-case letters");
    g_autofree char *config = contents(f->config);
    g_autofree char *order = g_strconcat(config, "[credentials]\norder = [\"sealed\", \"env-fil\"]\n", NULL);
    eb_test_write_file(f->config, order);
    run(f, NULL, "creds list", 0, "order names \"env-fil\", and no store of that name is loaded");
    run(f, NULL, "creds list", 0, "no credential is kept here");
    /* What is sealed would be written over what opens it. */
    g_autofree char *one = g_strdup_printf("%ssealed_file = \"%s\"\n", config, f->key);
    eb_test_write_file(f->config, one);
    run(f, NULL, "creds seal", 2, "sealed_file and sealed_key_file are one file");
}

/* What does not count, although it is kept, is said: by the list, and to whoever has just set it. */
static void
test_not_used(Fixture *f, gconstpointer data)
{
    run(f, NULL, "creds seal", 0, NULL);
    run(f, "hunter-new", "creds set model-key --store env-file", 0, "new value of model-key is not used: sealed");
    g_assert_cmpint(chmod(f->key, 0644), ==, 0);
    run(f, NULL, "creds list", 2, "not used: sealed, which is asked first, cannot be read");
    run(f, NULL, "creds list --json", 2, "\"used\":false");
    run(f, NULL, "creds list --json", 2, "\"problems\":[{\"store\":\"sealed\",\"reason\":\"sealed.no-key\"");
    run(f, "hunter-new", "creds set model-key --store env-file", 0,
        "as long as sealed, which is asked first, cannot be");
}

static void
test_json(Fixture *f, gconstpointer data)
{
    g_autofree char *import = g_strconcat("--json creds import ", f->env_file, NULL);

    run(f, "hunter", "--json creds set acme --store env-file", 0, "{\"name\":\"acme\",\"store\":\"env-file\"}\n");
    run(f, NULL, "--json creds remove acme", 0, "{\"name\":\"acme\",\"store\":\"env-file\"}\n");
    run(f, NULL, "creds seal", 0, NULL);
    write_env(f, "ERRAND_CHAT_TOKEN=hunter\nERRAND_TYPO=hunter\n");
    run(f, NULL, import, 2, "{\"kept\":[{\"name\":\"chat-token\",\"store\":\"sealed\"}]}\n");
    run(f, NULL, import, 2, "of which a part is kept: line 2: ERRAND_TYPO");
}

static void
test_doubts(Fixture *f, gconstpointer data)
{
    run(f, "hunter ", "creds set acme --store env-file", 0, "ends with a blank");
    run(f, "\"hunter\"", "creds set acme --store env-file", 0, "quotes around it");
    run(f, "hunter\nhunter", "creds set acme --store env-file", 2, "several lines");
    run(f, "", "creds set acme --store env-file", 2, "empty");
    g_assert_cmpint(chmod(f->env_file, 0644), ==, 0);
    g_autofree char *line = g_strconcat("creds set acme --file ", f->env_file, NULL);
    run(f, NULL, line, 2, "others can read or change");
}

/* Ctrl-C while a value is typed: the next who uses the terminal sees what they type. */
static void
test_interrupted_typing(Fixture *f, gconstpointer data)
{
    g_autofree char *program = eb_test_program("errand-box");
    struct termios now;
    char text[256];
    gsize length = 0;
    int status, terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    g_assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    int held = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    pid_t child = fork();
    if (child == 0) {
        setsid();
        int slave = open(ptsname(terminal), O_RDWR);
        dup2(slave, 0);
        dup2(slave, 1);
        dup2(slave, 2);
        execl(program, program, "--config", f->config, "creds", "set", "acme", "--store", "env-file", NULL);
        _exit(127);
    }
    while (memchr(text, ':', length) == NULL && length < sizeof text) {
        ssize_t got = read(terminal, text + length, sizeof text - length);
        g_assert_cmpint(got, >, 0);
        length += (gsize)got;
    }
    do
        g_assert_cmpint(tcgetattr(held, &now), ==, 0);
    while ((now.c_lflag & ECHO) != 0);
    g_assert_cmpint(write(terminal, "hun\x03", 4), ==, 4);
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    g_assert_cmpint(tcgetattr(held, &now), ==, 0);
    g_assert_true((now.c_lflag & ECHO) != 0);
    close(held);
    close(terminal);
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

/* The doctor says where keys lie and how far they are protected, what ends, and which provider has none. */
static void
test_doctor(Fixture *f, gconstpointer data)
{
    run(f, NULL, "doctor --check E-30", 0, "model-key is in plain text in ");
    /* A configuration that is named as people type it is found by the program that the doctor runs, too. */
    g_assert_cmpint(chdir(f->dir), ==, 0);
    run(f, NULL, "--config eb.toml doctor --check E-30", 0, "model-key is in plain text in ");
    run(f, NULL, "creds seal", 0, NULL);
    run(f, NULL, "doctor --check E-30", 0, "model-key is encrypted in ");
    run(f, NULL, "doctor --check E-85", 0, "of 2 in the stores 0 end");
    run(f, "hunter-new", "creds set model-key --expires 30d", 0, NULL);
    run(f, NULL, "doctor --check E-85", 0, "of 2 in the stores 1 end, and none within a week");
    run(f, "hunter-new", "creds set model-key --expires 2d", 0, NULL);
    run(f, NULL, "doctor --check E-85", 0, "model-key expires at 2");
    run(f, NULL, "creds remove model-key", 0, NULL);
    run(f, NULL, "doctor --check E-30", 1, "in no store: model-key");
    run(f, NULL, "doctor --check E-82", 1, "main: no store has its key model-key");
    /* What is sealed under a key that is not here is not known to be missing. */
    run(f, "hunter-new", "creds set model-key", 0, "kept in sealed");
    eb_test_write_file(f->key, "another key, of more than two and thirty bytes\n");
    g_assert_cmpint(chmod(f->key, 0600), ==, 0);
    run(f, NULL, "doctor --check E-30", 1, "sealed with another key");
    g_assert_cmpint(remove(f->key), ==, 0);
    run(f, NULL, "doctor --check E-30", 0, "skip");
    run(f, NULL, "doctor --check E-85", 0, "it cannot be known here");
    run(f, NULL, "doctor --check E-83", 0, "the service alone can tell");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(name, func) g_test_add("/creds/" name, Fixture, NULL, set_up, func, tear_down)
    ADD("seal", test_seal);
    ADD("doctor", test_doctor);
    ADD("differs", test_differs);
    ADD("new-key", test_new_key);
    ADD("damaged", test_damaged);
    ADD("written-by-people", test_written_by_people);
    ADD("killed-change", test_killed_change);
    ADD("stores", test_stores);
    ADD("not-used", test_not_used);
    ADD("json", test_json);
    ADD("doubts", test_doubts);
    ADD("interrupted-typing", test_interrupted_typing);
    return g_test_run();
}
