/* SPDX-License-Identifier: MIT */
/* Every `errand-box ...` that is printed somewhere is a command that this program takes. */
#include "core/cli/eb-cli-args.h"
#include "tests/lib/eb-test.h"

#include <string.h>

static guint n_lines;
static guint n_bad;

/* @mention: in running text a command may be named without its operands. */
static void
check(const char *file, guint line, const char *text, gboolean mention)
{
    g_autofree char *command = g_strstrip(g_strdup(text));
    g_autoptr(GError) error = NULL;

    /* A shell goes on after these: what stands behind is not ours. */
    for (char *c = command; *c != '\0'; c++)
        if ((*c == '#' && c > command && c[-1] == ' ') || *c == ';' || *c == '<' || *c == '>' ||
            g_str_has_prefix(c, "&&") || g_str_has_prefix(c, "| ")) {
            if (*c == '<' && g_ascii_isalpha(c[1])) /* "<name>" */
                continue;
            if (*c == '>' && c > command && g_ascii_isalpha(c[-1]))
                continue;
            *c = '\0';
            break;
        }
    n_lines++;
    if (eb_cli_check_line(command, &error) || (mention && strstr(error->message, " needs ") != NULL))
        return;
    n_bad++;
    g_test_message("%s:%u: %s: %s", file, line, command, error->message);
}

/* Does @word end where @at begins? */
static gboolean
ends_at(const char *text, const char *at, const char *word)
{
    gsize length = strlen(word);
    return (gsize)(at - text) >= length && strncmp(at - length, word, length) == 0;
}

/* In a text line: between backticks, or in brackets up to ")". In a code block: the whole line. */
static void
scan_line(const char *file, guint number, const char *line, gboolean code)
{
    g_autofree char *plain = g_strstrip(g_strdup(line));
    const char *start = plain;

    if (code) {
        if (g_str_has_prefix(start, "$ ") || g_str_has_prefix(start, "# "))
            start += 2;
        if (g_str_has_prefix(start, "sudo "))
            start += 5;
        if (g_str_has_prefix(start, "errand-box ") || g_str_has_prefix(start, "build/errand-box ") ||
            g_str_has_prefix(start, "./build/errand-box "))
            check(file, number, start, FALSE);
        return;
    }
    while ((start = strstr(start, "errand-box ")) != NULL) {
        gboolean tick = start > plain && start[-1] == '`';
        gboolean bracket =
            start > plain && (start[-1] == '(' || ends_at(plain, start, "(see ") || ends_at(plain, start, "(run "));
        const char *end = tick ? strchr(start, '`') : bracket ? strchr(start, ')') : NULL;
        /* A format of a message is filled in when it is printed. */
        if (end != NULL && memchr(start, '%', (gsize)(end - start)) == NULL) {
            g_autofree char *command = g_strndup(start, (gsize)(end - start));
            check(file, number, command, TRUE);
        }
        start += strlen("errand-box ");
    }
}

static void
scan_file(const char *path)
{
    g_autofree char *text = NULL;
    gboolean markdown = g_str_has_suffix(path, ".md");
    gboolean code = FALSE;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        if (markdown && g_str_has_prefix(lines[i], "```")) {
            code = !code;
            continue;
        }
        scan_line(path, i + 1, lines[i], code);
    }
}

static void
scan_dir(const char *dir, const char *const *suffixes, guint depth)
{
    g_autoptr(GDir) handle = g_dir_open(dir, 0, NULL);
    const char *name;

    while (handle != NULL && (name = g_dir_read_name(handle)) != NULL) {
        g_autofree char *path = g_build_filename(dir, name, NULL);
        if (name[0] == '.')
            continue;
        if (g_file_test(path, G_FILE_TEST_IS_DIR)) {
            if (depth > 0 && !g_file_test(path, G_FILE_TEST_IS_SYMLINK))
                scan_dir(path, suffixes, depth - 1);
            continue;
        }
        for (guint i = 0; suffixes[i] != NULL; i++)
            if (g_str_has_suffix(name, suffixes[i]))
                scan_file(path);
    }
}

static void
test_lines(void)
{
    static const char *const pages[] = {".md", NULL};
    static const char *const sources[] = {".c", ".toml", ".json", ".md", NULL};
    static const char *const trees[] = {"core", "plugins", "data", "docs", "guest", NULL};
    const char *root = g_getenv("EB_TEST_SOURCE_ROOT");

    g_assert_nonnull(root);
    scan_dir(root, pages, 0);
    for (guint i = 0; trees[i] != NULL; i++) {
        g_autofree char *dir = g_build_filename(root, trees[i], NULL);
        scan_dir(dir, sources, 4);
    }
    g_test_message("%u command lines", n_lines);
    g_assert_cmpuint(n_lines, >, 20);
    g_assert_cmpuint(n_bad, ==, 0);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/cli/printed-lines", test_lines);
    return g_test_run();
}
