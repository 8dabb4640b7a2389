/* SPDX-License-Identifier: MIT */
/* init, launch and relay in real guests, started through the container backend as the service does. */
#include "incus-test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LAUNCH "/opt/errand/run/launch"
#define IMAGE "test/launch"
#define SECRET "nonce-5b1f0c"

typedef struct {
    char *dir; /* of the host: ws, state, run */
    EbContainerSpec *spec;
} Guest;

static void
copy_program(const char *from, const char *dir, const char *name)
{
    g_autofree char *to = g_build_filename(dir, name, NULL);
    g_autofree char *bytes = NULL;
    gsize length = 0;

    g_assert_true(g_file_get_contents(from, &bytes, &length, NULL));
    g_assert_true(g_file_set_contents_full(to, bytes, (gssize)length, G_FILE_SET_CONTENTS_NONE, 0755, NULL));
}

static char *
make_dir(Guest *guest, const char *name, mode_t mode)
{
    char *path = g_build_filename(guest->dir, name, NULL);

    g_assert_cmpint(mkdir(path, mode), ==, 0);
    g_assert_cmpint(chown(path, incus_test.incusd->uid, incus_test.incusd->uid), ==, 0);
    return path;
}

static void
set_up(Guest *guest, gconstpointer pids)
{
    g_autofree char *name = g_strdup_printf("launch-%d-%u", (int)getpid(), g_test_rand_int() % 100000u);
    guest->dir = g_build_filename(incus_test.incusd->sessions, name, NULL);
    g_assert_cmpint(mkdir(guest->dir, 0755), ==, 0);
    g_autofree char *ws = make_dir(guest, "ws", 0700);
    g_autofree char *state = make_dir(guest, "state", 0700);
    g_autofree char *run = make_dir(guest, "run", 0755);

    copy_program(EB_TEST_LAUNCH, run, "launch");
    copy_program(EB_TEST_RELAY, run, "relay");
    guest->spec = incus_test_spec("launch");
    g_free(guest->spec->image);
    guest->spec->image = g_strdup(IMAGE);
    guest->spec->agent_uid = guest->spec->agent_gid = incus_test.incusd->uid;
    if (pids != NULL)
        guest->spec->pids = GPOINTER_TO_UINT(pids);
    eb_container_spec_add_directory(guest->spec, "ws", ws, "/workspace", FALSE);
    eb_container_spec_add_directory(guest->spec, "state", state, "/state", FALSE);
    eb_container_spec_add_directory(guest->spec, "run", run, "/opt/errand/run", TRUE);
    incus_test_launch(incus_test.backend, guest->spec);
}

static void
tear_down(Guest *guest, gconstpointer data)
{
    incus_test_destroy(incus_test.backend, guest->spec->name);
    eb_test_remove_tree(guest->dir);
    eb_container_spec_free(guest->spec);
    g_free(guest->dir);
}

static GString *
block_new(void)
{
    GString *records = g_string_new(NULL);

    g_string_append_len(records, "EHOME=/state/home\0EPATH=/usr/bin:/bin\0", 38);
    return records;
}

/* Starts the launcher and gives it the block, and nothing behind it. */
static EbExec *
start(Guest *guest, GString *records, const char *const *options, const char *command)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autoptr(GString) own = records == NULL ? block_new() : NULL;
    g_autoptr(GError) error = NULL;
    GString *block = records != NULL ? records : own;

    g_ptr_array_add(argv, (gpointer)LAUNCH);
    for (; options != NULL && *options != NULL; options++)
        g_ptr_array_add(argv, (gpointer)*options);
    g_ptr_array_add(argv, (gpointer) "--home");
    g_ptr_array_add(argv, (gpointer) "/state/home");
    g_ptr_array_add(argv, (gpointer) "--");
    g_ptr_array_add(argv, (gpointer) "sh");
    g_ptr_array_add(argv, (gpointer) "-c");
    g_ptr_array_add(argv, (gpointer)command);
    g_ptr_array_add(argv, NULL);
    EbExec *exec = incus_test_exec(incus_test.backend, guest->spec->name, 0, (const char *const *)argv->pdata);
    g_autofree char *header = g_strdup_printf("ERRAND1 %" G_GSIZE_FORMAT "\n", block->len);
    GOutputStream *in = eb_exec_get_stdin(exec);
    g_assert_true(g_output_stream_write_all(in, header, strlen(header), NULL, NULL, &error));
    g_assert_true(g_output_stream_write_all(in, block->str, block->len, NULL, NULL, &error));
    return exec;
}

static int
finish(EbExec *exec, char **out, char **err)
{
    g_autoptr(GError) error = NULL;

    g_output_stream_close(eb_exec_get_stdin(exec), NULL, NULL);
    GString *text = incus_test_read_all(eb_exec_get_stdout(exec));
    GString *errors = incus_test_read_all(eb_exec_get_stderr(exec));
    int code = incus_test_wait(exec, &error);
    g_assert_no_error(error);
    if (out != NULL)
        *out = g_string_free(text, FALSE);
    else
        g_string_free(text, TRUE);
    if (err != NULL)
        *err = g_string_free(errors, FALSE);
    else
        g_string_free(errors, TRUE);
    return code;
}

static int
run(Guest *guest, GString *records, const char *const *options, const char *command, char **out, char **err)
{
    g_autoptr(EbExec) exec = start(guest, records, options, command);
    return finish(exec, out, err);
}

typedef struct {
    gssize got;
    gboolean done;
} OneRead;

static void
on_one_read(GObject *source, GAsyncResult *result, gpointer user_data)
{
    OneRead *read = user_data;

    read->got = g_input_stream_read_finish(G_INPUT_STREAM(source), result, NULL);
    read->done = TRUE;
}

/* Reads until @text came: the agent is at that point. Byte by byte, so that what follows stays in the stream. */
static void
await_text(EbExec *exec, const char *text)
{
    g_autoptr(GString) seen = g_string_new(NULL);
    char byte;

    while (strstr(seen->str, text) == NULL) {
        OneRead read = {0};
        g_input_stream_read_async(eb_exec_get_stdout(exec), &byte, 1, G_PRIORITY_DEFAULT, NULL, on_one_read, &read);
        eb_test_run_until_true(&read.done);
        g_assert_cmpint(read.got, ==, 1);
        g_string_append_c(seen, byte);
    }
}

/* What runs as the agent's uid, as guest root sees it. */
static char *
left_behind(Guest *guest)
{
    g_auto(IncusRun) seen = incus_test_shell(incus_test.backend, guest->spec->name, 0, NULL,
                                             "for p in /proc/[0-9]*; do grep -q '^Uid:[[:space:]]*1000' $p/status "
                                             "2>/dev/null && grep -q '^State:[[:space:]]*[^Z]' $p/status && "
                                             "tr '\\0' ' ' <$p/cmdline && echo; done");
    return g_strdup(seen.out->str);
}

static void
test_environment(Guest *guest, gconstpointer data)
{
    g_autofree char *out = NULL;
    g_autofree char *operations = NULL;
    g_autoptr(GString) records = block_new();
    static const char *const options[] = {"--cwd", "/workspace", NULL};

    g_string_append_len(records, "ESECRET=" SECRET "\0", sizeof("ESECRET=" SECRET));
    g_autoptr(EbExec) exec = start(guest, records, options,
                                   "echo up; read line; echo \"$line\"; pwd; id -u; env | grep -v -E "
                                   "'^(SHLVL|PWD|OLDPWD|_)='; grep NoNewPrivs /proc/self/status");
    await_text(exec, "up\n");
    /* Neither the host's process list nor the daemon's operations show it while the agent runs. */
    g_autoptr(GDir) proc = g_dir_open("/proc", 0, NULL);
    for (const char *name = g_dir_read_name(proc); name != NULL; name = g_dir_read_name(proc)) {
        g_autofree char *path = g_build_filename("/proc", name, "cmdline", NULL);
        g_autofree char *line = NULL;
        gsize length = 0;
        if (g_ascii_isdigit(name[0]) && g_file_get_contents(path, &line, &length, NULL))
            g_assert_null(g_strstr_len(line, (gssize)length, SECRET));
    }
    operations = eb_test_incusd_cli(incus_test.incusd, "query", "/1.0/operations?recursion=1&all-projects=true", NULL);
    g_assert_nonnull(strstr(operations, "launch"));
    g_assert_null(strstr(operations, SECRET));
    g_assert_true(g_output_stream_write_all(eb_exec_get_stdin(exec), "first line\n", 11, NULL, NULL, NULL));
    g_assert_cmpint(finish(exec, &out, NULL), ==, 0);
    g_assert_true(g_str_has_prefix(out, "first line\n/workspace\n1000\n"));
    g_assert_nonnull(strstr(out, "SECRET=" SECRET "\n"));
    g_assert_nonnull(strstr(out, "HOME=/state/home\n"));
    g_assert_null(strstr(out, "LANG="));
    g_assert_null(strstr(out, "TERM="));
    g_assert_nonnull(strstr(out, "NoNewPrivs:\t1"));
}

static void
test_namespace(Guest *guest, gconstpointer data)
{
    g_autofree char *out = NULL;

    g_assert_cmpint(run(guest, NULL, NULL,
                        "ps -o pid,args | grep -c '[s]bin/init'; ip -o link | wc -l; ip -o addr | grep -c 'inet 127'; "
                        "head -1 /proc/meminfo; cat /proc/self/status | grep CapEff; kill -9 1; echo alive",
                        &out, NULL),
                    ==, 0);
    g_auto(GStrv) lines = g_strsplit(out, "\n", -1);
    g_assert_cmpstr(lines[0], ==, "0"); /* the guest's init is not to be seen */
    g_assert_cmpstr(lines[1], ==, "1"); /* one network device */
    g_assert_cmpstr(lines[2], ==, "1"); /* lo, up */
    g_assert_true(g_str_has_prefix(lines[3], "MemTotal:"));
    g_assert_nonnull(strstr(lines[4], "0000000000000000"));
    g_assert_cmpstr(lines[5], ==, "alive");
}

static void
test_files(Guest *guest, gconstpointer data)
{
    g_autofree char *out = NULL;
    g_autofree char *err = NULL;
    g_autoptr(GString) records = block_new();

    static const char placed[] = "F.conf/deep/a\0"
                                 "600\0"
                                 "5\0"
                                 "hello"
                                 "Frun.sh\0"
                                 "755\0"
                                 "2\0"
                                 "#!";
    g_string_append_len(records, placed, sizeof placed - 1);
    g_assert_cmpint(run(guest, records, NULL,
                        "cd && stat -c '%a %u %n' .conf .conf/deep/a run.sh; cat .conf/deep/a; ls -A | grep -c errand-",
                        &out, NULL),
                    ==, 1);
    g_assert_cmpstr(out, ==, "700 1000 .conf\n600 1000 .conf/deep/a\n755 1000 run.sh\nhello0\n");

    /* A link where the file goes is replaced; a link on the way is refused; nothing is written through either. */
    g_clear_pointer(&out, g_free);
    g_assert_cmpint(run(guest, NULL, NULL,
                        "echo mine >/workspace/target; ln -sf /workspace/target ~/run.sh; rm -rf ~/.conf", NULL, NULL),
                    ==, 0);
    g_assert_cmpint(run(guest, records, NULL, "cat /workspace/target; test -L ~/run.sh || echo replaced", &out, NULL),
                    ==, 0);
    g_assert_cmpstr(out, ==, "mine\nreplaced\n");
    g_assert_cmpint(run(guest, NULL, NULL, "rm -rf ~/.conf; ln -s /workspace ~/.conf", NULL, NULL), ==, 0);
    g_assert_cmpint(run(guest, records, NULL, "echo never", NULL, &err), ==, 125);
    g_assert_nonnull(strstr(err, ".conf/deep/a"));
    g_assert_cmpint(run(guest, NULL, NULL,
                        "rm ~/.conf; test ! -e /workspace/deep && mv ~ /state/real && ln -s real /state/home", NULL,
                        NULL),
                    ==, 0);
    g_clear_pointer(&err, g_free);
    g_assert_cmpint(run(guest, NULL, NULL, "echo never", NULL, &err), ==, 125);
    g_assert_nonnull(strstr(err, "HOME /state/home"));
}

static void
test_exit_codes(Guest *guest, gconstpointer data)
{
    static const struct {
        const char *command;
        int code;
    } cases[] = {{"exit 0", 0},     {"exit 7", 7},       {"exit 125", 125},     {"exit 126", 125},
                 {"exit 127", 125}, {"kill -9 $$", 137}, {"kill -TERM $$", 143}};

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpint(run(guest, NULL, NULL, cases[i].command, NULL, NULL), ==, cases[i].code);
}

static int
run_raw(Guest *guest, const char *input, const char *command, char **err)
{
    g_auto(IncusRun) done = incus_test_shell(incus_test.backend, guest->spec->name, 0, input, command);
    *err = g_strdup(done.err->str);
    return done.code;
}

static void
test_refusals(Guest *guest, gconstpointer data)
{
    static const struct {
        const char *input, *command, *says;
    } cases[] = {
        {"", LAUNCH " -- sh", "input ended"},
        {"{\"jsonrpc\":\"2.0\"}\n", LAUNCH " -- sh", "ERRAND1"},
        {"ERRAND1 100\nE", LAUNCH " -- sh", "input ended"},
        {"ERRAND1 3\nEAB", LAUNCH " -- sh", "malformed"},
        {"ERRAND1 0\n", LAUNCH " -- no-such-agent", "no-such-agent"},
        {"ERRAND1 0\n", LAUNCH " --cwd /none -- sh", "/none"},
        {"ERRAND1 0\n", LAUNCH " --bogus 1 -- sh", "unknown option"},
        {"ERRAND1 0\n", LAUNCH " -- /bin", "/bin"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *err = NULL;
        g_assert_cmpint(run_raw(guest, cases[i].input, cases[i].command, &err), ==, 125);
        if (strstr(err, cases[i].says) == NULL)
            g_error("%s: %s", cases[i].command, err);
    }
    /* A program that the agent has planted in a directory of PATH is not taken. */
    g_autofree char *err = NULL;
    g_autoptr(GString) records = g_string_new(NULL);
    g_assert_cmpint(run(guest, NULL, NULL,
                        "mkdir ~/bin; printf '#!/bin/sh\\necho planted\\n' >~/bin/sh; chmod 755 ~/bin/sh", NULL, NULL),
                    ==, 0);
    g_autofree char *out = NULL;
    g_string_append_len(records, "EHOME=/state/home\0EPATH=/state/home/bin:/bin\0", 45);
    g_assert_cmpint(run(guest, records, NULL, "echo real", &out, NULL), ==, 0);
    g_assert_cmpstr(out, ==, "real\n");
}

static void
test_tmpfs(Guest *guest, gconstpointer data)
{
    static const char *const options[] = {"--tmp", "8388608", "--shm", "4194304", NULL};
    g_autofree char *out = NULL;

    g_assert_cmpint(run(guest, NULL, options,
                        "for d in /tmp /dev/shm; do stat -c %a $d; dd if=/dev/zero of=$d/x bs=1M count=20 2>/dev/null; "
                        "stat -c %s $d/x; rm $d/x; done; touch /tmp/kept",
                        &out, NULL),
                    ==, 0);
    g_assert_cmpstr(out, ==, "1777\n8388608\n1777\n4194304\n");
    g_clear_pointer(&out, g_free);
    /* A second launch finds it done. */
    g_assert_cmpint(run(guest, NULL, options, "ls /tmp; grep -c ' /tmp ' /proc/self/mountinfo", &out, NULL), ==, 0);
    g_assert_cmpstr(out, ==, "kept\n1\n");
}

#define STUBBORN "sleep 1001 & setsid sleep 1002 & (trap '' TERM INT HUP; setsid sleep 1003) & sleep 0.3; echo up; "

static void
test_ends(Guest *guest, gconstpointer data)
{
    static const struct {
        const char *command;
        int signal; /* 0: end of input, -1: the exec is dropped */
        int code;
    } cases[] = {{STUBBORN "cat >/dev/null; exit 3", 0, 3},
                 {STUBBORN "cat", SIGTERM, 143},
                 {STUBBORN "trap 'exit 9' TERM; while :; do sleep 0.1; done", SIGINT, 9},
                 {STUBBORN "cat", -1, 137}};

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(EbExec) exec = start(guest, NULL, NULL, cases[i].command);
        g_autoptr(GError) error = NULL;
        await_text(exec, "up\n");
        g_autofree char *before = left_behind(guest);
        g_assert_nonnull(strstr(before, "sleep 1003"));
        if (cases[i].signal > 0)
            g_assert_true(eb_exec_send_signal(exec, cases[i].signal, &error));
        g_assert_no_error(error);
        if (cases[i].signal < 0)
            g_clear_object(&exec);
        else if (cases[i].signal == 0)
            g_assert_cmpint(finish(exec, NULL, NULL), ==, cases[i].code);
        else
            g_assert_cmpint(incus_test_wait(exec, NULL), ==, cases[i].code);
        g_autofree char *after = left_behind(guest);
        for (guint tries = 0; after[0] != '\0' && cases[i].signal < 0 && tries < 100; tries++) {
            eb_test_run_for(50);
            g_free(after);
            after = left_behind(guest);
        }
        g_assert_cmpstr(after, ==, "");
    }
}

/* With every task of the guest used up no new process can be made there, and the end still comes. */
static void
test_ends_at_the_limit(Guest *guest, gconstpointer data)
{
    g_autoptr(EbExec) exec = start(
        guest, NULL, NULL, "trap '' TERM; (while :; do sleep 100 & done) 2>/dev/null & sleep 1.5; echo up; exec cat");
    g_autoptr(GError) error = NULL;

    await_text(exec, "up\n");
    g_assert_true(eb_exec_send_signal(exec, SIGTERM, &error));
    g_assert_true(eb_exec_send_signal(exec, SIGTERM, &error));
    g_assert_cmpint(incus_test_wait(exec, NULL), ==, 137);
    g_autofree char *after = left_behind(guest);
    g_assert_cmpstr(after, ==, "");
}

static int
listen_socket(Guest *guest)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_autofree char *dir = g_build_filename(guest->dir, "run", NULL);
    g_autofree char *old = g_get_current_dir();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    /* by a relative name: the path may be longer than an address takes */
    g_assert_cmpint(chdir(dir), ==, 0);
    g_strlcpy(address.sun_path, "model.sock", sizeof address.sun_path);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(chmod("model.sock", 0600), ==, 0);
    g_assert_cmpint(chown("model.sock", incus_test.incusd->uid, incus_test.incusd->uid), ==, 0);
    g_assert_cmpint(listen(fd, 16), ==, 0);
    g_assert_cmpint(chdir(old), ==, 0);
    return fd;
}

static gpointer
answer(gpointer data)
{
    static const char text[] = "HTTP/1.0 200 OK\r\n\r\nfrom the host\n";
    int listener = GPOINTER_TO_INT(data);
    int fd;
    char request[1024];

    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        if (recv(fd, request, sizeof request, 0) > 0)
            g_assert_cmpint(send(fd, text, sizeof text - 1, MSG_NOSIGNAL), >, 0);
        close(fd);
    }
    return NULL;
}

static void
test_relay(Guest *guest, gconstpointer data)
{
    static const char *const options[] = {"--relay", "47129", NULL};
    g_autofree char *out = NULL;
    int listener = listen_socket(guest);
    GThread *thread = g_thread_new("broker", answer, GINT_TO_POINTER(listener));

    g_assert_cmpint(
        run(guest, NULL, options,
            "wget -q -O - http://127.0.0.1:47129/; kill -9 -1 2>/dev/null; wget -q -O - http://127.0.0.1:47129/; "
            "touch /opt/errand/run/x 2>/dev/null || echo read-only",
            &out, NULL),
        ==, 0);
    g_assert_cmpstr(out, ==, "from the host\nfrom the host\nread-only\n");
    /* Killed by guest root, it comes back, and the launcher's next start does not make a second one. */
    g_auto(IncusRun) again = incus_test_shell(
        incus_test.backend, guest->spec->name, 0, NULL,
        "p=$(ps -o pid,args | awk '/[l]isten-fd/{print $1; exit}'); kill -9 $p; wget -q -O - http://127.0.0.1:47129/; "
        "grep -c . /proc/$(ps -o pid,args | awk '/[l]isten-fd/{print $1; exit}')/environ");
    g_assert_cmpstr(again.out->str, ==, "from the host\n0\n");
    g_clear_pointer(&out, g_free);
    g_assert_cmpint(run(guest, NULL, options, "wget -q -O - http://127.0.0.1:47129/", &out, NULL), ==, 0);
    g_assert_cmpstr(out, ==, "from the host\n");
    g_auto(IncusRun) count =
        incus_test_shell(incus_test.backend, guest->spec->name, 0, NULL, "ps -o user,args | grep -c '[l]isten-fd'");
    g_assert_cmpstr(count.out->str, ==, "1\n");
    shutdown(listener, SHUT_RDWR);
    g_thread_join(thread);
    close(listener);
}

static gboolean
is_gone(gpointer data)
{
    Guest *guest = data;
    return !incus_test_exists(incus_test.backend, guest->spec->name);
}

static void
test_lease(Guest *guest, gconstpointer data)
{
    static const char *const options[] = {"--lease", NULL};
    g_autofree char *err = NULL;
    g_autoptr(EbExec) exec = start(guest, NULL, options, "echo up; exec sleep 1000");

    await_text(exec, "up\n");
    g_assert_cmpint(run(guest, NULL, options, "true", NULL, &err), ==, 125);
    g_assert_nonnull(strstr(err, "lease"));
    g_assert_cmpint(run(guest, NULL, NULL, "true", NULL, NULL), ==, 0);
    g_clear_object(&exec);
    eb_test_run_until(is_gone, guest);
}

/* The fixture's image with init in the place of its own. */
static gboolean
import_image(void)
{
    g_autofree char *dir = eb_test_temp_dir("image");
    g_autofree char *sbin = g_build_filename(dir, "sbin", NULL);
    g_autofree char *tar = g_build_filename(dir, "rootfs.tar", NULL);
    g_autofree char *base = g_build_filename(incus_test.incusd->dir, "rootfs.tar", NULL);
    g_autofree char *meta = g_build_filename(incus_test.incusd->dir, "meta.tar", NULL);
    const char *const copy[] = {"cp", base, tar, NULL};
    const char *const add[] = {"tar", "--owner=0", "--group=0", "-C", dir, "-rf", tar, "./sbin/init", NULL};
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(mkdir(sbin, 0755), ==, 0);
    copy_program(EB_TEST_INIT, sbin, "init");
    g_autoptr(GSubprocess) first = g_subprocess_newv(copy, G_SUBPROCESS_FLAGS_NONE, NULL);
    g_assert_true(g_subprocess_wait_check(first, NULL, NULL));
    g_autoptr(GSubprocess) second = g_subprocess_newv(add, G_SUBPROCESS_FLAGS_NONE, NULL);
    g_assert_true(g_subprocess_wait_check(second, NULL, NULL));
    eb_container_backend_image_import_async(incus_test.backend, IMAGE, meta, tar, EB_TEST_DEADLINE_MS, NULL,
                                            eb_test_result_ready, &done);
    g_autoptr(EbImageInfo) info =
        eb_container_backend_image_import_finish(incus_test.backend, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return info != NULL;
}

int
main(int argc, char **argv)
{
    if (!incus_test_init(&argc, &argv, "shared"))
        return 77;
    import_image();
#define ADD(name, pids, function) g_test_add("/launch/" name, Guest, pids, set_up, function, tear_down)
    ADD("environment", NULL, test_environment);
    ADD("namespace", NULL, test_namespace);
    ADD("files", NULL, test_files);
    ADD("exit-codes", NULL, test_exit_codes);
    ADD("refusals", NULL, test_refusals);
    ADD("tmpfs", NULL, test_tmpfs);
    ADD("ends", NULL, test_ends);
    ADD("ends-at-the-limit", GUINT_TO_POINTER(64), test_ends_at_the_limit);
    ADD("relay", NULL, test_relay);
    ADD("lease", NULL, test_lease);
    return incus_test_run();
}
