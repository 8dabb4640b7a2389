/* SPDX-License-Identifier: MIT */
#include "core/daemon/eb-daemon-health-rules.h"

#include "core/base/eb-json-members.h"

#include <string.h>

/* Of one refusal or notice: the others are counted, and the doctor shows them. */
#define MAX_NAMED 3
#define MAX_ID 40
#define MAX_TITLE 80

/* From which status on a check holds new sessions. */
typedef enum { HOLD_DEGRADED = 0, HOLD_FAIL, HOLD_NEVER } Hold;

typedef struct {
    char *id, *title, *observed, *remedy;
    EbCheckStatus status;
    Hold hold;
    gboolean watch, accepted;
    gboolean holds;   /* new sessions, by this one */
    gboolean suspect; /* it would, if it is so the next time too */
    gboolean warned;  /* people were told that it runs out */
    guint clean;      /* reports in a row without a reason to hold */
    gint64 since_ms;  /* when it became what it is */
} Row;

struct _EbHealthRules {
    char **accepted;
    GPtrArray *rows; /* (element-type Row), at most EB_HEALTH_MAX_CHECKS, in the doctor's order */
    gboolean known;  /* a report was taken */
    char *failure;   /* (nullable) */
};

static void
row_free(gpointer data)
{
    Row *row = data;

    g_free(row->id);
    g_free(row->title);
    g_free(row->observed);
    g_free(row->remedy);
    g_free(row);
}

EbHealthRules *
eb_health_rules_new(const char *const *accepted)
{
    EbHealthRules *self = g_new0(EbHealthRules, 1);

    self->accepted = accepted != NULL ? g_strdupv((char **)accepted) : g_new0(char *, 1);
    self->rows = g_ptr_array_new_with_free_func(row_free);
    return self;
}

void
eb_health_rules_free(EbHealthRules *self)
{
    if (self == NULL)
        return;
    g_strfreev(self->accepted);
    g_ptr_array_unref(self->rows);
    g_free(self->failure);
    g_free(self);
}

static gboolean
is_accepted(const EbHealthRules *self, const char *id)
{
    return g_strv_contains((const char *const *)self->accepted, id);
}

/* --- reading a report --- */

static gboolean
read_status(const char *word, EbCheckStatus *status)
{
    static const EbCheckStatus all[] = {EB_CHECK_OK, EB_CHECK_DEGRADED, EB_CHECK_FAIL, EB_CHECK_SKIPPED};

    for (gsize i = 0; i < G_N_ELEMENTS(all); i++) {
        if (g_strcmp0(word, eb_check_status_to_string(all[i])) != 0)
            continue;
        *status = all[i];
        return TRUE;
    }
    return FALSE;
}

/* Plugins bring ids of their own; they go into messages and command lines. */
static gboolean
is_id(const char *text)
{
    gsize length = text != NULL ? strlen(text) : 0;

    return length > 0 && length <= MAX_ID && g_ascii_isalpha(text[0]) &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") == length;
}

static char *
get_text(JsonObject *object, const char *member, gsize max)
{
    const char *text = eb_json_get_string(object, member);

    return eb_log_escape(text != NULL ? text : "", -1, max);
}

/* What a gap costs is for the one who decides about it, who asks the doctor; a notice says what is. */
static void
drop_cost(char *observed)
{
    char *cost = strstr(observed, ". Cost: ");

    if (cost != NULL)
        *cost = '\0';
}

/* (transfer full) (nullable): NULL when it is no row of a report */
static Row *
read_row(const EbHealthRules *self, JsonObject *object)
{
    const char *id = eb_json_get_string(object, "id"), *hold = eb_json_get_string(object, "hold");
    EbCheckStatus status;
    Row *row;

    if (!is_id(id) || !read_status(eb_json_get_string(object, "status"), &status))
        return NULL;
    row = g_new0(Row, 1);
    row->id = g_strdup(id);
    row->status = status;
    row->title = get_text(object, "title", MAX_TITLE);
    row->observed = get_text(object, "observed", EB_HEALTH_MAX_TEXT);
    drop_cost(row->observed);
    row->remedy = get_text(object, "remedy", EB_HEALTH_MAX_TEXT);
    row->watch = eb_json_get_bool(object, "watch", FALSE);
    row->hold = g_strcmp0(hold, "fail") == 0 ? HOLD_FAIL : g_strcmp0(hold, "never") == 0 ? HOLD_NEVER : HOLD_DEGRADED;
    row->accepted = is_accepted(self, id);
    return row;
}

static gboolean
is_against(const Row *row)
{
    if (row->hold == HOLD_NEVER)
        return FALSE;
    return row->status == EB_CHECK_FAIL ||
           (row->status == EB_CHECK_DEGRADED && row->hold == HOLD_DEGRADED && !row->accepted);
}

static void
merge(EbHealthRules *self, Row *row, gint64 now_ms)
{
    Row *old = NULL;

    for (guint i = 0; i < self->rows->len && old == NULL; i++)
        if (strcmp(((Row *)self->rows->pdata[i])->id, row->id) == 0)
            old = self->rows->pdata[i];
    row->since_ms = old != NULL && old->status == row->status ? old->since_ms : now_ms;
    row->clean = is_against(row) || old == NULL ? 0 : old->clean + 1;
    /* What is so from the beginning is for the operator, who finds it in the status. */
    row->warned = row->status != EB_CHECK_OK && (old == NULL || old->warned);
    row->suspect = is_against(row) && old != NULL && !is_against(old);
    row->holds = (is_against(row) && !row->suspect) ||
                 (old != NULL && old->holds && row->hold == HOLD_FAIL && row->clean < EB_HEALTH_CLEAN_RUNS);
    if (old == NULL) {
        g_ptr_array_add(self->rows, row);
        return;
    }
    Row swap = *old;
    *old = *row;
    *row = swap;
    row_free(row);
}

gboolean
eb_health_rules_take(EbHealthRules *self, JsonNode *report, gboolean whole, gint64 now_ms, GError **error)
{
    JsonObject *object = eb_json_node_object(report);
    JsonArray *checks = object != NULL ? eb_json_get_array(object, "checks") : NULL;
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func(row_free);
    g_autoptr(GHashTable) ids = g_hash_table_new(g_str_hash, g_str_equal);
    guint n = checks != NULL ? json_array_get_length(checks) : 0;

    if (checks == NULL || eb_json_get_int(object, "schema", 0) != 1 || n > EB_HEALTH_MAX_CHECKS) {
        eb_set_error(error, EB_ERROR_PROTOCOL, "health.report", "what the doctor printed is not its report");
        return FALSE;
    }
    for (guint i = 0; i < self->rows->len && !whole; i++)
        g_hash_table_add(ids, ((Row *)self->rows->pdata[i])->id);
    for (guint i = 0; i < n; i++) {
        Row *row = read_row(self, eb_json_array_object(checks, i));
        if (row != NULL) {
            g_ptr_array_add(rows, row);
            g_hash_table_add(ids, row->id);
        }
        if (row == NULL || g_hash_table_size(ids) > EB_HEALTH_MAX_CHECKS) {
            eb_set_error(error, EB_ERROR_PROTOCOL, "health.report", "row %u of the doctor's report is none", i);
            return FALSE;
        }
    }
    for (guint i = self->rows->len; whole && i > 0; i--)
        if (!g_hash_table_contains(ids, ((Row *)self->rows->pdata[i - 1])->id))
            g_ptr_array_remove_index(self->rows, i - 1);
    while (rows->len > 0)
        merge(self, g_ptr_array_steal_index(rows, 0), now_ms);
    self->known = TRUE;
    return TRUE;
}

gboolean
eb_health_rules_note_failure(EbHealthRules *self, const GError *why)
{
    g_autofree char *text = why != NULL ? eb_log_escape(why->message, -1, EB_HEALTH_MAX_TEXT) : NULL;

    if (g_strcmp0(text, self->failure) == 0)
        return FALSE;
    g_free(self->failure);
    self->failure = g_steal_pointer(&text);
    return TRUE;
}

const char *
eb_health_rules_get_failure(const EbHealthRules *self)
{
    return self->failure;
}

/* --- the start --- */

static void
append_gap(GString *list, GString *line, const char *id, const char *title, const char *seen)
{
    g_string_append_printf(list, "%s%s %s (%s)", list->len > 0 ? "; " : "", id, title, seen);
    g_string_append_printf(line, "%s\"%s\"", line->len > 0 ? ", " : "", id);
}

static const Row *
find_row(const EbHealthRules *self, const char *id)
{
    for (guint i = 0; i < self->rows->len; i++)
        if (strcmp(((const Row *)self->rows->pdata[i])->id, id) == 0)
            return self->rows->pdata[i];
    return NULL;
}

gboolean
eb_health_rules_gate(const EbHealthRules *self, const EbProbeReport *probe, const char *config_file, GError **error)
{
    g_autoptr(GString) list = g_string_new(NULL), line = g_string_new(NULL);
    guint known;

    /* The line is whole, so that it can take the place of the one that is there. */
    for (char **id = self->accepted; *id != NULL; id++)
        g_string_append_printf(line, "%s\"%s\"", line->len > 0 ? ", " : "", *id);
    for (guint i = 0; i < self->rows->len; i++) {
        const Row *row = self->rows->pdata[i];
        if (row->status == EB_CHECK_DEGRADED && is_against(row))
            append_gap(list, line, row->id, row->title, row->observed);
    }
    known = probe != NULL ? probe->items->len : 0;
    for (guint i = 0; i < known; i++) {
        const EbProbeItem *item = probe->items->pdata[i];
        const char *id = item->degraded_id != NULL ? item->degraded_id : item->guarantee;
        const Row *row = find_row(self, id);
        if (item->enforced || is_accepted(self, id) ||
            (row != NULL && row->status == EB_CHECK_DEGRADED && is_against(row)))
            continue;
        append_gap(list, line, id, item->guarantee,
                   item->detail != NULL && *item->detail != '\0' ? item->detail : "not enforced");
    }
    if (list->len == 0)
        return TRUE;
    eb_set_error(
        error, EB_ERROR_DEGRADED, "health.degraded",
        "this host cannot do all that is promised: %s. Put it right as the doctor says (errand-box doctor), or accept "
        "what it costs by this line in [service] of %s: accept_degraded = [%s]",
        list->str, config_file, line->str);
    return FALSE;
}

/* --- afterwards --- */

GError *
eb_health_rules_hold(const EbHealthRules *self)
{
    g_autoptr(GString) text = g_string_new(NULL);
    EbErrorCode code = EB_ERROR_DEGRADED;
    guint count = 0;

    for (guint i = 0; i < self->rows->len; i++) {
        const Row *row = self->rows->pdata[i];
        if (!row->holds)
            continue;
        if (row->status != EB_CHECK_DEGRADED || row->hold == HOLD_FAIL)
            code = EB_ERROR_UNAVAILABLE;
        if (++count > MAX_NAMED)
            continue;
        g_string_append_printf(text, "%s%s %s: %s", text->len > 0 ? "; " : "", row->id, row->title, row->observed);
        if (*row->remedy != '\0')
            g_string_append_printf(text, " (to do: %s)", row->remedy);
    }
    if (count > MAX_NAMED)
        g_string_append_printf(text, "; and %u more (errand-box doctor)", count - MAX_NAMED);
    if (count > 0)
        return eb_error_new(code, "health.hold", "%s", text->str);
    if (!self->known && self->failure != NULL)
        return eb_error_new(EB_ERROR_UNAVAILABLE, "health.unknown",
                            "what this host can do is not known, because the doctor does not work: %s (to do: "
                            "errand-box doctor)",
                            self->failure);
    return NULL;
}

char *
eb_health_rules_warn(EbHealthRules *self)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; i < self->rows->len; i++) {
        Row *row = self->rows->pdata[i];
        if (row->hold != HOLD_FAIL || row->status != EB_CHECK_DEGRADED || row->holds || row->warned || row->accepted)
            continue;
        row->warned = TRUE;
        g_string_append_printf(text, "%s%s %s: %s", text->len > 0 ? "; " : "", row->id, row->title, row->observed);
    }
    return text->len > 0 ? g_string_free(g_steal_pointer(&text), FALSE) : NULL;
}

char **
eb_health_rules_watched(const EbHealthRules *self)
{
    g_autoptr(GStrvBuilder) ids = g_strv_builder_new();

    for (guint i = 0; i < self->rows->len; i++) {
        const Row *row = self->rows->pdata[i];
        if (row->watch || row->holds)
            g_strv_builder_add(ids, row->id);
    }
    return g_strv_builder_end(ids);
}

char **
eb_health_rules_suspects(const EbHealthRules *self)
{
    g_autoptr(GStrvBuilder) ids = g_strv_builder_new();

    for (guint i = 0; i < self->rows->len; i++) {
        const Row *row = self->rows->pdata[i];
        if (row->suspect)
            g_strv_builder_add(ids, row->id);
    }
    return g_strv_builder_end(ids);
}

JsonArray *
eb_health_rules_to_json(const EbHealthRules *self)
{
    JsonArray *list = json_array_new();

    for (guint i = 0; i < self->rows->len; i++) {
        const Row *row = self->rows->pdata[i];
        JsonObject *object;
        if (!row->holds && row->status != EB_CHECK_DEGRADED && row->status != EB_CHECK_FAIL)
            continue;
        object = json_object_new();
        json_object_set_string_member(object, "id", row->id);
        json_object_set_string_member(object, "title", row->title);
        json_object_set_string_member(object, "status", eb_check_status_to_string(row->status));
        json_object_set_string_member(object, "observed", row->observed);
        json_object_set_string_member(object, "remedy", row->remedy);
        json_object_set_boolean_member(object, "accepted", row->accepted);
        json_object_set_boolean_member(object, "holds", row->holds);
        eb_json_set_time(object, "since", row->since_ms);
        json_array_add_object_element(list, object);
    }
    return list;
}
