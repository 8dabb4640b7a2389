/* SPDX-License-Identifier: MIT */
#include "core/acp/eb-acp-stderr.h"

#include "core/base/eb-line-framer.h"
#include "errand-box-plugin.h"

#include <string.h>

#define MAX_LINE ((gsize)4 * 1024)
#define READ_CHUNK ((gsize)16 * 1024)
#define SHOWN_BYTES 1000

struct _EbAcpStderr {
    guint ref_count; /* the owner's and the read's under way */
    GInputStream *stream;
    GCancellable *cancellable;
    EbLineFramer *framer;
    EbAcpStderrLine callback; /* NULL once freed */
    gpointer user_data;
    GString *tail; /* at most EB_ACP_STDERR_TAIL characters */
    gboolean ended;
    char buffer[READ_CHUNK];
};

static void read_more(EbAcpStderr *self);

static void
release(EbAcpStderr *self)
{
    if (--self->ref_count > 0)
        return;
    g_clear_object(&self->stream);
    g_clear_object(&self->cancellable);
    g_clear_pointer(&self->framer, eb_line_framer_free);
    g_string_free(self->tail, TRUE);
    g_free(self);
}

static void
keep(EbAcpStderr *self, const char *line)
{
    glong characters;

    if (self->tail->len > 0)
        g_string_append_c(self->tail, '\n');
    g_string_append(self->tail, line);
    characters = g_utf8_strlen(self->tail->str, (gssize)self->tail->len);
    if (characters > EB_ACP_STDERR_TAIL) {
        const char *from = g_utf8_offset_to_pointer(self->tail->str, characters - EB_ACP_STDERR_TAIL);
        const char *line_start = strchr(from, '\n');

        g_string_erase(self->tail, 0, (line_start != NULL ? line_start + 1 : from) - self->tail->str);
    }
}

static void
take_lines(EbAcpStderr *self)
{
    const char *line = NULL;
    gsize length = 0;
    EbLineStatus status;

    while (self->callback != NULL &&
           ((status = eb_line_framer_next(self->framer, &line, &length)) == EB_LINE_READY || status == EB_LINE_CUT)) {
        g_autofree char *escaped = NULL;

        if (length == 0)
            continue;
        escaped = eb_log_escape(line, (gssize)length, SHOWN_BYTES);
        keep(self, escaped);
        self->callback(escaped, self->user_data);
    }
}

static void
on_read(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbAcpStderr *self = user_data;
    const gssize got = g_input_stream_read_finish(G_INPUT_STREAM(source), result, NULL);

    if (self->callback != NULL) {
        if (got > 0)
            eb_line_framer_push(self->framer, self->buffer, (gsize)got);
        else
            eb_line_framer_end(self->framer);
        take_lines(self);
    }
    if (self->callback != NULL && got > 0) {
        read_more(self);
    } else if (self->callback != NULL) {
        self->ended = TRUE;
        self->callback(NULL, self->user_data);
    }
    release(self);
}

static void
read_more(EbAcpStderr *self)
{
    self->ref_count++;
    g_input_stream_read_async(self->stream, self->buffer, READ_CHUNK, G_PRIORITY_DEFAULT, self->cancellable, on_read,
                              self);
}

EbAcpStderr *
eb_acp_stderr_new(GInputStream *stream, EbAcpStderrLine callback, gpointer user_data)
{
    EbAcpStderr *self = g_new0(EbAcpStderr, 1);

    self->ref_count = 1;
    self->stream = g_object_ref(stream);
    self->cancellable = g_cancellable_new();
    self->framer = eb_line_framer_new(MAX_LINE, EB_LINE_OVERFLOW_CUT);
    self->callback = callback;
    self->user_data = user_data;
    self->tail = g_string_new(NULL);
    read_more(self);
    return self;
}

void
eb_acp_stderr_free(EbAcpStderr *self)
{
    if (self == NULL)
        return;
    self->callback = NULL;
    g_cancellable_cancel(self->cancellable);
    release(self);
}

const char *
eb_acp_stderr_get_tail(EbAcpStderr *self)
{
    return self->tail->str;
}

gboolean
eb_acp_stderr_has_ended(EbAcpStderr *self)
{
    return self->ended;
}
