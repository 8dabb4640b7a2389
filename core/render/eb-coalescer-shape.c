/* SPDX-License-Identifier: MIT */
/* Posts as messages for people. */
#include "core/render/eb-coalescer-private.h"

#include "core/render/eb-done-line.h"
#include "core/render/eb-post-words.h"
#include "core/render/eb-text-split.h"

#include <string.h>

/* Tools that a transport without edits was told of, or whose message is no longer changed; a turn has far fewer. */
#define MAX_TOLD_TOOLS 1024
#define MAX_WAITS 8
/* Of a long text other than the agent's, before the rest comes as a file. */
#define SHOWN_PARTS (EB_LIVE_MAX_PARTS - 1)

static gboolean
can(EbCoalescer *self, EbChatCaps cap)
{
    return (self->chat.caps & cap) != 0;
}

gboolean
eb_coalescer_repeats_tool(EbCoalescer *self, const EbChatPost *post)
{
    if (post->kind != EB_CHAT_POST_TOOL || post->key == NULL || can(self, EB_CHAT_CAP_STRUCTURED))
        return FALSE;
    const char *status = eb_json_get_string(post->data, "status");
    if (g_hash_table_size(self->told_tools) >= MAX_TOLD_TOOLS)
        g_hash_table_remove_all(self->told_tools);
    const char *told = g_hash_table_lookup(self->told_tools, post->key);
    if (told != NULL && (g_strcmp0(status, "failed") != 0 || g_str_equal(told, "failed")))
        return TRUE;
    g_hash_table_replace(self->told_tools, g_strdup(post->key), g_strdup(status != NULL ? status : ""));
    return FALSE;
}

/* --- what grows --- */

static void
close_text(EbCoalescer *self)
{
    g_autoptr(EbLive) text = g_steal_pointer(&self->text);
    g_clear_pointer(&self->text_key, g_free);
    if (text == NULL)
        return;
    eb_live_close(text);
    eb_coalescer_enqueue_live(self, text);
}

static void
close_tools(EbCoalescer *self)
{
    g_autoptr(EbLive) tools = g_steal_pointer(&self->tools);
    if (tools == NULL)
        return;
    eb_live_close(tools);
    eb_coalescer_enqueue_live(self, tools);
    if (!eb_live_tools_is_running(tools))
        return;
    g_queue_push_tail(&self->running, g_steal_pointer(&tools));
    if (self->running.length > EB_COALESCER_MAX_RUNNING)
        eb_live_unref(g_queue_pop_head(&self->running));
}

static void
close_all(EbCoalescer *self)
{
    close_text(self);
    close_tools(self);
}

static void
begin_text(EbCoalescer *self)
{
    g_autofree char *key = g_strdup_printf("c%u-text-%u", self->serial, ++self->lives);
    self->text = eb_live_text_new(&self->chat, key, g_get_monotonic_time());
}

static void
shape_text(EbCoalescer *self, const EbChatPost *post)
{
    if (self->text != NULL && g_strcmp0(self->text_key, post->key) != 0)
        close_text(self);
    if (self->text == NULL) {
        close_tools(self);
        begin_text(self);
        self->text_key = g_strdup(post->key);
    }
    eb_live_text_append(self->text, post->text != NULL ? post->text : "");
    g_autofree char *rest = eb_live_text_roll(self->text);
    while (rest != NULL) {
        g_autofree char *key = g_strdup(self->text_key);
        close_text(self);
        begin_text(self);
        self->text_key = g_steal_pointer(&key);
        eb_live_text_append(self->text, rest);
        g_free(rest);
        rest = eb_live_text_roll(self->text);
    }
    if (post->final)
        close_text(self);
    else
        eb_coalescer_enqueue_live(self, self->text);
}

/* The message that has the call already, among those that may change. */
static EbLive *
find_tool(EbCoalescer *self, const char *key)
{
    if (self->tools != NULL && eb_live_tools_has(self->tools, key))
        return self->tools;
    for (GList *link = self->running.tail; link != NULL; link = link->prev)
        if (eb_live_tools_has(link->data, key))
            return link->data;
    return NULL;
}

static void
shape_tool(EbCoalescer *self, const EbChatPost *post)
{
    EbLive *known = find_tool(self, post->key);
    if (known != NULL) {
        eb_live_tools_put(known, post);
        eb_coalescer_enqueue_live(self, known);
        if (known != self->tools && !eb_live_tools_is_running(known)) {
            g_queue_remove(&self->running, known);
            eb_live_unref(known);
        }
        /* Later changes of its line find no message any more: only a failure is worth another line. */
        eb_coalescer_repeats_tool(self, post);
        return;
    }
    if (eb_coalescer_repeats_tool(self, post))
        return;
    close_text(self);
    for (guint attempt = 0; attempt < 2; attempt++) {
        if (self->tools == NULL) {
            g_autofree char *key = g_strdup_printf("c%u-tools-%u", self->serial, ++self->lives);
            self->tools = eb_live_tools_new(&self->chat, key);
        }
        if (eb_live_tools_put(self->tools, post))
            break;
        close_tools(self);
    }
    if (self->tools != NULL)
        eb_coalescer_enqueue_live(self, self->tools);
}

static void
end_turn_of_tools(EbCoalescer *self)
{
    for (GList *link = self->running.head; link != NULL; link = link->next)
        if (eb_live_tools_end_turn(link->data))
            eb_coalescer_enqueue_live(self, link->data);
    g_queue_clear_full(&self->running, (GDestroyNotify)eb_live_unref);
    g_hash_table_remove_all(self->told_tools);
}

/* --- whole messages --- */

static guint
max_units(EbCoalescer *self, const EbChatPost *post)
{
    guint max = self->chat.limits.max_text_units;
    guint people = (post->notify != NULL ? 1 : 0) + (post->notify_also != NULL ? post->notify_also->len : 0);
    guint room = people * EB_COALESCER_NOTIFY_UNITS;
    return max >= EB_TEXT_SPLIT_MIN + room ? max - room : max;
}

static EbChatPost *
make_part(const EbChatPost *post, const char *text, gboolean first)
{
    EbChatPost *part = eb_chat_post_new(post->thread, post->kind, text);
    part->final = TRUE;
    /* Every part of an answer answers; anything else refers to what it is about once. */
    part->reply_to = first || post->kind == EB_CHAT_POST_ANSWER ? g_strdup(post->reply_to) : NULL;
    part->notify = first ? g_strdup(post->notify) : NULL;
    part->notify_also = first && post->notify_also != NULL ? g_ptr_array_ref(post->notify_also) : NULL;
    part->data = first && post->data != NULL ? json_object_ref(post->data) : NULL;
    return part;
}

static void
add_whole_file(EbCoalescer *self, const EbChatPost *post, const char *whole)
{
    g_autofree char *count = eb_done_line_count(g_utf8_strlen(whole, -1));
    g_autofree char *text = g_strdup_printf("this text is long (%s characters): all of it is in reply.md", count);
    EbChatPost *part = make_part(post, text, FALSE);
    g_autoptr(GBytes) bytes = g_bytes_new(whole, strlen(whole));
    part->files = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_file_free);
    g_ptr_array_add(part->files, eb_chat_file_new("reply.md", "text/markdown", bytes));
    eb_coalescer_enqueue(self, part);
}

/* @words: (nullable): nothing is shown. With @key the message can change, and is cut instead of split. */
static void
shape_words(EbCoalescer *self, const EbChatPost *post, const char *words, const char *key, gboolean final)
{
    if (words == NULL || eb_text_is_blank(words, -1))
        return;
    g_autofree char *text = eb_post_prepare(words, self->chat.limits.prepare);
    guint max = max_units(self, post);
    if (key != NULL && can(self, EB_CHAT_CAP_EDIT)) {
        g_autofree char *cut = max > 0 ? eb_text_cut_all(text, max) : g_strdup(text);
        EbChatPost *shown = make_part(post, cut, TRUE);
        shown->key = g_strdup(key);
        shown->final = final;
        eb_coalescer_enqueue(self, shown);
        return;
    }
    g_autoptr(GPtrArray) parts = eb_text_split(text, max);
    gboolean file = can(self, EB_CHAT_CAP_FILES) && parts->len > EB_LIVE_MAX_PARTS;
    for (guint i = 0; i < parts->len && !(file && i == SHOWN_PARTS); i++)
        eb_coalescer_enqueue(self, make_part(post, parts->pdata[i], i == 0));
    if (file)
        add_whole_file(self, post, words);
}

static void
shape_diff(EbCoalescer *self, const EbChatPost *post)
{
    const char *diff = eb_json_get_string(post->data, "diff");
    const char *path = eb_json_get_string(post->data, "path");
    guint max = self->chat.limits.max_text_units;
    if (diff == NULL || max == 0) {
        shape_words(self, post, post->text, NULL, TRUE);
        return;
    }
    g_autofree char *title =
        g_strdup_printf("`%s` +%" G_GINT64_FORMAT " −%" G_GINT64_FORMAT, path != NULL ? path : "?",
                        eb_json_get_int(post->data, "added", 0), eb_json_get_int(post->data, "removed", 0));
    g_autofree char *text = eb_post_words_fenced(title, "diff", diff, max, FALSE, self->chat.limits.prepare);
    eb_coalescer_enqueue(self, make_part(post, text, TRUE));
}

static char *
file_note(const EbChatFile *file, const char *why)
{
    g_autofree char *name = g_strdelimit(g_strdup(file->name), "`\r\n", '\'');
    g_autofree char *size = eb_done_line_count((gint64)g_bytes_get_size(file->bytes));
    return g_strdup_printf("`%s` (%s bytes) %s", name, size, why);
}

static void
add_note(EbCoalescer *self, const EbChatPost *post, const EbChatFile *file, const char *why)
{
    g_autofree char *note = file_note(file, why);
    g_autoptr(EbChatPost) plain = eb_chat_post_new(post->thread, EB_CHAT_POST_NOTICE, note);
    plain->reply_to = g_strdup(post->reply_to);
    shape_words(self, plain, note, NULL, TRUE);
}

/* Files in as many messages as they need; the text comes with the first. */
static void
shape_files(EbCoalescer *self, const EbChatPost *post)
{
    guint64 max_bytes = self->chat.limits.max_file_bytes;
    guint most = self->chat.limits.max_files > 0 ? self->chat.limits.max_files : G_MAXUINT;
    g_autofree char *prepared = eb_post_prepare(post->text != NULL ? post->text : "", self->chat.limits.prepare);
    guint max = max_units(self, post);
    gboolean fits = max == 0 || eb_text_units(prepared, -1) <= max;
    if (!fits || !can(self, EB_CHAT_CAP_FILES))
        shape_words(self, post, post->text, NULL, TRUE);
    EbChatPost *part = NULL;
    gboolean first = TRUE;
    for (guint i = 0; i < post->files->len; i++) {
        const EbChatFile *file = post->files->pdata[i];
        if (!can(self, EB_CHAT_CAP_FILES)) {
            add_note(self, post, file, "cannot be shown in this chat");
            continue;
        }
        if (max_bytes > 0 && g_bytes_get_size(file->bytes) > max_bytes) {
            add_note(self, post, file, "is too large for this chat");
            continue;
        }
        if (part != NULL && part->files->len >= most)
            eb_coalescer_enqueue(self, g_steal_pointer(&part));
        if (part == NULL) {
            part = make_part(post, first && fits ? prepared : "", first);
            part->files = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_file_free);
            first = FALSE;
        }
        g_ptr_array_add(part->files, eb_chat_file_new(file->name, file->content_type, file->bytes));
    }
    if (part != NULL)
        eb_coalescer_enqueue(self, part);
    else if (can(self, EB_CHAT_CAP_FILES) && fits)
        shape_words(self, post, post->text, NULL, TRUE);
}

/* --- what passes --- */

static void
retract(EbCoalescer *self, const char *key)
{
    if (!can(self, EB_CHAT_CAP_EDIT))
        return;
    EbChatPost *post = eb_chat_post_new(self->thread, EB_CHAT_POST_NOTICE, "");
    post->key = g_strdup(key);
    post->retract = TRUE;
    post->final = TRUE;
    eb_coalescer_enqueue(self, post);
}

/* Somebody is at work: nobody waits any more. */
static void
end_waits(EbCoalescer *self)
{
    GHashTableIter iter;
    gpointer key;
    g_hash_table_iter_init(&iter, self->waits);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        retract(self, key);
    g_hash_table_remove_all(self->waits);
}

static void
shape_wait(EbCoalescer *self, const EbChatPost *post)
{
    g_autofree char *key = g_strdup_printf("c%u-%s", self->serial, post->key);
    if (post->retract || eb_json_get_int(post->data, "position", 0) <= 0) {
        if (g_hash_table_remove(self->waits, key))
            retract(self, key);
        return;
    }
    if (!g_hash_table_contains(self->waits, key)) {
        if (g_hash_table_size(self->waits) >= MAX_WAITS)
            end_waits(self);
        close_all(self);
        g_hash_table_add(self->waits, g_strdup(key));
    }
    shape_words(self, post, post->text, key, FALSE);
}

static char *
stage_key(EbCoalescer *self)
{
    return g_strdup_printf("c%u-guest-%u", self->serial, self->stages);
}

/* The guest and the agent: one message that tells the stages and becomes the opening line. */
static void
shape_stage(EbCoalescer *self, const EbChatPost *post)
{
    gboolean ready = post->kind == EB_CHAT_POST_READY;
    if (!ready && !can(self, EB_CHAT_CAP_EDIT))
        return;
    if (!self->staged) {
        close_all(self);
        self->stages++;
    }
    self->staged = !ready;
    g_autofree char *words = eb_post_words(post);
    g_autofree char *key = stage_key(self);
    shape_words(self, post, words, key, ready);
}

static void
end_stage(EbCoalescer *self)
{
    if (!self->staged)
        return;
    self->staged = FALSE;
    g_autofree char *key = stage_key(self);
    retract(self, key);
}

void
eb_coalescer_shape_end(EbCoalescer *self)
{
    close_all(self);
    end_waits(self);
    end_stage(self);
}

static void
shape_plan(EbCoalescer *self, const EbChatPost *post)
{
    if (!self->planned) {
        close_all(self);
        self->plans++;
    } else if (!can(self, EB_CHAT_CAP_EDIT)) {
        return;
    }
    self->planned = TRUE;
    g_autofree char *words = eb_post_words(post);
    g_autofree char *key = g_strdup_printf("c%u-plan-%u", self->serial, self->plans);
    shape_words(self, post, words, key, FALSE);
}

static void
shape_end(EbCoalescer *self, const EbChatPost *post)
{
    end_stage(self);
    end_turn_of_tools(self);
    self->planned = FALSE;
    g_autofree char *last_error = g_steal_pointer(&self->last_error);
    const char *error = eb_json_get_string(post->data, "error");
    if (error == NULL || g_strcmp0(error, last_error) != 0) {
        g_autofree char *words = eb_post_words(post);
        shape_words(self, post, words, NULL, TRUE);
        return;
    }
    /* The message before says why. */
    g_autoptr(JsonObject) data = json_object_new();
    g_autoptr(GList) members = json_object_get_members(post->data);
    for (GList *link = members; link != NULL; link = link->next)
        if (!g_str_equal(link->data, "error") && !g_str_equal(link->data, "state"))
            json_object_set_member(data, link->data, json_node_copy(json_object_get_member(post->data, link->data)));
    json_object_set_string_member(data, "state", "failed");
    g_autofree char *words = eb_done_line(data);
    shape_words(self, post, words, NULL, TRUE);
}

static void
shape_kind(EbCoalescer *self, const EbChatPost *post)
{
    g_autofree char *words = NULL;
    switch (post->kind) {
    case EB_CHAT_POST_DIFF:
        shape_diff(self, post);
        return;
    case EB_CHAT_POST_END:
        shape_end(self, post);
        return;
    case EB_CHAT_POST_ERROR:
        end_stage(self);
        g_free(self->last_error);
        self->last_error = g_strdup(post->text);
        break;
    case EB_CHAT_POST_PERMISSION:
        /* The question itself shows its answer; that nobody gave one is news. */
        if (can(self, EB_CHAT_CAP_EDIT) && g_strcmp0(eb_json_get_string(post->data, "outcome"), "timeout") != 0)
            return;
        break;
    default:
        break;
    }
    words = eb_post_words(post);
    shape_words(self, post, words, NULL, TRUE);
}

static gboolean
is_work(EbChatPostKind kind)
{
    return kind != EB_CHAT_POST_NOTICE && kind != EB_CHAT_POST_ANSWER && kind != EB_CHAT_POST_FILE &&
           kind != EB_CHAT_POST_PERMISSION && kind != EB_CHAT_POST_BUSY && kind != EB_CHAT_POST_USAGE;
}

void
eb_coalescer_shape(EbCoalescer *self, EbChatPost *owned)
{
    g_autoptr(EbChatPost) post = owned;
    if (is_work(post->kind))
        end_waits(self);
    if (post->kind == EB_CHAT_POST_THOUGHT || post->kind == EB_CHAT_POST_USAGE)
        return;
    if (post->kind == EB_CHAT_POST_BUSY) {
        if (can(self, EB_CHAT_CAP_BUSY))
            eb_coalescer_enqueue(self, g_steal_pointer(&post));
        return;
    }
    if (post->append) {
        shape_text(self, post);
        return;
    }
    if (post->kind == EB_CHAT_POST_TOOL && post->key != NULL && can(self, EB_CHAT_CAP_EDIT)) {
        shape_tool(self, post);
        return;
    }
    if (eb_coalescer_repeats_tool(self, post))
        return;
    if (post->kind == EB_CHAT_POST_NOTICE && post->key != NULL &&
        (post->retract || eb_json_get_int(post->data, "position", -1) >= 0))
        shape_wait(self, post);
    else if (post->kind == EB_CHAT_POST_GUEST || post->kind == EB_CHAT_POST_READY)
        shape_stage(self, post);
    else if (post->kind == EB_CHAT_POST_PLAN)
        shape_plan(self, post);
    else {
        close_all(self);
        if (post->files != NULL && post->files->len > 0)
            shape_files(self, post);
        else
            shape_kind(self, post);
    }
}
