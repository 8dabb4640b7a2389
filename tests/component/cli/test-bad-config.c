/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "eb-test-program.h"

/* Configuration files as people and broken disks make them: refused with file, line, key and what to do. */

/* A text of which NUL bytes are part. */
typedef struct {
    const char *name;
    const char *bytes;
    gsize length;
    const char *says[4]; /* (nullable): each must be in the answer; none: the file is fine */
} Row;
#define BYTES(text) text, sizeof(text) - 1

static const Row ROWS[] = {
    {"empty", BYTES(""), {NULL}},
    {"bom", BYTES("\xef\xbb\xbf[session]\ncpus = 3\n"), {NULL}},
    {"bom-alone", BYTES("\xef\xbb\xbf"), {NULL}},
    {"crlf", BYTES("[session]\r\ncpus = 3\r\n"), {NULL}},
    {"crlf-bom", BYTES("\xef\xbb\xbf[session]\r\ncpus = 3\r\n"), {NULL}},
    {"no-newline", BYTES("[session]\ncpus = 3"), {NULL}},
    {"bom-inside", BYTES("[session]\n\xef\xbb\xbfx = 3\n"), {":2:1:", "an invisible mark stands there"}},
    {"cr-alone", BYTES("[session]\rcpus = 3\r"), {":1:", "save the file with LF"}},
    {"nul", BYTES("[session]\ncpus = 3\n\0\n"), {":3:1: a NUL byte"}},
    {"nul-in-string", BYTES("[session]\nmodel = \"a\0b\"\n"), {":2:11: a NUL byte"}},
    {"nul-escaped", BYTES("[session]\nmodel = \"a\\u0000b\"\n"), {":2:9: model: a text with a NUL"}},
    {"utf-16", BYTES("\xff\xfe[\0s\0]\0\n\0"), {":1:1: this file is UTF-16, save it as UTF-8"}},
    {"latin-1", BYTES("[session]\nmodel = \"\xe4\"\n"), {":2:10: not UTF-8 text"}},
    {"cut-utf-8", BYTES("[session]\nmodel = \"\xe2\x82\""), {":2:10: not UTF-8 text"}},
    {"twice", BYTES("[session]\ncpus = 3\ncpus = 4\n"), {":3:", "cpus", "stands there twice: keep one"}},
    {"table-twice", BYTES("[session]\n[limits]\n[session]\n"), {":3:1:", "session", "twice"}},
    {"colon", BYTES("[session]\ncpus: 3\n"), {":2:", "write KEY = VALUE"}},
    {"no-quotes", BYTES("[session]\nagent = kage\n"), {":2:", "a text stands in quotes"}},
    {"open-quote", BYTES("[session]\nagent = \"kage\ncpus = 3\n"), {":2:", "is the quote missing at the end"}},
    {"json", BYTES("{\"session\": {\"cpus\": 3}}"), {":1:1:", "this is JSON, not TOML"}},
    {"list-of-tables", BYTES("[[session]]\ncpus = 3\n"), {"[[session]] begins a list", "write [session]"}},
    {"list-of-named", BYTES("[[provider]]\nkind = \"openai\"\n"), {"write [provider.NAME]"}},
    {"table-as-key", BYTES("session = 3\n"), {":1: session is a table (write [session]"}},
    {"huge-number", BYTES("[session]\ncpus = 99999999999999999999\n"), {":2:", "the number is too large"}},
    {"huge-size", BYTES("[session]\nmemory = \"99999999999TiB\"\n"), {":2: session.memory", "write 512MiB or 4GiB"}},
    {"not-a-number", BYTES("[session]\ncpus = nan\n"), {":2: session.cpus is a fraction"}},
    {"unknown", BYTES("[session]\ncpsu = 3\n"), {":2: unknown key \"session.cpsu\" (did you mean \"cpus\"?)"}},
    {"terminal", BYTES("\"\\u001b[31m\" = 1\n"), {":1: unknown key \"\\x1b[31m\""}},
    {"newline-in-key", BYTES("\"a\\nerrand-box: all is well\" = 1\n"), {":1: unknown key \"a\\x0aerrand-box"}},
    {"all-types",
     BYTES("[session]\ncpus = \"three\"\nidle = true\nagent = [\"a\"]\n[service]\naccount = 1979-05-27\n"
           "[egress]\nallow = [[\"x\"]]\n"),
     {":2: session.cpus is a string and must be an integer", ":6:11: account: dates", ":8:10: allow: a list",
      ":4: session.agent is a list"}},
};

/* Refused: exit 2, nothing on stdout, a line a problem and no byte that a terminal would act on. */
static void
assert_refused(const EbTestRun *run, const char *path, const char *const *says)
{
    g_auto(GStrv) lines = g_strsplit(run->err, "\n", -1);

    if (run->code != 2 || strstr(run->err, path) == NULL)
        g_error("%s: exit %d: %s", path, run->code, run->err);
    g_assert_cmpstr(run->out, ==, "");
    g_assert_true(g_str_has_prefix(lines[0], "errand-box: the configuration is refused"));
    for (guint i = 1; lines[i] != NULL && *lines[i] != '\0'; i++)
        g_assert_true(g_str_has_prefix(lines[i], "  "));
    for (const char *at = run->err; *at != '\0'; at++)
        g_assert_true(*at == '\n' || !g_ascii_iscntrl(*at));
    for (guint i = 0; i < 4 && says[i] != NULL; i++)
        if (strstr(run->err, says[i]) == NULL)
            g_error("%s does not say \"%s\": %s", path, says[i], run->err);
}

static char *
write_bytes(const char *dir, const char *bytes, gsize length)
{
    char *path = g_build_filename(dir, "errand-box.toml", NULL);

    g_assert_true(g_file_set_contents(path, bytes, (gssize)length, NULL));
    g_assert_cmpint(chmod(path, 0600), ==, 0);
    return path;
}

static void
test_row(gconstpointer data)
{
    const Row *row = data;
    g_autofree char *dir = eb_test_temp_dir("bad-config");
    g_autofree char *path = write_bytes(dir, row->bytes, row->length);
    g_auto(EbTestRun) run = eb_test_run_program(path, NULL, "config check");
    g_autofree char *after = NULL;
    gsize length = 0;

    if (row->says[0] != NULL)
        assert_refused(&run, path, row->says);
    else if (run.code != 0)
        g_error("%s: %s", row->name, run.err);
    g_assert_true(g_file_get_contents(path, &after, &length, NULL));
    g_assert_cmpmem(after, length, row->bytes, row->length);
}

/* What a program would choke on: length, depth, number. */
static void
test_large(void)
{
    g_autofree char *dir = eb_test_temp_dir("bad-config");
    g_autofree char *ten = g_strnfill(10 << 20, '#');
    g_autofree char *open = g_strnfill(5000, '[');
    g_autofree char *deep = g_strconcat("a = ", open, "\n", NULL);
    g_autofree char *dots = g_strnfill(10000, '.');
    g_autofree char *name = g_strnfill(100000, 'k');
    g_autofree char *long_key = g_strconcat(name, " = 1\n", NULL);
    g_autoptr(GString) many = g_string_new(NULL);
    const struct {
        const char *text;
        const char *says[4];
    } rows[] = {
        {ten, {"longer than 1024 KiB"}},
        {deep, {":1:21: nested too deeply"}},
        {dots, {"too many parts"}},
        {long_key, {":1: unknown key \"kkkk"}},
        {NULL, {":1: unknown key \"k0\"", "49900 more problems"}},
    };

    for (guint i = 0; i < 10000; i++)
        dots[i] = i % 2 == 0 ? 'a' : '.';
    for (guint i = 0; i < 50000; i++)
        g_string_append_printf(many, "k%u = 1\n", i);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        const char *text = rows[i].text != NULL ? rows[i].text : many->str;
        g_autofree char *path = write_bytes(dir, text, strlen(text));
        g_auto(EbTestRun) run = eb_test_run_program(path, NULL, "config check");
        assert_refused(&run, path, rows[i].says);
        g_assert_cmpuint(strlen(run.err), <, 64 * 1024);
    }
}

/* What stands where a file should be, and who may write there. */
static void
test_places(void)
{
    g_autofree char *dir = eb_test_temp_dir("bad-config");
    g_autofree char *file = g_build_filename(dir, "file.toml", NULL);
    g_autofree char *fifo = g_build_filename(dir, "fifo.toml", NULL);
    g_autofree char *loop = g_build_filename(dir, "loop.toml", NULL);
    g_autofree char *dangling = g_build_filename(dir, "dangling.toml", NULL);
    g_autofree char *open_dir = g_build_filename(dir, "open", NULL);
    g_autofree char *in_open = g_build_filename(open_dir, "deeper", "x.toml", NULL);
    g_autofree char *through = g_build_filename(dir, "through.toml", NULL);
    g_autofree char *absent = g_build_filename(dir, "absent.toml", NULL);
    const struct {
        const char *path;
        const char *says[4];
    } rows[] = {
        {dir, {"not a regular file"}},
        {fifo, {"not a regular file"}},
        {"/dev/zero", {"not a regular file"}},
        {loop, {"a link that leads to itself"}},
        {dangling, {"is a link to /nonexistent/x, which is not there"}},
        {absent, {"No such file or directory"}},
        {file, {"its group or others may write it (chmod go-w "}},
        {in_open, {"may write the directory", "and so exchange the file (chmod go-w "}},
        {through, {"may write the directory", "/open"}},
    };

    eb_test_write_file(file, "");
    eb_test_write_file(in_open, "");
    g_assert_cmpint(chmod(in_open, 0600) + chmod(open_dir, 0777) + chmod(file, 0602), ==, 0);
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    g_assert_cmpint(symlink(loop, loop) + symlink("/nonexistent/x", dangling) + symlink(in_open, through), ==, 0);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(EbTestRun) run = eb_test_run_program(rows[i].path, NULL, "config check");
        assert_refused(&run, rows[i].path, rows[i].says);
    }
    /* The directory is mended, nothing else: the same file is fine, through the link too. */
    g_assert_cmpint(chmod(open_dir, 01777), ==, 0);
    g_auto(EbTestRun) run = eb_test_run_program(through, NULL, "config check");
    g_assert_cmpint(run.code, ==, 0);
}

/* The doctor is what people run then: it says what is wrong and looks at everything else. */
static void
test_doctor(void)
{
    static const char *const TEXTS[] = {"[session]\ncpus = 0\nmemroy = 1\n", "\xff\xfe", "[session\n"};
    g_autofree char *dir = eb_test_temp_dir("bad-config");

    for (guint i = 0; i < G_N_ELEMENTS(TEXTS); i++) {
        g_autofree char *path = write_bytes(dir, TEXTS[i], strlen(TEXTS[i]));
        g_auto(EbTestRun) run = eb_test_run_program(path, NULL, "--json doctor --check E-29 --check E-01");
        g_autoptr(GError) error = NULL;
        g_autoptr(JsonNode) node = eb_json_parse(run.out, strlen(run.out), NULL, &error);
        JsonArray *checks = eb_json_get_array(eb_json_node_object(node), "checks");
        const char *observed = eb_json_get_string(eb_json_array_object(checks, 1), "observed");

        g_assert_no_error(error);
        g_assert_cmpint(run.code, ==, 1);
        g_assert_cmpstr(eb_json_get_string(eb_json_array_object(checks, 0), "status"), ==, "ok");
        g_assert_cmpstr(eb_json_get_string(eb_json_array_object(checks, 1), "status"), ==, "fail");
        g_assert_nonnull(strstr(observed, path));
        if (i == 0)
            g_assert_true(strstr(observed, ":2: session.cpus") != NULL && strstr(observed, ":3: unknown key") != NULL);
    }
}

/* Every other command refuses with the same words, and leaves the file alone. */
static void
test_commands(void)
{
    static const char *const LINES[] = {"config show",   "serve",      "creds list",
                                        "sessions list", "image list", "try hello"};
    static const char *const SAYS[4] = {":2: session.cpus"};
    static const char TEXT[] = "[session]\ncpus = 0\n";
    g_autofree char *dir = eb_test_temp_dir("bad-config");
    g_autofree char *path = write_bytes(dir, TEXT, strlen(TEXT));

    for (guint i = 0; i < G_N_ELEMENTS(LINES); i++) {
        g_auto(EbTestRun) run = eb_test_run_program(path, NULL, LINES[i]);
        g_autofree char *after = NULL;
        if (run.code != 2 || strstr(run.err, SAYS[0]) == NULL)
            g_error("%s: exit %d: %s", LINES[i], run.code, run.err);
        g_assert_true(g_file_get_contents(path, &after, NULL, NULL));
        g_assert_cmpstr(after, ==, TEXT);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    for (guint i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        g_autofree char *path = g_strconcat("/bad-config/row/", ROWS[i].name, NULL);
        g_test_add_data_func(path, &ROWS[i], test_row);
    }
    g_test_add_func("/bad-config/large", test_large);
    g_test_add_func("/bad-config/places", test_places);
    g_test_add_func("/bad-config/doctor", test_doctor);
    g_test_add_func("/bad-config/commands", test_commands);
    return g_test_run();
}
