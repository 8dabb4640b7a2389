/* SPDX-License-Identifier: MIT */
#include "core/selftest/eb-selftest-verdict.h"

#include <string.h>

typedef struct {
    EbSelftestLook *look;
    EbSelftestExpected *expected;
    GHashTable *rows; /* (utf8 id -> EbSelftestRow) (not owned) */
    GPtrArray *wrong; /* (element-type utf8) */
} Judge;

EbSelftestPrompt *
eb_selftest_prompt_new(const char *text, const char *session)
{
    EbSelftestPrompt *self = g_new0(EbSelftestPrompt, 1);
    self->text = g_strdup(text);
    self->session = g_strdup(session);
    return self;
}

void
eb_selftest_prompt_free(EbSelftestPrompt *self)
{
    if (self == NULL)
        return;
    g_free(self->text);
    g_free(self->session);
    g_free(self);
}

static void wrong(Judge *judge, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void
wrong(Judge *judge, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_ptr_array_add(judge->wrong, g_strdup_vprintf(format, args));
    va_end(args);
}

static gboolean
is_touched(Judge *judge, const char *id)
{
    return g_hash_table_contains(judge->expected->touched, id);
}

/* @text names a session that this run works on. */
static gboolean
names_touched(Judge *judge, const char *text)
{
    GHashTableIter iter;
    gpointer id;

    g_hash_table_iter_init(&iter, judge->expected->touched);
    while (g_hash_table_iter_next(&iter, &id, NULL))
        if (strstr(text, id) != NULL)
            return TRUE;
    return FALSE;
}

static void
judge_row(Judge *judge, const EbSelftestRow *row)
{
    EbSelftestFate fate = GPOINTER_TO_UINT(g_hash_table_lookup(judge->expected->fates, row->id));

    if (fate == EB_SELFTEST_GONE)
        wrong(judge, "row: session %s was removed and is listed again", row->id);
    if (is_touched(judge, row->id))
        return;
    if (strcmp(row->state, "ended") != 0)
        wrong(judge, "row: session %s is \"%s\", and no run has it", row->id, row->state);
    else if (row->instance != NULL || row->run != NULL)
        wrong(judge, "row: session %s has ended and still names a guest or a run", row->id);
    if (!g_hash_table_contains(judge->look->whole, row->id))
        wrong(judge, "lost: session %s is listed and its state directory is gone", row->id);
}

static void
judge_sessions(Judge *judge)
{
    GHashTableIter iter;
    gpointer id, fate;

    for (guint i = 0; i < judge->look->rows->len; i++)
        judge_row(judge, judge->look->rows->pdata[i]);
    g_hash_table_iter_init(&iter, judge->expected->fates);
    while (judge->expected->moment == EB_SELFTEST_RUNNING && g_hash_table_iter_next(&iter, &id, &fate))
        if (GPOINTER_TO_UINT(fate) == EB_SELFTEST_MUST_BE && !g_hash_table_contains(judge->rows, id))
            wrong(judge, "lost: session %s is not listed any more", (const char *)id);
}

static void
judge_directories(Judge *judge)
{
    GHashTableIter iter;
    gpointer id;

    g_hash_table_iter_init(&iter, judge->look->directories);
    while (g_hash_table_iter_next(&iter, &id, NULL)) {
        if (is_touched(judge, id))
            continue;
        if (!g_hash_table_contains(judge->rows, id))
            wrong(judge, "directory: sessions/%s belongs to no session", (const char *)id);
        else if (g_hash_table_contains(judge->look->running, id))
            wrong(judge, "directory: sessions/%s/run is there without a guest", (const char *)id);
    }
}

static void
judge_locks(Judge *judge)
{
    guint runs = 0, allowed = judge->expected->moment == EB_SELFTEST_RUNNING ? 1 : 0;

    for (guint i = 0; i < judge->look->locks->len; i++) {
        const char *name = judge->look->locks->pdata[i];
        if (g_str_has_prefix(name, "run-"))
            runs++;
        else if (g_str_has_prefix(name, "project-") && g_hash_table_size(judge->expected->touched) == 0)
            wrong(judge, "lock: %s is held for nobody", name);
    }
    if (runs > allowed)
        wrong(judge, "lock: %u runs have a lock, %u may", runs, allowed);
}

static void
judge_kernel(Judge *judge)
{
    for (guint i = 0; i < judge->look->mounts->len; i++) {
        const char *mount = judge->look->mounts->pdata[i];
        if (!names_touched(judge, mount))
            wrong(judge, "mount: %s", mount);
    }
    for (guint i = 0; i < judge->look->sockets->len; i++) {
        const char *socket = judge->look->sockets->pdata[i];
        gboolean own = judge->expected->moment == EB_SELFTEST_RUNNING && g_str_has_suffix(socket, "/run/control.sock");
        if (!own && !names_touched(judge, socket))
            wrong(judge, "socket: %s", socket);
    }
    if (judge->expected->moment == EB_SELFTEST_OVER && judge->look->open_questions > 0)
        wrong(judge, "row: %u questions wait for an answer that nobody can give", judge->look->open_questions);
}

static void
judge_guests(Judge *judge)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GHashTable *stale = judge->expected->stale;
    GHashTableIter iter;
    gpointer name;

    g_hash_table_iter_init(&iter, judge->look->instances);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        if (judge->expected->moment == EB_SELFTEST_RUNNING && names_touched(judge, name))
            continue;
        if (judge->expected->moment == EB_SELFTEST_OVER || g_hash_table_contains(stale, name))
            wrong(judge, "guest: %s outlived the run it was made in", (const char *)name);
        else
            g_hash_table_add(seen, g_strdup(name));
    }
    g_hash_table_remove_all(stale);
    g_hash_table_iter_init(&iter, seen);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        g_hash_table_iter_steal(&iter);
        g_hash_table_add(stale, name);
    }
}

static void
judge_prompt(Judge *judge, EbSelftestPrompt *prompt)
{
    const EbSelftestMessage *message = NULL;
    guint given = GPOINTER_TO_UINT(g_hash_table_lookup(judge->look->given, prompt->text));

    for (guint i = 0; i < judge->look->messages->len && message == NULL; i++)
        if (g_strcmp0(((EbSelftestMessage *)judge->look->messages->pdata[i])->body, prompt->text) == 0)
            message = judge->look->messages->pdata[i];
    if (given > 1)
        wrong(judge, "prompt: \"%s\" was given to an agent %u times", prompt->text, given);
    if (message == NULL)
        return; /* never written down, or gone with its session */
    prompt->journaled = TRUE;
    if (prompt->session != NULL && message->session != NULL && strcmp(prompt->session, message->session) != 0)
        wrong(judge, "prompt: \"%s\" was said to session %s and given to session %s", prompt->text, prompt->session,
              message->session);
    gboolean done = g_strcmp0(message->state, "done") == 0;
    if (judge->expected->moment == EB_SELFTEST_OVER && !done)
        wrong(judge, "prompt: \"%s\" was written down and is still \"%s\"", prompt->text, message->state);
    /* That a session could not start is said in its thread: nothing was lost. */
    gboolean late = message->session != NULL && g_hash_table_contains(judge->expected->late, message->session);
    if (done && given == 0 && !prompt->excused && !late && !g_hash_table_contains(judge->expected->told, message->id))
        wrong(judge, "prompt: \"%s\" is done, but no agent was given it and its loss was not told", prompt->text);
}

GPtrArray *
eb_selftest_judge(EbSelftestLook *look, EbSelftestExpected *expected)
{
    Judge judge = {look, expected, g_hash_table_new(g_str_hash, g_str_equal), g_ptr_array_new_with_free_func(g_free)};

    for (guint i = 0; i < look->rows->len; i++)
        g_hash_table_insert(judge.rows, ((EbSelftestRow *)look->rows->pdata[i])->id, look->rows->pdata[i]);
    judge_sessions(&judge);
    judge_directories(&judge);
    judge_locks(&judge);
    judge_kernel(&judge);
    judge_guests(&judge);
    for (guint i = 0; i < expected->prompts->len; i++)
        judge_prompt(&judge, expected->prompts->pdata[i]);
    g_hash_table_unref(judge.rows);
    return judge.wrong;
}
