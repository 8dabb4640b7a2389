/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

/*
 * What a process that runs the checks of one plugin tells the doctor: JSON, one object a line, on a pipe. The plugin is
 * foreign code in that process, so the doctor takes every line for untrusted bytes.
 */

G_BEGIN_DECLS

/** EB_DOCTOR_LINE_MAX: bytes of a line: 64 paths and the longest texts, with room for what JSON escapes. */
#define EB_DOCTOR_LINE_MAX (128 * 1024)
/** EB_DOCTOR_TEXT_MAX: bytes of one text of a check; longer ones are cut where they are written. */
#define EB_DOCTOR_TEXT_MAX 4000
/** EB_DOCTOR_READS_MAX: things a check may declare that it looks at. */
#define EB_DOCTOR_READS_MAX 64

/** eb_doctor_info_copy: (transfer full): @info and all it points to, free of what a terminal would obey. */
EbCheckInfo *eb_doctor_info_copy(const EbCheckInfo *info);
void eb_doctor_info_free(EbCheckInfo *self);

typedef enum {
    EB_DOCTOR_LINE_CHECK,   /* there is this check: info */
    EB_DOCTOR_LINE_BEGIN,   /* all checks were named, those wanted run now */
    EB_DOCTOR_LINE_RESULT,  /* id, result, ms */
    EB_DOCTOR_LINE_PROBLEM, /* the plugin cannot be used: text */
    EB_DOCTOR_LINE_END,     /* nothing more comes */
} EbDoctorLineKind;

/** EbDoctorLine: one of them. What a kind has not is NULL or 0. */
typedef struct {
    EbDoctorLineKind kind;
    EbCheckInfo *info;
    char *id;
    EbCheckResult *result;
    guint ms;
    char *text;
} EbDoctorLine;

void eb_doctor_line_free(EbDoctorLine *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbDoctorLine, eb_doctor_line_free)

/** eb_doctor_line_parse: (transfer full) (nullable): NULL with EB_ERROR_PROTOCOL, reason "doctor.line". */
EbDoctorLine *eb_doctor_line_parse(const char *text, gsize length, GError **error);

/* (transfer full): a line each, with its newline. */
char *eb_doctor_line_check(const EbCheckInfo *info);
char *eb_doctor_line_result(const char *id, const EbCheckResult *result, guint ms);
char *eb_doctor_line_problem(const char *text);
/** eb_doctor_line_mark: @kind: EB_DOCTOR_LINE_BEGIN or EB_DOCTOR_LINE_END */
char *eb_doctor_line_mark(EbDoctorLineKind kind);

G_END_DECLS
