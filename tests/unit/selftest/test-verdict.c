/* SPDX-License-Identifier: MIT */
/* Each rule of what may be left after a kill: one case where all is well, one for each way it is not. */
#include "core/selftest/eb-selftest-verdict.h"
#include "eb-test.h"

#include <string.h>

#define ROOT "/var/lib/errand-box/try/selftest-abcdef/w0"

typedef struct {
    EbSelftestLook *look;
    EbSelftestExpected expected;
} Case;

static GHashTable *
new_set(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

static void
case_init(Case *self)
{
    self->look = eb_selftest_look_new();
    self->expected = (EbSelftestExpected){
        .moment = EB_SELFTEST_RUNNING,
        .fates = new_set(),
        .touched = new_set(),
        .prompts = g_ptr_array_new_with_free_func((GDestroyNotify)eb_selftest_prompt_free),
        .told = new_set(),
        .late = new_set(),
        .stale = new_set(),
    };
    g_ptr_array_add(self->look->locks, g_strdup("run-aaaaaaaaaaaa.lock"));
    g_ptr_array_add(self->look->locks, g_strdup("home-id"));
    g_ptr_array_add(self->look->sockets, g_strdup(ROOT "/run/control.sock"));
}

static void
case_clear(Case *self)
{
    eb_selftest_look_free(self->look);
    g_hash_table_unref(self->expected.fates);
    g_hash_table_unref(self->expected.touched);
    g_ptr_array_unref(self->expected.prompts);
    g_hash_table_unref(self->expected.told);
    g_hash_table_unref(self->expected.late);
    g_hash_table_unref(self->expected.stale);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Case, case_clear)

static EbSelftestRow *
add_row(Case *self, const char *id, const char *state)
{
    EbSelftestRow *row = g_new0(EbSelftestRow, 1);

    row->id = g_strdup(id);
    row->state = g_strdup(state);
    g_ptr_array_add(self->look->rows, row);
    return row;
}

static void
add_directory(Case *self, const char *id, gboolean whole, gboolean running)
{
    g_hash_table_add(self->look->directories, g_strdup(id));
    if (whole)
        g_hash_table_add(self->look->whole, g_strdup(id));
    if (running)
        g_hash_table_add(self->look->running, g_strdup(id));
}

static EbSelftestPrompt *
add_prompt(Case *self, const char *text, const char *state, guint given)
{
    EbSelftestPrompt *prompt = eb_selftest_prompt_new(text, NULL);

    g_ptr_array_add(self->expected.prompts, prompt);
    if (state != NULL) {
        EbSelftestMessage *message = g_new0(EbSelftestMessage, 1);
        message->id = g_strconcat("m-", text, NULL);
        message->body = g_strdup(text);
        message->state = g_strdup(state);
        g_ptr_array_add(self->look->messages, message);
    }
    if (given > 0)
        g_hash_table_replace(self->look->given, g_strdup(text), GUINT_TO_POINTER(given));
    return prompt;
}

/* @word: (nullable): in the one sentence; NULL: there is none */
static void
assert_verdict(Case *self, const char *word)
{
    g_autoptr(GPtrArray) wrong = eb_selftest_judge(self->look, &self->expected);

    for (guint i = 0; i < wrong->len; i++)
        g_test_message("%s", (char *)wrong->pdata[i]);
    g_assert_cmpuint(wrong->len, ==, word != NULL ? 1 : 0);
    if (word != NULL)
        g_assert_nonnull(strstr(wrong->pdata[0], word));
}

static void
test_all_is_well(void)
{
    g_auto(Case) self;

    case_init(&self);
    add_row(&self, "kept00000000", "ended");
    add_directory(&self, "kept00000000", TRUE, FALSE);
    g_hash_table_insert(self.expected.fates, g_strdup("kept00000000"), GUINT_TO_POINTER(EB_SELFTEST_MUST_BE));
    g_hash_table_insert(self.expected.fates, g_strdup("gone00000000"), GUINT_TO_POINTER(EB_SELFTEST_GONE));
    g_hash_table_insert(self.expected.fates, g_strdup("maybe0000000"), GUINT_TO_POINTER(EB_SELFTEST_MAY_BE));
    /* One that this run has begun with. */
    g_hash_table_add(self.expected.touched, g_strdup("live00000000"));
    EbSelftestRow *live = add_row(&self, "live00000000", "working");
    live->instance = g_strdup("eb-live00000000");
    live->run = g_strdup("aaaaaaaaaaaa");
    add_directory(&self, "live00000000", TRUE, TRUE);
    g_ptr_array_add(self.look->locks, g_strdup("project-p.lock"));
    g_ptr_array_add(self.look->mounts, g_strdup("/var/lib/incus/devices/u_eb-live00000000/disk.run.opt-errand-run"));
    g_ptr_array_add(self.look->sockets, g_strdup(ROOT "/sessions/live00000000/run/model.sock"));
    g_hash_table_insert(self.look->instances, g_strdup("eb-live00000000"), g_strdup("aaaaaaaaaaaa"));
    add_prompt(&self, "done", "done", 1);
    add_prompt(&self, "at work", "started", 1);
    add_prompt(&self, "waits", "received", 0);
    add_prompt(&self, "never came", NULL, 0);
    add_prompt(&self, "stopped", "done", 0)->excused = TRUE;
    add_prompt(&self, "cut off", "done", 0);
    g_hash_table_add(self.expected.told, g_strdup("m-cut off"));
    assert_verdict(&self, NULL);
    g_assert_true(((EbSelftestPrompt *)self.expected.prompts->pdata[0])->journaled);
    g_assert_false(((EbSelftestPrompt *)self.expected.prompts->pdata[3])->journaled);
}

static void
test_rows(void)
{
    static const struct {
        const char *state, *instance;
        gboolean directory, whole;
        EbSelftestFate fate;
        const char *word;
    } cases[] = {
        {"working", NULL, TRUE, TRUE, EB_SELFTEST_MUST_BE, "no run has it"},
        {"starting", NULL, TRUE, TRUE, EB_SELFTEST_MAY_BE, "no run has it"},
        {"ended", "eb-x", TRUE, TRUE, EB_SELFTEST_MUST_BE, "still names a guest"},
        {"ended", NULL, TRUE, FALSE, EB_SELFTEST_MUST_BE, "state directory is gone"},
        {"ended", NULL, FALSE, FALSE, EB_SELFTEST_MAY_BE, "state directory is gone"},
        {"ended", NULL, TRUE, TRUE, EB_SELFTEST_GONE, "listed again"},
        {NULL, NULL, FALSE, FALSE, EB_SELFTEST_MUST_BE, "not listed any more"},
        {NULL, NULL, TRUE, TRUE, EB_SELFTEST_GONE, "belongs to no session"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(Case) self;
        case_init(&self);
        if (cases[i].state != NULL)
            add_row(&self, "s00000000000", cases[i].state)->instance = g_strdup(cases[i].instance);
        if (cases[i].directory)
            add_directory(&self, "s00000000000", cases[i].whole, FALSE);
        g_hash_table_insert(self.expected.fates, g_strdup("s00000000000"), GUINT_TO_POINTER(cases[i].fate));
        assert_verdict(&self, cases[i].word);
    }
}

static void
test_what_lies_about(void)
{
    static const struct {
        const char *lock, *mount, *socket, *word;
        gboolean run_directory;
    } cases[] = {
        {"run-bbbbbbbbbbbb.lock", NULL, NULL, "runs have a lock", FALSE},
        {"project-p.lock", NULL, NULL, "for nobody", FALSE},
        {NULL, "/var/lib/incus/devices/u_eb-dead00000000/disk.run", NULL, "mount: ", FALSE},
        {NULL, NULL, ROOT "/sessions/dead00000000/run/model.sock", "socket: ", FALSE},
        {NULL, NULL, NULL, "without a guest", TRUE},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(Case) self;
        case_init(&self);
        if (cases[i].lock != NULL)
            g_ptr_array_add(self.look->locks, g_strdup(cases[i].lock));
        if (cases[i].mount != NULL)
            g_ptr_array_add(self.look->mounts, g_strdup(cases[i].mount));
        if (cases[i].socket != NULL)
            g_ptr_array_add(self.look->sockets, g_strdup(cases[i].socket));
        if (cases[i].run_directory) {
            add_row(&self, "dead00000000", "ended");
            add_directory(&self, "dead00000000", TRUE, TRUE);
        }
        assert_verdict(&self, cases[i].word);
    }
}

static void
test_prompts(void)
{
    static const struct {
        const char *state;
        guint given;
        EbSelftestMoment moment;
        const char *word;
    } cases[] = {
        {"done", 2, EB_SELFTEST_RUNNING, "given to an agent 2 times"},
        {"received", 2, EB_SELFTEST_RUNNING, "given to an agent 2 times"},
        {NULL, 2, EB_SELFTEST_RUNNING, "given to an agent 2 times"},
        {"done", 0, EB_SELFTEST_RUNNING, "was not told"},
        {"received", 0, EB_SELFTEST_OVER, "still \"received\""},
        {"started", 1, EB_SELFTEST_OVER, "still \"started\""},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(Case) self;
        case_init(&self);
        self.expected.moment = cases[i].moment;
        if (cases[i].moment == EB_SELFTEST_OVER) {
            g_ptr_array_set_size(self.look->locks, 0);
            g_ptr_array_set_size(self.look->sockets, 0);
        }
        add_prompt(&self, "errand", cases[i].state, cases[i].given);
        assert_verdict(&self, cases[i].word);
    }
}

/* The thread of a session that could not start says so: its prompt is done without an agent. */
static void
test_a_backend_that_is_late_loses_no_prompt(void)
{
    g_auto(Case) self;

    case_init(&self);
    add_prompt(&self, "errand", "done", 0);
    EbSelftestMessage *message = self.look->messages->pdata[0];
    message->session = g_strdup("one");
    g_hash_table_add(self.expected.late, g_strdup("other"));
    assert_verdict(&self, "was not told");
    g_hash_table_add(self.expected.late, g_strdup("one"));
    assert_verdict(&self, NULL);
}

static void
test_a_prompt_is_given_to_the_session_it_was_said_to(void)
{
    g_auto(Case) self;

    case_init(&self);
    add_prompt(&self, "errand", "done", 1)->session = g_strdup("one");
    EbSelftestMessage *message = self.look->messages->pdata[0];
    message->session = g_strdup("one");
    assert_verdict(&self, NULL);
    g_free(message->session);
    message->session = g_strdup("other");
    assert_verdict(&self, "given to session other");
}

static void
test_a_late_guest_has_one_more_start(void)
{
    g_auto(Case) self;

    case_init(&self);
    g_hash_table_insert(self.look->instances, g_strdup("eb-late00000000"), g_strdup("dead"));
    assert_verdict(&self, NULL);
    g_assert_true(g_hash_table_contains(self.expected.stale, "eb-late00000000"));
    assert_verdict(&self, "outlived");
    g_assert_cmpuint(g_hash_table_size(self.expected.stale), ==, 0);
    g_hash_table_remove_all(self.look->instances);
    assert_verdict(&self, NULL);
}

static void
test_in_the_end_nothing_may_be(void)
{
    g_auto(Case) self;

    case_init(&self);
    self.expected.moment = EB_SELFTEST_OVER;
    g_ptr_array_set_size(self.look->locks, 0);
    g_ptr_array_set_size(self.look->sockets, 0);
    assert_verdict(&self, NULL);
    self.look->open_questions = 1;
    assert_verdict(&self, "questions wait");
    self.look->open_questions = 0;
    g_hash_table_insert(self.look->instances, g_strdup("eb-late00000000"), g_strdup("dead"));
    assert_verdict(&self, "outlived");
    g_hash_table_remove_all(self.look->instances);
    g_ptr_array_add(self.look->sockets, g_strdup(ROOT "/run/control.sock"));
    assert_verdict(&self, "socket: ");
}

static void
test_tables_of_the_kernel(void)
{
    g_autoptr(GPtrArray) mounts = eb_selftest_list_mounts(
        "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "90 22 254:0 " ROOT "/sessions/s/run /var/lib/incus/devices/u_eb-s/disk.run rw,relatime - ext4 /dev/vda rw\n"
        "91 22 0:40 / " ROOT "/mnt rw - tmpfs tmpfs rw\n"
        "92 22 254:0 " ROOT "0/sessions /elsewhere rw - ext4 /dev/vda rw\n"
        "short line\n",
        ROOT);
    g_autoptr(GPtrArray) sockets =
        eb_selftest_list_sockets("Num       RefCount Protocol Flags    Type St Inode Path\n"
                                 "0000000000000000: 00000002 00000000 00010000 0001 01 1 " ROOT "/run/control.sock\n"
                                 "0000000000000000: 00000003 00000000 00000000 0001 03 2 " ROOT "/run/control.sock\n"
                                 "0000000000000000: 00000003 00000000 00000000 0001 03 3\n"
                                 "0000000000000000: 00000002 00000000 00010000 0001 01 4 @abstract\n"
                                 "0000000000000000: 00000002 00000000 00010000 0001 01 5 /run/other.sock\n",
                                 ROOT);

    g_assert_cmpuint(mounts->len, ==, 2);
    g_assert_cmpstr(mounts->pdata[0], ==, "/var/lib/incus/devices/u_eb-s/disk.run");
    g_assert_cmpstr(mounts->pdata[1], ==, ROOT "/mnt");
    g_assert_cmpuint(sockets->len, ==, 1);
    g_assert_cmpstr(sockets->pdata[0], ==, ROOT "/run/control.sock");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/selftest/verdict/well", test_all_is_well);
    g_test_add_func("/selftest/verdict/rows", test_rows);
    g_test_add_func("/selftest/verdict/left", test_what_lies_about);
    g_test_add_func("/selftest/verdict/prompts", test_prompts);
    g_test_add_func("/selftest/verdict/late", test_a_backend_that_is_late_loses_no_prompt);
    g_test_add_func("/selftest/verdict/session", test_a_prompt_is_given_to_the_session_it_was_said_to);
    g_test_add_func("/selftest/verdict/late-guest", test_a_late_guest_has_one_more_start);
    g_test_add_func("/selftest/verdict/end", test_in_the_end_nothing_may_be);
    g_test_add_func("/selftest/verdict/kernel", test_tables_of_the_kernel);
    return g_test_run();
}
