/* SPDX-License-Identifier: MIT */
/* The journal of messages on a real database: once, whole, in order, within bounds. */
#include "core/state/eb-journal.h"
#include "eb-test.h"

static EbStore *
open_store(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "state.db", NULL);
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_store_open_async(path, NULL, eb_test_result_ready, &done);
    EbStore *store = eb_store_open_finish(eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return store;
}

static gboolean
receive(EbStore *store, EbChatMessage *message, gboolean *repeat, GError **error)
{
    g_auto(EbTestResult) done = {0};
    eb_journal_receive_async(store, "chat", message, EB_JOURNAL_RECEIVED, NULL, eb_test_result_ready, &done);
    return eb_journal_receive_finish(store, eb_test_result_wait(&done), repeat, error);
}

static void
take(EbStore *store, const char *id, const char *text)
{
    g_autoptr(EbChatMessage) message = eb_chat_message_new(id, "7", "3", text);
    gboolean repeat = TRUE;
    g_assert_true(receive(store, message, &repeat, NULL));
    g_assert_false(repeat);
}

static GPtrArray *
read_open(EbStore *store)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_journal_open_async(store, "chat", NULL, eb_test_result_ready, &done);
    GPtrArray *open = eb_journal_open_finish(store, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return open;
}

static void
mark(EbStore *store, const char *id, EbJournalState state, const char *session)
{
    g_auto(EbTestResult) done = {0};
    eb_journal_mark_async(store, "chat", id, state, session, NULL, eb_test_result_ready, &done);
    g_assert_true(eb_journal_mark_finish(store, eb_test_result_wait(&done), NULL));
}

static EbJournalEntry *
edit(EbStore *store, const char *id, const char *text)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    if (text != NULL)
        eb_journal_edit_async(store, "chat", id, text, NULL, eb_test_result_ready, &done);
    else
        eb_journal_withdraw_async(store, "chat", id, NULL, eb_test_result_ready, &done);
    EbJournalEntry *entry = eb_journal_change_finish(store, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return entry;
}

static GHashTable *
watermarks(EbStore *store)
{
    g_auto(EbTestResult) done = {0};
    eb_journal_watermarks_async(store, "chat", NULL, eb_test_result_ready, &done);
    return eb_journal_watermarks_finish(store, eb_test_result_wait(&done), NULL);
}

/* What a restart needs to go on stands there: the attachments and the time too. */
static void
test_whole(void)
{
    g_autofree char *dir = eb_test_temp_dir("journal");
    {
        g_autoptr(EbStore) store = open_store(dir);
        g_autoptr(EbChatMessage) message = eb_chat_message_new("11", NULL, "3", "look");
        message->sent_unix_ms = 1700000000123;
        message->extra = json_object_new();
        json_object_set_string_member(message->extra, "command", "stop");
        eb_chat_message_add_attachment(message, "21", "a \"b\"\n.txt", "text/plain", 5000000000, "https://files/21");
        eb_chat_message_add_attachment(message, "22", "c", NULL, 0, NULL);
        gboolean repeat = TRUE;
        g_assert_true(receive(store, message, &repeat, NULL));
        g_assert_false(repeat);
        g_assert_true(receive(store, message, &repeat, NULL));
        g_assert_true(repeat);
        eb_store_close(store);
    }
    g_autoptr(EbStore) store = open_store(dir);
    g_autoptr(GPtrArray) open = read_open(store);
    g_assert_cmpuint(open->len, ==, 1);
    EbJournalEntry *entry = open->pdata[0];
    EbChatMessage *message = entry->message;
    g_assert_null(message->thread);
    g_assert_cmpint(message->sent_unix_ms, ==, 1700000000123);
    g_assert_cmpstr(eb_json_get_string(message->extra, "command"), ==, "stop");
    g_assert_cmpuint(message->attachments->len, ==, 2);
    EbChatAttachment *first = message->attachments->pdata[0], *second = message->attachments->pdata[1];
    g_assert_cmpstr(first->id, ==, "21");
    g_assert_cmpstr(first->name, ==, "a \"b\"\n.txt");
    g_assert_cmpstr(first->content_type, ==, "text/plain");
    g_assert_cmpuint(first->size_bytes, ==, 5000000000);
    g_assert_cmpstr(first->url, ==, "https://files/21");
    g_assert_null(second->content_type);
    g_assert_null(second->url);
    eb_store_close(store);
}

static void
test_states_and_order(void)
{
    g_autofree char *dir = eb_test_temp_dir("journal");
    g_autoptr(EbStore) store = open_store(dir);
    for (guint i = 1; i <= 9; i++) {
        g_autofree char *id = g_strdup_printf("%u", 100 - i);
        take(store, id, "x");
    }
    mark(store, "98", EB_JOURNAL_STARTED, "aaaaaaaaaaaa");
    mark(store, "97", EB_JOURNAL_DONE, NULL);
    mark(store, "98", EB_JOURNAL_STARTED, NULL);
    g_autoptr(GPtrArray) open = read_open(store);
    g_assert_cmpuint(open->len, ==, 8);
    static const char *const order[] = {"99", "98", "96", "95", "94", "93", "92", "91"};
    for (guint i = 0; i < open->len; i++)
        g_assert_cmpstr(((EbJournalEntry *)open->pdata[i])->message->id, ==, order[i]);
    EbJournalEntry *started = open->pdata[1];
    g_assert_cmpint(started->state, ==, EB_JOURNAL_STARTED);
    g_assert_cmpstr(started->session, ==, "aaaaaaaaaaaa");
    eb_store_close(store);
}

static void
test_changes(void)
{
    g_autofree char *dir = eb_test_temp_dir("journal");
    g_autoptr(EbStore) store = open_store(dir);
    g_assert_null(edit(store, "1", "new"));
    g_assert_null(edit(store, "1", NULL));
    take(store, "1", "one");
    take(store, "2", "two");
    take(store, "3", "three");
    mark(store, "2", EB_JOURNAL_STARTED, "aaaaaaaaaaaa");
    mark(store, "3", EB_JOURNAL_DONE, NULL);
    g_autoptr(EbJournalEntry) waiting = edit(store, "1", "uno");
    g_assert_cmpstr(waiting->message->text, ==, "one");
    g_assert_cmpint(waiting->state, ==, EB_JOURNAL_RECEIVED);
    g_autoptr(EbJournalEntry) running = edit(store, "2", "due");
    g_assert_cmpint(running->state, ==, EB_JOURNAL_STARTED);
    g_autoptr(EbJournalEntry) over = edit(store, "3", "tre");
    g_assert_cmpint(over->state, ==, EB_JOURNAL_DONE);
    g_autoptr(GPtrArray) open = read_open(store);
    g_assert_cmpstr(((EbJournalEntry *)open->pdata[0])->message->text, ==, "uno");
    g_assert_cmpstr(((EbJournalEntry *)open->pdata[1])->message->text, ==, "two");
    /* Withdrawn: the words go everywhere, and nothing is begun that was not. */
    g_autoptr(EbJournalEntry) first = edit(store, "1", NULL);
    g_assert_cmpstr(first->message->text, ==, "uno");
    g_autoptr(EbJournalEntry) second = edit(store, "2", NULL);
    g_autoptr(EbJournalEntry) third = edit(store, "3", NULL);
    g_assert_cmpstr(third->message->text, ==, "three");
    g_autoptr(EbJournalEntry) again = edit(store, "3", NULL);
    g_assert_cmpstr(again->message->text, ==, "");
    g_autoptr(GPtrArray) left = read_open(store);
    g_assert_cmpuint(left->len, ==, 1);
    g_assert_cmpstr(((EbJournalEntry *)left->pdata[0])->message->text, ==, "");
    eb_store_close(store);
}

/* A full journal refuses what is new, knows a repeat all the same, and takes again when something is done. */
static void
test_bounds(void)
{
    g_autofree char *dir = eb_test_temp_dir("journal");
    g_autoptr(EbStore) store = open_store(dir);
    for (guint i = 0; i < EB_JOURNAL_MAX_OPEN; i++) {
        g_autofree char *id = g_strdup_printf("%u", i);
        take(store, id, "x");
    }
    gboolean repeat = FALSE;
    g_autoptr(GError) error = NULL;
    g_autoptr(EbChatMessage) surplus = eb_chat_message_new("surplus", NULL, "3", "x");
    g_assert_false(receive(store, surplus, &repeat, &error));
    eb_test_assert_error(error, EB_ERROR_QUOTA, "journal.full", "say it again");
    g_autoptr(EbChatMessage) known = eb_chat_message_new("5", NULL, "3", "x");
    g_assert_true(receive(store, known, &repeat, NULL));
    g_assert_true(repeat);
    mark(store, "5", EB_JOURNAL_DONE, NULL);
    g_assert_true(receive(store, surplus, &repeat, NULL));
    g_assert_false(repeat);
    g_autoptr(GPtrArray) open = read_open(store);
    g_assert_cmpuint(open->len, ==, EB_JOURNAL_MAX_OPEN);
    g_autofree char *huge = g_strnfill(EB_JOURNAL_MAX_BYTES + 1, 'x');
    g_autoptr(EbChatMessage) big = eb_chat_message_new("big", NULL, "3", huge);
    g_clear_error(&error);
    g_assert_false(receive(store, big, &repeat, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "journal.size", NULL);
    eb_store_close(store);
}

static void
test_watermarks(void)
{
    g_autofree char *dir = eb_test_temp_dir("journal");
    g_autoptr(EbStore) store = open_store(dir);
    g_autoptr(GHashTable) none = watermarks(store);
    g_assert_cmpuint(g_hash_table_size(none), ==, 0);
    eb_journal_set_watermark(store, "chat", NULL, "");
    eb_journal_set_watermark(store, "chat", NULL, "5");
    eb_journal_set_watermark(store, "other", NULL, "6");
    /* A thread nobody has a session in is not kept over a restart. */
    eb_journal_set_watermark(store, "chat", "7", "8");
    g_autoptr(GHashTable) some = watermarks(store);
    g_assert_cmpuint(g_hash_table_size(some), ==, 1);
    g_assert_cmpstr(g_hash_table_lookup(some, ""), ==, "5");
    eb_journal_forget_watermark(store, "chat", NULL);
    g_autoptr(GHashTable) gone = watermarks(store);
    g_assert_cmpuint(g_hash_table_size(gone), ==, 0);
    eb_store_close(store);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/journal/whole", test_whole);
    g_test_add_func("/journal/states-and-order", test_states_and_order);
    g_test_add_func("/journal/changes", test_changes);
    g_test_add_func("/journal/bounds", test_bounds);
    g_test_add_func("/journal/watermarks", test_watermarks);
    return g_test_run();
}
