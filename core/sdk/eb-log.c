/* SPDX-License-Identifier: MIT */
#include "eb-log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "eb-log-private.h"

#define EVENT_FIELDS_MAX 16

void
eb_log_event(GLogLevelFlags level, const char *domain, const char *message, ...)
{
    GLogField fields[EVENT_FIELDS_MAX];
    gsize n = 0;
    va_list args;
    const char *priority = (level & G_LOG_LEVEL_CRITICAL)  ? "4"
                           : (level & G_LOG_LEVEL_WARNING) ? "4"
                           : (level & G_LOG_LEVEL_MESSAGE) ? "5"
                           : (level & G_LOG_LEVEL_INFO)    ? "6"
                                                           : "7";

    g_return_if_fail(message != NULL);
    fields[n++] = (GLogField){"PRIORITY", priority, -1};
    fields[n++] = (GLogField){"MESSAGE", message, -1};
    if (domain != NULL)
        fields[n++] = (GLogField){"GLIB_DOMAIN", domain, -1};
    va_start(args, message);
    for (;;) {
        const char *key = va_arg(args, const char *);
        const char *value;

        if (key == NULL)
            break;
        value = va_arg(args, const char *);
        if (value != NULL && n < G_N_ELEMENTS(fields))
            fields[n++] = (GLogField){key, value, -1};
    }
    va_end(args);
    g_log_structured_array(level, fields, n);
}

/* Bytes of the sequence at @text, 0 when it is malformed or not to be shown (control, bidi override, separators). */
static gsize
printable_length(const char *text, gsize left)
{
    gunichar c = g_utf8_get_char_validated(text, (gssize)left);
    gsize length;

    if (c == (gunichar)-1 || c == (gunichar)-2)
        return 0;
    length = (gsize)g_unichar_to_utf8(c, NULL);
    switch (g_unichar_type(c)) {
    case G_UNICODE_CONTROL:
    case G_UNICODE_FORMAT:
    case G_UNICODE_LINE_SEPARATOR:
    case G_UNICODE_PARAGRAPH_SEPARATOR:
    case G_UNICODE_SURROGATE:
        return 0;
    default:
        return length;
    }
}

char *
eb_log_escape(const char *text, gssize length, gsize max_bytes)
{
    GString *result = g_string_new(NULL);
    const char *at = text;
    const char *end;

    if (text == NULL)
        return g_string_free(result, FALSE);
    end = text + (length < 0 ? (gssize)strlen(text) : length);
    while (at < end) {
        gsize n = printable_length(at, (gsize)(end - at));
        gsize shown = n > 0 ? n : 4;

        if (result->len + shown > max_bytes) {
            g_string_append(result, "…");
            break;
        }
        if (n > 0) {
            g_string_append_len(result, at, (gssize)n);
            at += n;
        } else {
            g_string_append_printf(result, "\\x%02x", (guint8)*at);
            at++;
        }
    }
    return g_string_free(result, FALSE);
}

/* --- the writer of the programs --- */

static struct {
    int verbosity;
    gboolean json;
    gboolean journal;
    gboolean time; /* text goes to a file or a supervisor that adds no time itself */
} writer;

static const char *
level_to_string(GLogLevelFlags level)
{
    if (level & G_LOG_LEVEL_ERROR)
        return "fatal";
    if (level & G_LOG_LEVEL_CRITICAL)
        return "critical";
    if (level & G_LOG_LEVEL_WARNING)
        return "warning";
    if (level & G_LOG_LEVEL_MESSAGE)
        return "notice";
    return (level & G_LOG_LEVEL_INFO) ? "info" : "debug";
}

static gboolean
is_shown(GLogLevelFlags level, const char *domain)
{
    if ((level & (G_LOG_LEVEL_INFO | G_LOG_LEVEL_DEBUG)) == 0)
        return TRUE;
    if ((level & G_LOG_LEVEL_INFO) != 0)
        return writer.verbosity >= 1;
    if (writer.verbosity >= 3)
        return TRUE;
    return writer.verbosity == 2 && domain != NULL && g_str_has_prefix(domain, "eb-");
}

static const char *
find_field(const GLogField *fields, gsize n_fields, const char *key)
{
    for (gsize i = 0; i < n_fields; i++) {
        if (strcmp(fields[i].key, key) == 0 && fields[i].length < 0)
            return fields[i].value;
    }
    return NULL;
}

/* "EB_SESSION" is shown as "session"; NULL for the fields that say how a line was made. */
static char *
shown_key(const char *key)
{
    return g_str_has_prefix(key, "EB_") ? g_ascii_strdown(key + 3, -1) : NULL;
}

static void
append_json_string(GString *line, const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);

    g_string_append_c(line, '"');
    for (const char *at = valid; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            g_string_append_c(line, '\\');
        if ((guint8)*at < 0x20)
            g_string_append_printf(line, "\\u%04x", (guint8)*at);
        else
            g_string_append_c(line, *at);
    }
    g_string_append_c(line, '"');
}

static void
append_json_member(GString *line, const char *key, const char *value)
{
    if (value == NULL)
        return;
    g_string_append(line, line->len == 0 ? "{" : ",");
    append_json_string(line, key);
    g_string_append_c(line, ':');
    append_json_string(line, value);
}

static GString *
format_json(GLogLevelFlags level, const char *domain, const char *message, const GLogField *fields, gsize n_fields)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *stamp = g_date_time_format_iso8601(now);
    GString *line = g_string_new(NULL);

    append_json_member(line, "ts", stamp);
    append_json_member(line, "level", level_to_string(level));
    append_json_member(line, "domain", domain);
    append_json_member(line, "message", message);
    for (gsize i = 0; i < n_fields; i++) {
        g_autofree char *key = shown_key(fields[i].key);

        if (key != NULL && fields[i].length < 0)
            append_json_member(line, key, fields[i].value);
    }
    g_string_append(line, "}\n");
    return line;
}

static GString *
format_text(GLogLevelFlags level, const char *domain, const char *message, const GLogField *fields, gsize n_fields)
{
    g_autofree char *escaped = eb_log_escape(message, -1, 8192);
    GString *line = g_string_new(NULL);

    if (writer.time) {
        g_autoptr(GDateTime) now = g_date_time_new_now_utc();
        g_autofree char *stamp = g_date_time_format(now, "%Y-%m-%dT%H:%M:%S.%fZ ");

        g_string_append(line, stamp);
    }
    g_string_append_printf(line, "%s %s: %s", level_to_string(level), domain != NULL ? domain : "-", escaped);
    for (gsize i = 0; i < n_fields; i++) {
        g_autofree char *key = shown_key(fields[i].key);

        if (key != NULL && fields[i].length < 0) {
            g_autofree char *value = eb_log_escape(fields[i].value, -1, 512);

            g_string_append_printf(line, " %s=%s", key, value);
        }
    }
    g_string_append_c(line, '\n');
    return line;
}

static void
write_line(const GString *line)
{
    gsize done = 0;

    while (done < line->len) {
        ssize_t n = write(STDERR_FILENO, line->str + done, line->len - done);

        if (n <= 0)
            return; /* nobody reads our errors; there is no other place to say so */
        done += (gsize)n;
    }
}

static GLogWriterOutput
write_masked(GLogLevelFlags level, const GLogField *fields, gsize n_fields, gpointer user_data)
{
    const char *domain = find_field(fields, n_fields, "GLIB_DOMAIN");
    g_autoptr(GPtrArray) texts = NULL;
    g_autofree GLogField *masked = NULL;
    GString *line;

    if (!is_shown(level, domain))
        return G_LOG_WRITER_HANDLED;
    texts = g_ptr_array_new_with_free_func(g_free);
    masked = g_memdup2(fields, sizeof(*fields) * n_fields);
    for (gsize i = 0; i < n_fields; i++) {
        /* Fields with a length are binary and pointers of GLib's own; none of ours. */
        if (fields[i].length >= 0 || fields[i].value == NULL)
            continue;
        masked[i].value = eb_log_mask_text(fields[i].value, -1);
        g_ptr_array_add(texts, (gpointer)masked[i].value);
    }
    if (writer.journal && g_log_writer_journald(level, masked, n_fields, NULL) == G_LOG_WRITER_HANDLED)
        return G_LOG_WRITER_HANDLED;
    domain = find_field(masked, n_fields, "GLIB_DOMAIN");
    line = (writer.json ? format_json : format_text)(level, domain, find_field(masked, n_fields, "MESSAGE"), masked,
                                                     n_fields);
    write_line(line);
    g_string_free(line, TRUE);
    return G_LOG_WRITER_HANDLED;
}

void
eb_log_setup(int verbosity, gboolean json)
{
    static gboolean installed = FALSE;

    writer.verbosity = verbosity;
    writer.json = json;
    writer.journal = !json && g_log_writer_is_journald(STDERR_FILENO);
    writer.time = !isatty(STDERR_FILENO);
    if (!installed)
        g_log_set_writer_func(write_masked, NULL, NULL);
    installed = TRUE;
}
