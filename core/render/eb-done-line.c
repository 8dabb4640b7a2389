/* SPDX-License-Identifier: MIT */
#include "core/render/eb-done-line.h"

#include "errand-box-plugin.h"

#include <math.h>
#include <string.h>

#define MAX_REASON_BYTES 400
#define MAX_WORD_BYTES 100

char *
eb_done_line_count(gint64 count)
{
    static const char suffixes[] = "kMB";
    if (count < 1000)
        return g_strdup_printf("%" G_GINT64_FORMAT, MAX(count, 0));
    double value = (double)count;
    gsize step = 0;
    /* 999.5 and more would be shown as 1000. */
    for (value /= 1000; value >= 999.5 && suffixes[step + 1] != '\0'; step++)
        value /= 1000;
    gboolean tenths = value < 99.95 && fmod(round(value * 10), 10) != 0;
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(number, sizeof number, tenths ? "%.1f" : "%.0f", value);
    return g_strdup_printf("%s%c", number, suffixes[step]);
}

char *
eb_done_line_duration(gint64 ms)
{
    if (ms < 1000)
        return g_strdup_printf("%" G_GINT64_FORMAT " ms", MAX(ms, 0));
    if (ms < 59950) {
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        g_ascii_formatd(number, sizeof number, "%.1f", (double)ms / 1000);
        return g_strdup_printf("%s s", number);
    }
    gint64 seconds = ms / 1000 + (ms % 1000 >= 500);
    if (seconds < 3600)
        return g_strdup_printf("%" G_GINT64_FORMAT ":%02d", seconds / 60, (int)(seconds % 60));
    return g_strdup_printf("%" G_GINT64_FORMAT ":%02d:%02d", seconds / 3600, (int)(seconds / 60 % 60),
                           (int)(seconds % 60));
}

/* The first line that says something, cut at a character. */
static char *
first_line(const char *text, gsize max)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    const char *start = valid + strspn(valid, " \t\r\n");
    gsize length = strcspn(start, "\r\n");
    gboolean more = start[length + strspn(start + length, " \t\r\n")] != '\0';
    if (length > max) {
        length = max;
        while (length > 0 && ((guchar)start[length] & 0xc0) == 0x80)
            length--;
        more = TRUE;
    }
    return g_strdup_printf("%.*s%s", (int)length, start, more ? "…" : "");
}

static char *
state_word(JsonObject *data)
{
    static const struct {
        const char *reason;
        const char *word;
    } words[] = {
        {"end_turn", "done"},
        {"cancelled", "stopped"},
        {"error", "failed"},
        {"refusal", "refused"},
        {"max_tokens", "cut off: max tokens"},
        {"max_turn_requests", "cut off: max requests of a turn"},
    };
    const char *error = eb_json_get_string(data, "error");
    const char *state = eb_json_get_string(data, "state");
    const char *reason = eb_json_get_string(data, "stop_reason");
    if (error != NULL && *error != '\0') {
        g_autofree char *shown = first_line(error, MAX_REASON_BYTES);
        return g_strdup_printf("failed: %s", shown);
    }
    if (state != NULL && *state != '\0')
        return first_line(state, MAX_WORD_BYTES);
    if (reason == NULL || *reason == '\0')
        return g_strdup("done");
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        if (g_str_equal(reason, words[i].reason))
            return g_strdup(words[i].word);
    g_autofree char *shown = first_line(reason, MAX_WORD_BYTES);
    return g_strdup_printf("ended: %s", shown);
}

static void
add_time(GString *line, JsonObject *ms, const char *member)
{
    gint64 value = ms != NULL ? eb_json_get_int(ms, member, -1) : -1;
    if (value < 0 || (value == 0 && g_str_equal(member, "wait")))
        return;
    g_autofree char *shown = eb_done_line_duration(value);
    g_string_append_printf(line, " | %s %s", member, shown);
}

static void
add_tokens(GString *line, JsonObject *tokens)
{
    gint64 input = eb_json_get_int(tokens, "input", -1);
    gint64 output = eb_json_get_int(tokens, "output", -1);
    gint64 cached = eb_json_get_int(tokens, "cached", -1);
    gint64 total = eb_json_get_int(tokens, "total", -1);
    g_autofree char *in = eb_done_line_count(input);
    g_autofree char *out = eb_done_line_count(output);
    g_autofree char *all = eb_done_line_count(total);
    if (input >= 0 && output >= 0)
        g_string_append_printf(line, " | tokens %s in, %s out", in, out);
    else if (input >= 0)
        g_string_append_printf(line, " | tokens %s in", in);
    else if (output >= 0)
        g_string_append_printf(line, " | tokens %s out", out);
    else if (total >= 0)
        g_string_append_printf(line, " | tokens %s", all);
    else
        return;
    if (cached > 0 && input > 0)
        g_string_append_printf(line, ", %d%% cached", (int)round((double)MIN(cached, input) * 100 / (double)input));
}

static void
add_context(GString *line, JsonObject *context)
{
    gint64 used = eb_json_get_int(context, "used", -1);
    gint64 size = eb_json_get_int(context, "size", -1);
    if (used < 0)
        return;
    g_autofree char *shown = eb_done_line_count(used);
    g_string_append_printf(line, " | context %s", shown);
    if (size > 0) {
        g_autofree char *whole = eb_done_line_count(size);
        g_string_append_printf(line, "/%s (%d%%)", whole, (int)round((double)MIN(used, size) * 100 / (double)size));
    }
}

static void
add_cost(GString *line, JsonObject *data)
{
    double cost = eb_json_get_double(data, "cost", -1);
    const char *currency = eb_json_get_string(data, "currency");
    if (!isfinite(cost) || cost < 0 || cost > 1e12)
        return;
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(number, sizeof number, cost > 0 && cost < 0.095 ? "%.4f" : "%.2f", cost);
    if (currency == NULL || *currency == '\0' || g_ascii_strcasecmp(currency, "USD") == 0) {
        g_string_append_printf(line, " | $%s", number);
        return;
    }
    g_autofree char *unit = first_line(currency, 16);
    g_string_append_printf(line, " | %s %s", number, unit);
}

char *
eb_done_line(JsonObject *end_data)
{
    if (end_data == NULL)
        return g_strdup("done");
    g_autofree char *word = state_word(end_data);
    g_autoptr(GString) line = g_string_new(word);
    const char *model = eb_json_get_string(end_data, "model");
    if (model != NULL && *model != '\0') {
        g_autofree char *shown = first_line(model, MAX_WORD_BYTES);
        g_string_append_printf(line, " | %s", shown);
    }
    JsonObject *ms = eb_json_get_object(end_data, "ms");
    add_time(line, ms, "wait");
    add_time(line, ms, "turn");
    JsonObject *tokens = eb_json_get_object(end_data, "tokens");
    if (tokens != NULL)
        add_tokens(line, tokens);
    JsonObject *context = eb_json_get_object(end_data, "context");
    if (context != NULL)
        add_context(line, context);
    add_cost(line, end_data);
    return g_string_free(g_steal_pointer(&line), FALSE);
}
