/* SPDX-License-Identifier: MIT */
#include "core/doctor/eb-doctor-line.h"

#include <string.h>

/* A check that asks for more has it cut by who runs it; the number only has to be one. */
#define DEADLINE_MAX_MS 3600000

static const char *const KINDS[] = {"check", "begin", "result", "problem", "end"};

static char *
clean(const char *text)
{
    return eb_log_escape(text != NULL ? text : "", -1, EB_DOCTOR_TEXT_MAX);
}

EbCheckInfo *
eb_doctor_info_copy(const EbCheckInfo *info)
{
    EbCheckInfo *copy = g_new0(EbCheckInfo, 1);
    g_autoptr(GStrvBuilder) reads = g_strv_builder_new();

    copy->id = clean(info->id);
    copy->title = clean(info->title);
    copy->expected = clean(info->expected);
    copy->remedy = clean(info->remedy);
    copy->doc = info->doc != NULL ? clean(info->doc) : NULL;
    for (guint i = 0; info->reads != NULL && info->reads[i] != NULL && i < EB_DOCTOR_READS_MAX; i++) {
        g_autofree char *item = eb_log_escape(info->reads[i], -1, 1000);
        g_strv_builder_add(reads, item);
    }
    copy->reads = (const char *const *)g_strv_builder_end(reads);
    copy->deadline_ms = info->deadline_ms;
    return copy;
}

void
eb_doctor_info_free(EbCheckInfo *self)
{
    if (self == NULL)
        return;
    g_free((char *)self->id);
    g_free((char *)self->title);
    g_free((char *)self->expected);
    g_free((char *)self->remedy);
    g_free((char *)self->doc);
    g_strfreev((char **)self->reads);
    g_free(self);
}

void
eb_doctor_line_free(EbDoctorLine *self)
{
    if (self == NULL)
        return;
    eb_doctor_info_free(self->info);
    eb_check_result_free(self->result);
    g_free(self->id);
    g_free(self->text);
    g_free(self);
}

/* --- writing --- */

static JsonObject *
line_new(EbDoctorLineKind kind)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "line", KINDS[kind]);
    return object;
}

static char *
line_write(JsonObject *object)
{
    g_autoptr(JsonNode) node = json_node_init_object(json_node_alloc(), object);
    g_autofree char *text = eb_json_write(node, NULL);

    json_object_unref(object);
    return g_strconcat(text, "\n", NULL);
}

static void
set_text(JsonObject *object, const char *member, const char *text)
{
    g_autofree char *cleaned = clean(text);

    json_object_set_string_member(object, member, cleaned);
}

char *
eb_doctor_line_check(const EbCheckInfo *info)
{
    JsonObject *object = line_new(EB_DOCTOR_LINE_CHECK);
    EbCheckInfo *copy = eb_doctor_info_copy(info);
    JsonArray *reads = json_array_new();

    json_object_set_string_member(object, "id", copy->id);
    json_object_set_string_member(object, "title", copy->title);
    json_object_set_string_member(object, "expected", copy->expected);
    json_object_set_string_member(object, "remedy", copy->remedy);
    if (copy->doc != NULL)
        json_object_set_string_member(object, "doc", copy->doc);
    for (guint i = 0; copy->reads[i] != NULL; i++)
        json_array_add_string_element(reads, copy->reads[i]);
    json_object_set_array_member(object, "reads", reads);
    json_object_set_int_member(object, "deadline_ms", MIN(copy->deadline_ms, DEADLINE_MAX_MS));
    eb_doctor_info_free(copy);
    return line_write(object);
}

char *
eb_doctor_line_result(const char *id, const EbCheckResult *result, guint ms)
{
    JsonObject *object = line_new(EB_DOCTOR_LINE_RESULT);

    set_text(object, "id", id);
    json_object_set_string_member(object, "status", eb_check_status_to_string(result->status));
    set_text(object, "observed", result->observed);
    if (result->remedy != NULL)
        set_text(object, "remedy", result->remedy);
    json_object_set_int_member(object, "ms", ms);
    return line_write(object);
}

char *
eb_doctor_line_problem(const char *text)
{
    JsonObject *object = line_new(EB_DOCTOR_LINE_PROBLEM);

    set_text(object, "text", text);
    return line_write(object);
}

char *
eb_doctor_line_mark(EbDoctorLineKind kind)
{
    return line_write(line_new(kind));
}

/* --- reading --- */

static EbCheckInfo *
read_info(JsonObject *object)
{
    JsonArray *list = eb_json_get_array(object, "reads");
    gint64 deadline = eb_json_get_int(object, "deadline_ms", 0);
    g_autoptr(GPtrArray) reads = g_ptr_array_new();
    EbCheckInfo info = {.id = eb_json_get_string(object, "id"),
                        .title = eb_json_get_string(object, "title"),
                        .expected = eb_json_get_string(object, "expected"),
                        .remedy = eb_json_get_string(object, "remedy"),
                        .doc = eb_json_get_string(object, "doc"),
                        .deadline_ms = (guint)CLAMP(deadline, 0, DEADLINE_MAX_MS)};

    if (info.id == NULL || *info.id == '\0' || info.title == NULL)
        return NULL;
    for (guint i = 0; list != NULL && i < MIN(json_array_get_length(list), EB_DOCTOR_READS_MAX); i++) {
        const char *item = eb_json_array_string(list, i);
        if (item != NULL)
            g_ptr_array_add(reads, (gpointer)item);
    }
    g_ptr_array_add(reads, NULL);
    info.reads = (const char *const *)reads->pdata;
    return eb_doctor_info_copy(&info);
}

static EbCheckResult *
read_result(JsonObject *object)
{
    const char *status = eb_json_get_string(object, "status");
    const char *observed = eb_json_get_string(object, "observed");
    const char *remedy = eb_json_get_string(object, "remedy");
    EbCheckResult *result;
    guint value = 0;

    while (value <= EB_CHECK_SKIPPED && g_strcmp0(status, eb_check_status_to_string((EbCheckStatus)value)) != 0)
        value++;
    if (value > EB_CHECK_SKIPPED || observed == NULL)
        return NULL;
    result = g_new0(EbCheckResult, 1);
    result->status = (EbCheckStatus)value;
    result->observed = clean(observed);
    result->remedy = remedy != NULL ? clean(remedy) : NULL;
    return result;
}

EbDoctorLine *
eb_doctor_line_parse(const char *text, gsize length, GError **error)
{
    static const EbJsonLimits LIMITS = {.max_bytes = EB_DOCTOR_LINE_MAX, .max_depth = 4};
    g_autoptr(JsonNode) node = eb_json_parse(text, length, &LIMITS, NULL);
    JsonObject *object = eb_json_node_object(node);
    const char *name = eb_json_get_string(object, "line");
    g_autoptr(EbDoctorLine) line = g_new0(EbDoctorLine, 1);
    gboolean whole = FALSE;
    guint kind = 0;

    while (kind < G_N_ELEMENTS(KINDS) && g_strcmp0(name, KINDS[kind]) != 0)
        kind++;
    line->kind = (EbDoctorLineKind)kind;
    switch (line->kind) {
    case EB_DOCTOR_LINE_CHECK:
        line->info = read_info(object);
        whole = line->info != NULL;
        break;
    case EB_DOCTOR_LINE_RESULT:
        line->id = g_strdup(eb_json_get_string(object, "id"));
        line->result = read_result(object);
        line->ms = (guint)CLAMP(eb_json_get_int(object, "ms", 0), 0, DEADLINE_MAX_MS);
        whole = line->id != NULL && line->result != NULL;
        break;
    case EB_DOCTOR_LINE_PROBLEM:
        line->text = clean(eb_json_get_string(object, "text"));
        whole = *line->text != '\0';
        break;
    case EB_DOCTOR_LINE_BEGIN:
    case EB_DOCTOR_LINE_END:
        whole = TRUE;
        break;
    }
    if (whole)
        return g_steal_pointer(&line);
    eb_set_error(error, EB_ERROR_PROTOCOL, "doctor.line", "what came is no answer of a check");
    return NULL;
}
