/* SPDX-License-Identifier: MIT */
#include "core/render/eb-live-private.h"
#include "core/render/eb-post-words.h"
#include "core/render/eb-text-split.h"

#include <string.h>

/* Of what a failed call said; its end tells most. */
#define MAX_OUTPUT_UNITS 500
#define RUNNING " …"

typedef struct {
    char *key;
    char *text;   /* ready to be shown */
    char *output; /* (nullable): ready to be shown */
    gboolean running;
} Line;

typedef struct {
    EbLive live;
    GPtrArray *lines; /* (element-type Line), at most EB_LIVE_MAX_LINES */
    GHashTable *keys; /* (utf8 -> Line), both of lines */
    char *sent;       /* (nullable) */
    gint64 sent_us;
    gboolean changed;
} LiveTools;

static void
line_free(gpointer data)
{
    Line *line = data;
    g_free(line->key);
    g_free(line->text);
    g_free(line->output);
    g_free(line);
}

/* Room is kept for the mark of a call that runs. */
static gsize
line_units(const Line *line)
{
    return eb_text_units(line->text, -1) + eb_text_units(RUNNING, -1) + 1 +
           (line->output != NULL ? eb_text_units(line->output, -1) + 1 : 0);
}

static gsize
units_without(LiveTools *self, const Line *except)
{
    gsize units = 0;
    for (guint i = 0; i < self->lines->len; i++)
        if (self->lines->pdata[i] != except)
            units += line_units(self->lines->pdata[i]);
    return units;
}

static char *
render(LiveTools *self)
{
    GString *out = g_string_new(NULL);
    for (guint i = 0; i < self->lines->len; i++) {
        const Line *line = self->lines->pdata[i];
        g_string_append_printf(out, "%s%s%s", i > 0 ? "\n" : "", line->text, line->running ? RUNNING : "");
        if (line->output != NULL)
            g_string_append_printf(out, "\n%s", line->output);
    }
    return g_string_free(out, FALSE);
}

gboolean
eb_live_tools_is_running(EbLive *live)
{
    LiveTools *self = (LiveTools *)live;
    for (guint i = 0; i < self->lines->len; i++)
        if (((Line *)self->lines->pdata[i])->running)
            return TRUE;
    return FALSE;
}

static EbChatPost *
next(EbLive *live, gint64 now_us, gint64 *due_us)
{
    LiveTools *self = (LiveTools *)live;
    if (!self->changed)
        return NULL;
    gint64 pace_us = (gint64)live->chat->limits.edit_interval_ms * 1000;
    if (self->sent != NULL && now_us < self->sent_us + pace_us) {
        *due_us = self->sent_us + pace_us;
        return NULL;
    }
    self->changed = FALSE;
    g_autofree char *text = render(self);
    if (g_strcmp0(text, self->sent) == 0)
        return NULL;
    EbChatPost *post = eb_chat_post_new(live->chat->thread, EB_CHAT_POST_TOOL, text);
    post->key = g_strdup(live->key);
    post->final = live->closed && !eb_live_tools_is_running(live);
    g_free(self->sent);
    self->sent = g_steal_pointer(&text);
    self->sent_us = now_us;
    return post;
}

static gboolean
is_over(const char *status)
{
    return g_strcmp0(status, "completed") == 0 || g_strcmp0(status, "failed") == 0 ||
           g_strcmp0(status, "cancelled") == 0;
}

static Line *
make_line(LiveTools *self, const EbChatPost *post)
{
    Line *line = g_new0(Line, 1);
    g_autofree char *prepared = eb_post_prepare(post->text != NULL ? post->text : "", self->live.chat->limits.prepare);
    line->key = g_strdup(post->key);
    line->text = eb_text_cut_all(prepared, eb_live_max_units(&self->live) / 2);
    line->running = !post->final && !is_over(eb_json_get_string(post->data, "status"));
    return line;
}

/* What a failed call said, as far as there is room for it. */
static void
add_output(LiveTools *self, Line *line, const Line *instead, const EbChatPost *post)
{
    const char *output = eb_json_get_string(post->data, "output");
    if (g_strcmp0(eb_json_get_string(post->data, "status"), "failed") != 0 || output == NULL ||
        eb_text_is_blank(output, -1))
        return;
    gsize used = units_without(self, instead) + line_units(line) + 1;
    gsize max = eb_live_max_units(&self->live);
    gsize room = max > used ? MIN(max - used, MAX_OUTPUT_UNITS) : 0;
    if (room < EB_TEXT_SPLIT_MIN)
        return;
    line->output = eb_post_words_fenced(NULL, NULL, output, (guint)room, TRUE, self->live.chat->limits.prepare);
}

gboolean
eb_live_tools_put(EbLive *live, const EbChatPost *post)
{
    LiveTools *self = (LiveTools *)live;
    Line *old = g_hash_table_lookup(self->keys, post->key);
    if (old == NULL && self->lines->len >= EB_LIVE_MAX_LINES)
        return FALSE;
    Line *line = make_line(self, post);
    gsize room = eb_live_max_units(live) - MIN(units_without(self, old), eb_live_max_units(live));
    if (line_units(line) > room) {
        if (old == NULL) {
            line_free(line);
            return FALSE;
        }
        g_autofree char *whole = g_steal_pointer(&line->text);
        line->text = eb_text_cut_all(whole, room > 4 ? room - 4 : 0);
    }
    add_output(self, line, old, post);
    if (old == NULL) {
        g_ptr_array_add(self->lines, line);
        g_hash_table_replace(self->keys, line->key, line);
    } else {
        g_free(old->text);
        g_free(old->output);
        old->text = g_steal_pointer(&line->text);
        old->output = g_steal_pointer(&line->output);
        old->running = line->running;
        line_free(line);
    }
    self->changed = TRUE;
    return TRUE;
}

gboolean
eb_live_tools_has(EbLive *live, const char *key)
{
    return g_hash_table_contains(((LiveTools *)live)->keys, key);
}

gboolean
eb_live_tools_end_turn(EbLive *live)
{
    LiveTools *self = (LiveTools *)live;
    if (!eb_live_tools_is_running(live))
        return FALSE;
    for (guint i = 0; i < self->lines->len; i++)
        ((Line *)self->lines->pdata[i])->running = FALSE;
    self->changed = TRUE;
    return TRUE;
}

static gsize
get_bytes(EbLive *live)
{
    return ((LiveTools *)live)->lines->len * (gsize)100;
}

static void
tools_free(EbLive *live)
{
    LiveTools *self = (LiveTools *)live;
    g_hash_table_unref(self->keys);
    g_ptr_array_unref(self->lines);
    g_free(self->sent);
    g_free(self);
}

EbLive *
eb_live_tools_new(const EbLiveChat *chat, const char *key)
{
    static const EbLiveClass klass = {next, get_bytes, tools_free};
    LiveTools *self = g_new0(LiveTools, 1);
    eb_live_init(&self->live, &klass, chat, key);
    self->lines = g_ptr_array_new_with_free_func(line_free);
    self->keys = g_hash_table_new(g_str_hash, g_str_equal);
    return &self->live;
}
