/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/doctor/eb-doctor-catalogue.h"
#include "core/doctor/eb-doctor-line.h"
#include "core/doctor/eb-doctor.h"

#define WIDTH 100

static void
row_free(gpointer data)
{
    EbDoctorRow *row = data;

    eb_doctor_info_free(row->info);
    g_free(row->plugin);
    eb_check_result_free(row->result);
    g_free(row);
}

static char *
read_system(EbHost *host)
{
    g_autofree char *text = eb_host_read_file(host, "/etc/os-release", NULL, NULL);
    const char *name = text != NULL ? strstr(text, "PRETTY_NAME=\"") : NULL;
    const char *end = name != NULL ? strchr(name + 13, '"') : NULL;

    return end != NULL ? eb_log_escape(name + 13, end - name - 13, 200) : NULL;
}

EbDoctorReport *
eb_doctor_report_new(EbHost *host)
{
    EbDoctorReport *self = g_new0(EbDoctorReport, 1);

    self->rows = g_ptr_array_new_with_free_func(row_free);
    self->kernel = eb_host_uname_release(host);
    self->system = read_system(host);
    return self;
}

void
eb_doctor_report_free(EbDoctorReport *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->rows);
    g_free(self->kernel);
    g_free(self->system);
    g_free(self);
}

void
eb_doctor_report_add(EbDoctorReport *self, const char *plugin, const EbCheckInfo *info, EbCheckResult *result, guint ms)
{
    EbDoctorRow *row = g_new0(EbDoctorRow, 1);

    row->info = eb_doctor_info_copy(info);
    row->plugin = g_strdup(plugin);
    row->result = result;
    row->ms = ms;
    g_ptr_array_add(self->rows, row);
    if (result == NULL)
        return;
    switch (result->status) {
    case EB_CHECK_OK:
        self->ok++;
        break;
    case EB_CHECK_DEGRADED:
        self->degraded++;
        break;
    case EB_CHECK_FAIL:
        self->fail++;
        break;
    case EB_CHECK_SKIPPED:
        self->skipped++;
        break;
    }
}

static int
compare_ids(const char *a, const char *b)
{
    for (; *a != '\0' && *b != '\0'; a++, b++) {
        if (g_ascii_isdigit(*a) && g_ascii_isdigit(*b)) {
            char *end_a, *end_b;
            guint64 number_a = g_ascii_strtoull(a, &end_a, 10), number_b = g_ascii_strtoull(b, &end_b, 10);
            if (number_a != number_b)
                return number_a < number_b ? -1 : 1;
            a = end_a - 1;
            b = end_b - 1;
        } else if (*a != *b) {
            return (guchar)*a < (guchar)*b ? -1 : 1;
        }
    }
    return (int)(guchar)*a - (int)(guchar)*b;
}

static int
compare_rows(gconstpointer a, gconstpointer b)
{
    const EbDoctorRow *first = *(const EbDoctorRow *const *)a, *second = *(const EbDoctorRow *const *)b;
    int order = compare_ids(first->info->id, second->info->id);

    return order != 0 ? order : strcmp(first->plugin, second->plugin);
}

void
eb_doctor_report_sort(EbDoctorReport *self)
{
    g_ptr_array_sort(self->rows, compare_rows);
}

const EbDoctorRow *
eb_doctor_report_find(EbDoctorReport *self, const char *id)
{
    for (guint i = 0; i < self->rows->len; i++) {
        const EbDoctorRow *row = self->rows->pdata[i];
        if (strcmp(row->info->id, id) == 0)
            return row;
    }
    return NULL;
}

/* Escape sequences by status; none without a terminal. */
static const char *
color_of(EbCheckStatus status)
{
    switch (status) {
    case EB_CHECK_OK:
        return "\033[32m";
    case EB_CHECK_DEGRADED:
        return "\033[33m";
    case EB_CHECK_FAIL:
        return "\033[31m";
    case EB_CHECK_SKIPPED:
        return "\033[2m";
    }
    return "";
}

/* Words of @text, wrapped at WIDTH, every line after the first indented. */
static void
add_wrapped(GString *out, const char *label, const char *value)
{
    g_autofree char *clean = eb_log_escape(value, -1, 1000);
    g_auto(GStrv) words = g_strsplit(clean, " ", -1);
    gsize column = 17;

    g_string_append_printf(out, "        %-8s ", label);
    for (guint i = 0; words[i] != NULL; i++) {
        glong length = g_utf8_strlen(words[i], -1);
        if (i > 0 && column + (gsize)length + 1 > WIDTH) {
            g_string_append(out, "\n                 ");
            column = 17;
        } else if (i > 0) {
            g_string_append_c(out, ' ');
            column++;
        }
        g_string_append(out, words[i]);
        column += (gsize)length;
    }
    g_string_append_c(out, '\n');
}

static void
add_full(GString *out, const EbDoctorRow *row, gboolean color)
{
    const char *remedy = row->result->remedy != NULL ? row->result->remedy : row->info->remedy;

    g_string_append_printf(out, "  %s%-6s%s  %s", color ? color_of(row->result->status) : "", row->info->id,
                           color ? "\033[0m" : "", row->info->title);
    if (strcmp(row->plugin, EB_DOCTOR_OWN_PLUGIN) != 0)
        g_string_append_printf(out, " (plugin %s)", row->plugin);
    g_string_append_c(out, '\n');
    add_wrapped(out, "seen", row->result->observed);
    add_wrapped(out, "wanted", row->info->expected);
    add_wrapped(out, "do", remedy);
}

static void
add_group(GString *out, EbDoctorReport *self, EbCheckStatus status, const char *heading, gboolean color)
{
    gboolean first = TRUE;

    for (guint i = 0; i < self->rows->len; i++) {
        const EbDoctorRow *row = self->rows->pdata[i];
        if (row->result->status != status)
            continue;
        if (first)
            g_string_append_printf(out, "\n%s%s%s\n", color ? color_of(status) : "", heading, color ? "\033[0m" : "");
        first = FALSE;
        add_full(out, row, color);
    }
}

/* One line a check: its title, and what it saw when that was asked for or is the point. */
static void
add_lines(GString *out, EbDoctorReport *self, EbCheckStatus status, const char *heading, gboolean color)
{
    gboolean first = TRUE;

    for (guint i = 0; i < self->rows->len; i++) {
        const EbDoctorRow *row = self->rows->pdata[i];
        g_autofree char *observed = NULL;
        if (row->result->status != status)
            continue;
        if (first)
            g_string_append_printf(out, "\n%s%s%s\n", color ? color_of(status) : "", heading, color ? "\033[0m" : "");
        first = FALSE;
        observed = eb_log_escape(row->result->observed, -1, 160);
        g_string_append_printf(out, "  %-6s  %s: %s\n", row->info->id, row->info->title, observed);
    }
}

static void
add_ids(GString *out, EbDoctorReport *self, EbCheckStatus status, const char *heading)
{
    gsize column = 0;

    for (guint i = 0; i < self->rows->len; i++) {
        const EbDoctorRow *row = self->rows->pdata[i];
        gsize length = strlen(row->info->id) + 1;
        if (row->result->status != status)
            continue;
        if (column == 0) {
            g_string_append_printf(out, "\n%-8s", heading);
            column = 8;
        } else if (column + length > WIDTH) {
            g_string_append(out, "\n        ");
            column = 8;
        }
        g_string_append_printf(out, " %s", row->info->id);
        column += length;
    }
    if (column > 0)
        g_string_append_c(out, '\n');
}

char *
eb_doctor_report_to_text(EbDoctorReport *self, gboolean color, gboolean verbose)
{
    GString *out = g_string_new(NULL);

    g_string_append_printf(out, "%s, kernel %s: %u ok, %u degraded, %u fail, %u skipped\n",
                           self->system != NULL ? self->system : "this host",
                           self->kernel != NULL ? self->kernel : "unknown", self->ok, self->degraded, self->fail,
                           self->skipped);
    add_group(out, self, EB_CHECK_FAIL, "FAIL: errand-box cannot work like this", color);
    add_group(out, self, EB_CHECK_DEGRADED, "DEGRADED: works, with less protection than promised", color);
    if (verbose || self->rows->len <= 4) {
        add_lines(out, self, EB_CHECK_SKIPPED, "skipped", color);
        add_lines(out, self, EB_CHECK_OK, "ok", color);
    } else {
        add_ids(out, self, EB_CHECK_SKIPPED, "skipped");
        add_ids(out, self, EB_CHECK_OK, "ok");
    }
    return g_string_free(out, FALSE);
}

static void
add_string(JsonBuilder *builder, const char *name, const char *value)
{
    json_builder_set_member_name(builder, name);
    if (value != NULL)
        json_builder_add_string_value(builder, value);
    else
        json_builder_add_null_value(builder);
}

static void
add_number(JsonBuilder *builder, const char *name, guint value)
{
    json_builder_set_member_name(builder, name);
    json_builder_add_int_value(builder, value);
}

/* What the service makes of a check. */
static void
add_service(JsonBuilder *builder, const char *id)
{
    add_string(builder, "hold", eb_doctor_entry_hold(id));
    json_builder_set_member_name(builder, "watch");
    json_builder_add_boolean_value(builder, eb_doctor_entry_watches(id));
}

JsonNode *
eb_doctor_report_to_json(EbDoctorReport *self)
{
    g_autoptr(JsonBuilder) builder = json_builder_new();

    json_builder_begin_object(builder);
    add_number(builder, "schema", 1);
    json_builder_set_member_name(builder, "host");
    json_builder_begin_object(builder);
    add_string(builder, "kernel", self->kernel);
    add_string(builder, "system", self->system);
    json_builder_end_object(builder);
    json_builder_set_member_name(builder, "summary");
    json_builder_begin_object(builder);
    add_number(builder, "ok", self->ok);
    add_number(builder, "degraded", self->degraded);
    add_number(builder, "fail", self->fail);
    add_number(builder, "skipped", self->skipped);
    json_builder_end_object(builder);
    add_number(builder, "ms", self->ms);
    json_builder_set_member_name(builder, "checks");
    json_builder_begin_array(builder);
    for (guint i = 0; i < self->rows->len; i++) {
        const EbDoctorRow *row = self->rows->pdata[i];
        g_autofree char *observed = eb_log_escape(row->result->observed, -1, 4000);
        json_builder_begin_object(builder);
        add_string(builder, "id", row->info->id);
        add_string(builder, "title", row->info->title);
        add_string(builder, "status", eb_check_status_to_string(row->result->status));
        add_string(builder, "plugin", row->plugin);
        add_string(builder, "observed", observed);
        add_string(builder, "expected", row->info->expected);
        add_string(builder, "remedy", row->result->remedy != NULL ? row->result->remedy : row->info->remedy);
        add_string(builder, "doc", row->info->doc);
        add_service(builder, row->info->id);
        add_number(builder, "ms", row->ms);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
    json_builder_end_object(builder);
    return json_builder_get_root(builder);
}

char *
eb_doctor_report_list_text(EbDoctorReport *self, gboolean verbose)
{
    GString *out = g_string_new(NULL);

    for (guint i = 0; i < self->rows->len; i++) {
        const EbDoctorRow *row = self->rows->pdata[i];
        g_autofree char *reads = g_strjoinv(", ", (char **)row->info->reads);
        const EbDoctorEntry *entry = eb_doctor_entry_find(row->info->id);
        g_string_append_printf(out, "%-6s  %s\n", row->info->id, row->info->title);
        if (verbose) {
            add_wrapped(out, "wanted", row->info->expected);
            add_wrapped(out, "do", row->info->remedy);
            if (entry != NULL && *entry->cost != '\0')
                add_wrapped(out, "cost", entry->cost);
            add_wrapped(out, "reads", reads);
        }
    }
    return g_string_free(out, FALSE);
}

JsonNode *
eb_doctor_report_list_json(EbDoctorReport *self)
{
    g_autoptr(JsonBuilder) builder = json_builder_new();

    json_builder_begin_object(builder);
    add_number(builder, "schema", 1);
    json_builder_set_member_name(builder, "checks");
    json_builder_begin_array(builder);
    for (guint i = 0; i < self->rows->len; i++) {
        const EbDoctorRow *row = self->rows->pdata[i];
        const EbDoctorEntry *entry = eb_doctor_entry_find(row->info->id);
        json_builder_begin_object(builder);
        add_string(builder, "id", row->info->id);
        add_string(builder, "title", row->info->title);
        add_string(builder, "plugin", row->plugin);
        add_string(builder, "expected", row->info->expected);
        add_string(builder, "remedy", row->info->remedy);
        add_string(builder, "doc", row->info->doc);
        add_string(builder, "cost", entry != NULL ? entry->cost : NULL);
        add_service(builder, row->info->id);
        json_builder_set_member_name(builder, "reads");
        json_builder_begin_array(builder);
        for (guint j = 0; row->info->reads[j] != NULL; j++)
            json_builder_add_string_value(builder, row->info->reads[j]);
        json_builder_end_array(builder);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
    json_builder_end_object(builder);
    return json_builder_get_root(builder);
}

int
eb_doctor_exit_code(EbDoctorReport *self, gboolean strict)
{
    if (self->fail > 0)
        return 1;
    return strict && self->degraded > 0 ? 3 : 0;
}
