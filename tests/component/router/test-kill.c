/* SPDX-License-Identifier: MIT */
/*
 * A kill at every write of the database: whatever was said is done once, in order, or its end is told; nothing is lost.
 *
 * A child runs the service on the directory of the run and is ended by SIGKILL just before its n-th write; a second one
 * goes on from there. The chat's side of it is a file that both append to.
 */
#include "eb-router-fixture.h"

#include "core/state/eb-store.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static guint kill_at; /* write before which the process ends, 0 = never */
static guint n_writes;

static void
count_write(void)
{
    if (g_atomic_int_add(&n_writes, 1) + 1 == (gint)kill_at)
        kill(getpid(), SIGKILL);
}

/* In front of the library's: every statement that writes is counted, and so is every end of a transaction. */
__attribute__((visibility("default"))) int
sqlite3_step(sqlite3_stmt *statement)
{
    static int (*next)(sqlite3_stmt *);
    if (next == NULL)
        next = dlsym(RTLD_NEXT, "sqlite3_step");
    if (!sqlite3_stmt_readonly(statement))
        count_write();
    return next(statement);
}

__attribute__((visibility("default"))) int
sqlite3_exec(sqlite3 *db, const char *sql, int (*callback)(void *, int, char **, char **), void *data, char **message)
{
    static int (*next)(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **);
    if (next == NULL)
        next = dlsym(RTLD_NEXT, "sqlite3_exec");
    if (g_str_has_prefix(sql, "COMMIT"))
        count_write();
    return next(db, sql, callback, data, message);
}

/* --- what is said --- */

typedef struct {
    const char *author, *text;
    const char *prompt; /* (nullable): what the agent gets */
} Said;

static const Said script[] = {
    {OWNER, "web: say one", "say one"},    {OWNER, "say two", "say two"},    {OWNER, "!then say three", "say three"},
    {OWNER, "!allow <@" FRIEND ">", NULL}, {FRIEND, "say four", "say four"},
};
#define FIRST_MESSAGE "1000001"

/* The chat of an earlier child: messages, posts and threads as the log has them. */
static void
restore(EbFakeService *chat, const char *log)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents(log, &text, NULL, NULL))
        return;
    g_auto(GStrv) lines = g_strsplit(text, "\n", 0);
    for (char **line = lines; *line != NULL; line++) {
        g_auto(GStrv) parts = g_strsplit(*line, " ", 3);
        if (g_strv_length(parts) < 3)
            continue;
        if (g_str_equal(parts[0], "thread"))
            g_hash_table_replace(chat->threads, g_strdup(parts[1]), g_strdup(parts[2]));
        if (g_str_equal(parts[0], "reaction"))
            g_hash_table_replace(chat->reactions, g_strdup(parts[1]), g_strdup(parts[2]));
        if (!g_str_equal(parts[0], "id"))
            continue;
        chat->last_id = g_ascii_strtoull(parts[1], NULL, 10) - 1;
        int step = atoi(parts[2]);
        if (step >= 0)
            eb_fake_service_add(chat, step > 0 ? FIRST_MESSAGE : NULL, script[step].author, script[step].text);
        else
            chat->last_id++;
    }
}

static guint
count_rows(EbRouterFixture *r)
{
    g_autofree char *path = g_build_filename(r->session->dir, "state", "state.db", NULL);
    sqlite3 *db = NULL;
    g_assert_cmpint(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), ==, SQLITE_OK);
    sqlite3_stmt *count = NULL;
    guint rows = 0;
    sqlite3_busy_timeout(db, 5000);
    if (sqlite3_prepare_v2(db, "SELECT count(*) FROM message WHERE transport = 'chat'", -1, &count, NULL) ==
            SQLITE_OK &&
        sqlite3_step(count) == SQLITE_ROW)
        rows = (guint)sqlite3_column_int(count, 0);
    sqlite3_finalize(count);
    sqlite3_close(db);
    return rows;
}

static int
run_child(const char *dir, guint at)
{
    g_autofree char *log = g_build_filename(dir, "chat.log", NULL);
    g_autoptr(EbRouterFixture) r = eb_router_fixture_new(dir, NULL);
    restore(r->chat, log);
    r->chat->log_path = g_strdup(log);
    guint said = r->chat->history->len;
    if (said == 0) {
        /* The channel is known before anything is said in it. */
        eb_router_fixture_open(r);
        UNTIL(r->chat->reads == 1 && eb_router_fixture_count_open(r) == 0);
        eb_router_fixture_close(r);
    }
    kill_at = at > 0 ? g_atomic_int_get(&n_writes) + at : 0;
    guint before = n_writes;
    eb_router_fixture_open(r);
    /* What was told in the run before comes once more. */
    for (guint i = 0; i < said; i++)
        eb_fake_service_tell(r->chat, r->chat->history->pdata[i]);
    for (guint i = said; i < G_N_ELEMENTS(script); i++) {
        UNTIL(i == 0 || g_hash_table_contains(r->chat->threads, FIRST_MESSAGE));
        eb_fake_service_say(r->chat, i > 0 ? FIRST_MESSAGE : NULL, script[i].author, script[i].text);
    }
    UNTIL(count_rows(r) == G_N_ELEMENTS(script) && eb_router_fixture_count_open(r) == 0);
    eb_router_fixture_close(r);
    g_autofree char *path = g_build_filename(dir, "writes", NULL);
    g_autofree char *writes = g_strdup_printf("%u", n_writes - before);
    eb_test_write_file(path, writes);
    return 0;
}

/* --- what came of it --- */

static gboolean
spawn(const char *self, const char *dir, guint at)
{
    g_autofree char *number = g_strdup_printf("%u", at);
    const char *argv[] = {self, "--child", dir, number, NULL};
    g_autoptr(GError) error = NULL;
    int status = 0;
    g_assert_true(
        g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL, NULL, &status, &error));
    g_assert_no_error(error);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return FALSE;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        g_error("the child of write %u ended with wait status 0x%x", at, (guint)status);
    return TRUE;
}

static guint
count_of(char **list, const char *text)
{
    guint count = 0;
    for (; *list != NULL; list++)
        count += g_str_equal(*list, text);
    return count;
}

typedef struct {
    guint untold; /* prompts whose reaction did not tell their end: it was on its way */
} Tally;

static void
check(const char *dir, guint at, Tally *tally)
{
    g_autoptr(EbRouterFixture) r = eb_router_fixture_new(dir, NULL);
    g_autofree char *log = g_build_filename(dir, "chat.log", NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(log, &text, NULL, NULL));
    restore(r->chat, log);
    g_auto(GStrv) prompts = eb_router_fixture_prompts(r);
    g_autoptr(GString) wanted = g_string_new(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(script); i++) {
        const EbChatMessage *message = r->chat->history->pdata[i];
        const char *reaction = eb_fake_service_reaction(r->chat, message->id);
        g_test_message("kill at write %u: \"%s\": %s", at, script[i].text, reaction);
        if (script[i].prompt == NULL) {
            g_assert_true(strstr(text, "may speak to the agent here from now on") != NULL ||
                          strstr(text, "the service was restarted in the middle of this") != NULL);
            continue;
        }
        guint given = count_of(prompts, script[i].prompt);
        g_assert_cmpuint(given, <=, 1);
        /* Given to no agent: then its end was told, and it is never passed over in silence. */
        gboolean refused = g_str_equal(reaction, "cross");
        g_assert_true(given == 1 || refused);
        if (refused)
            g_assert_true(strstr(text, "the service was restarted in the middle of this") != NULL ||
                          strstr(text, "you are not invited") != NULL);
        if (given == 1) {
            g_string_append_printf(wanted, "%s%s", wanted->len > 0 ? "|" : "", script[i].prompt);
            tally->untold += g_str_equal(reaction, "wait");
        }
    }
    g_autofree char *all = g_strjoinv("|", prompts);
    g_assert_cmpstr(all, ==, wanted->str);
}

static const char *program;

static void
test_every_write(void)
{
    Tally tally = {0};
    guint at = 0;
    gboolean killed = TRUE;
    while (killed) {
        g_autofree char *name = g_strdup_printf("kill%u", ++at);
        g_autofree char *dir = eb_test_temp_dir(name);
        killed = !spawn(program, dir, at);
        if (killed)
            g_assert_true(spawn(program, dir, 0));
        check(dir, at, &tally);
        eb_test_remove_tree(dir);
    }
    g_test_message("killed at %u writes; %u reactions were on their way", at - 1, tally.untold);
    g_assert_cmpuint(at, >, 20);
}

int
main(int argc, char **argv)
{
    gboolean child = argc == 4 && g_str_equal(argv[1], "--child");
    g_autofree char *dir = child ? g_strdup(argv[2]) : NULL;
    guint at = child ? (guint)atoi(argv[3]) : 0;
    if (child)
        argc = 1;
    program = argv[0];
    eb_test_init(&argc, &argv);
    if (child)
        return run_child(dir, at);
    g_test_add_func("/kill/every-write", test_every_write);
    return g_test_run();
}
