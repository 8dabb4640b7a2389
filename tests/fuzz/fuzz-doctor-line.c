/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/doctor/eb-doctor-line.h"

/* What a process with foreign code tells the doctor: any bytes give a line within bounds, or one error. */

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

/* What is written again is read as the same. */
static void
check_round(const EbDoctorLine *line)
{
    g_autofree char *text = line->kind == EB_DOCTOR_LINE_CHECK
                                ? eb_doctor_line_check(line->info)
                                : eb_doctor_line_result(line->id, line->result, line->ms);
    g_autoptr(EbDoctorLine) again = eb_doctor_line_parse(text, strlen(text) - 1, NULL);

    g_assert_nonnull(again);
    g_assert_cmpint(again->kind, ==, line->kind);
    if (line->kind == EB_DOCTOR_LINE_RESULT)
        g_assert_cmpint(again->result->status, ==, line->result->status);
    else
        g_assert_cmpuint(g_strv_length((char **)again->info->reads), ==, g_strv_length((char **)line->info->reads));
}

int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbDoctorLine) line = eb_doctor_line_parse((const char *)data, size, &error);

    g_assert_true((line == NULL) == (error != NULL));
    if (line == NULL)
        return 0;
    if (line->kind == EB_DOCTOR_LINE_CHECK) {
        g_assert_cmpuint(strlen(line->info->title), <=, EB_DOCTOR_TEXT_MAX + 4);
        g_assert_cmpuint(g_strv_length((char **)line->info->reads), <=, EB_DOCTOR_READS_MAX);
        g_assert_null(strchr(line->info->title, '\n'));
        check_round(line);
    } else if (line->kind == EB_DOCTOR_LINE_RESULT) {
        g_assert_null(strchr(line->result->observed, '\033'));
        check_round(line);
    }
    return 0;
}
