/* SPDX-License-Identifier: MIT */
#include "core/render/eb-done-line.h"
#include "core/render/eb-live-private.h"
#include "core/render/eb-post-words.h"
#include "core/render/eb-text-split.h"

#include <string.h>

typedef struct {
    char *text;
    gint64 sent_us;
} Shown;

typedef struct {
    EbLive live;
    GString *raw;
    gboolean dirty;    /* raw has what parts has not */
    gint64 render_us;  /* not before */
    GPtrArray *parts;  /* (element-type utf8): what is to be shown, at most EB_LIVE_MAX_PARTS where files can be */
    GArray *shown;     /* (element-type Shown): what was sent */
    gboolean overlong; /* goes on in a file; parts stay as they are */
    gboolean file_sent;
} LiveText;

static gboolean
can(LiveText *self, EbChatCaps cap)
{
    return (self->live.chat->caps & cap) != 0;
}

static gint64
interval_us(LiveText *self)
{
    return (gint64)MAX(self->live.chat->limits.edit_interval_ms, EB_LIVE_MIN_INTERVAL_MS) * 1000;
}

static void
render(LiveText *self, gint64 now_us)
{
    self->dirty = FALSE;
    self->render_us = now_us + interval_us(self);
    if (self->overlong)
        return;
    g_autofree char *prepared = eb_post_prepare(self->raw->str, self->live.chat->limits.prepare);
    g_ptr_array_unref(self->parts);
    self->parts = eb_text_split(prepared, eb_live_max_units(&self->live));
    if (!can(self, EB_CHAT_CAP_FILES))
        return;
    self->overlong = self->parts->len > EB_LIVE_MAX_PARTS;
    /* The last one is shown when it is certain that no file is needed. */
    guint show = self->overlong || !self->live.closed ? EB_LIVE_MAX_PARTS - 1 : EB_LIVE_MAX_PARTS;
    if (self->parts->len > show)
        g_ptr_array_set_size(self->parts, (int)show);
}

static EbChatPost *
send_part(LiveText *self, guint i, gint64 now_us)
{
    EbChatPost *post = eb_chat_post_new(self->live.chat->thread, EB_CHAT_POST_TEXT, self->parts->pdata[i]);
    if (can(self, EB_CHAT_CAP_EDIT))
        post->key = g_strdup_printf("%s-%u", self->live.key, i);
    post->final = self->live.closed;
    if (i >= self->shown->len)
        g_array_set_size(self->shown, i + 1);
    Shown *shown = &g_array_index(self->shown, Shown, i);
    g_free(shown->text);
    shown->text = g_strdup(post->text);
    shown->sent_us = now_us;
    return post;
}

static EbChatPost *
send_file(LiveText *self)
{
    self->file_sent = TRUE;
    g_autofree char *count = eb_done_line_count(g_utf8_strlen(self->raw->str, -1));
    g_autofree char *text = g_strdup_printf("this answer is long (%s characters): all of it is in reply.md", count);
    EbChatPost *post = eb_chat_post_new(self->live.chat->thread, EB_CHAT_POST_FILE, text);
    g_autoptr(GBytes) bytes = g_bytes_new(self->raw->str, self->raw->len);
    post->final = TRUE;
    post->files = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_file_free);
    g_ptr_array_add(post->files, eb_chat_file_new("reply.md", "text/markdown", bytes));
    return post;
}

static EbChatPost *
next(EbLive *live, gint64 now_us, gint64 *due_us)
{
    LiveText *self = (LiveText *)live;
    if (!live->closed && !can(self, EB_CHAT_CAP_EDIT))
        return NULL;
    if (self->dirty) {
        if (live->closed || now_us >= self->render_us)
            render(self, now_us);
        else if (!self->overlong)
            *due_us = self->render_us;
    }
    gint64 pace_us = (gint64)live->chat->limits.edit_interval_ms * 1000;
    for (guint i = 0; i < self->parts->len; i++) {
        if (i >= self->shown->len)
            return send_part(self, i, now_us);
        const Shown *shown = &g_array_index(self->shown, Shown, i);
        if (g_str_equal(shown->text, self->parts->pdata[i]))
            continue;
        if (now_us >= shown->sent_us + pace_us)
            return send_part(self, i, now_us);
        *due_us = MIN(*due_us, shown->sent_us + pace_us);
    }
    return live->closed && self->overlong && !self->file_sent ? send_file(self) : NULL;
}

static gsize
get_bytes(EbLive *live)
{
    return ((LiveText *)live)->raw->len;
}

static void
shown_clear(gpointer data)
{
    g_free(((Shown *)data)->text);
}

static void
text_free(EbLive *live)
{
    LiveText *self = (LiveText *)live;
    g_string_free(self->raw, TRUE);
    g_ptr_array_unref(self->parts);
    g_array_unref(self->shown);
    g_free(self);
}

EbLive *
eb_live_text_new(const EbLiveChat *chat, const char *key, gint64 now_us)
{
    static const EbLiveClass klass = {next, get_bytes, text_free};
    LiveText *self = g_new0(LiveText, 1);
    eb_live_init(&self->live, &klass, chat, key);
    self->raw = g_string_new(NULL);
    self->parts = g_ptr_array_new_with_free_func(g_free);
    self->shown = g_array_new(FALSE, TRUE, sizeof(Shown));
    g_array_set_clear_func(self->shown, shown_clear);
    /* A short text comes in one piece. */
    self->render_us = now_us + interval_us(self);
    return &self->live;
}

void
eb_live_text_append(EbLive *live, const char *text)
{
    LiveText *self = (LiveText *)live;
    /* Empty lines at its begin would keep the rest from being shown alike. */
    if (self->raw->len == 0)
        text += strspn(text, "\r\n");
    if (*text == '\0')
        return;
    g_string_append(self->raw, text);
    self->dirty = TRUE;
}

char *
eb_live_text_roll(EbLive *live)
{
    LiveText *self = (LiveText *)live;
    gsize max = EB_LIVE_MAX_TEXT_BYTES;
    if (can(self, EB_CHAT_CAP_FILES)) {
        guint64 file = live->chat->limits.max_file_bytes;
        max = file == 0 ? EB_LIVE_MAX_FILE_BYTES : (gsize)CLAMP(file, EB_LIVE_MAX_TEXT_BYTES, EB_LIVE_MAX_FILE_BYTES);
    }
    if (self->raw->len <= max)
        return NULL;
    live->closed = TRUE;
    /* Units are never more than bytes; a text of many bytes a character is cut later and still is within the bound. */
    g_autoptr(GPtrArray) parts = eb_text_split_parts(self->raw->str, (guint)max * 3 / 4);
    char *rest = g_strdup("");
    if (parts->len > 1) {
        const EbTextPart *first = parts->pdata[0];
        const EbTextPart *second = parts->pdata[1];
        g_free(rest);
        rest = g_strdup_printf("%.*s%s", (int)second->head, second->text, self->raw->str + second->start);
        g_string_assign(self->raw, first->text);
    }
    self->dirty = TRUE;
    return rest;
}
