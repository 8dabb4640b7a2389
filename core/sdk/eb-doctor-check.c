/* SPDX-License-Identifier: MIT */
#include "eb-doctor-check.h"

#include "eb-error.h"
#include "eb-host-private.h"

G_DEFINE_INTERFACE(EbDoctorCheck, eb_doctor_check, G_TYPE_OBJECT)

static const EbCheckInfo unnamed_info = {
    .id = "x-unnamed",
    .title = "check without a description",
    .expected = "",
    .remedy = "",
};

static const EbCheckInfo *
default_get_info(EbDoctorCheck *self)
{
    return &unnamed_info;
}

static EbCheckResult *
default_run(EbDoctorCheck *self, EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    return eb_check_result_new(EB_CHECK_SKIPPED, "%s looks at nothing", G_OBJECT_TYPE_NAME(self));
}

static void
eb_doctor_check_default_init(EbDoctorCheckInterface *iface)
{
    iface->get_info = default_get_info;
    iface->run = default_run;
}

const char *
eb_check_status_to_string(EbCheckStatus status)
{
    static const char *const names[] = {"ok", "degraded", "fail", "skipped"};

    return (guint)status < G_N_ELEMENTS(names) ? names[status] : "skipped";
}

EbCheckResult *
eb_check_result_new(EbCheckStatus status, const char *observed_format, ...)
{
    EbCheckResult *self = g_new0(EbCheckResult, 1);
    va_list args;

    self->status = status;
    va_start(args, observed_format);
    self->observed = g_strdup_vprintf(observed_format, args);
    va_end(args);
    return self;
}

void
eb_check_result_set_remedy(EbCheckResult *self, const char *format, ...)
{
    va_list args;

    g_return_if_fail(self != NULL);
    g_free(self->remedy);
    va_start(args, format);
    self->remedy = g_strdup_vprintf(format, args);
    va_end(args);
}

void
eb_check_result_free(EbCheckResult *self)
{
    if (self == NULL)
        return;
    g_free(self->observed);
    g_free(self->remedy);
    g_free(self);
}

const EbCheckInfo *
eb_doctor_check_get_info(EbDoctorCheck *self)
{
    const EbCheckInfo *info;

    g_return_val_if_fail(EB_IS_DOCTOR_CHECK(self), &unnamed_info);
    info = EB_DOCTOR_CHECK_GET_IFACE(self)->get_info(self);
    return info != NULL ? info : &unnamed_info;
}

EbCheckResult *
eb_doctor_check_run(EbDoctorCheck *self, EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autoptr(EbHost) view = NULL;
    const EbCheckInfo *info;
    EbCheckResult *result;
    const char *undeclared;

    g_return_val_if_fail(EB_IS_DOCTOR_CHECK(self) && EB_IS_HOST(host),
                         eb_check_result_new(EB_CHECK_SKIPPED, "there is nothing to check"));
    info = eb_doctor_check_get_info(self);
    view = eb_host_view_new(host, info->reads, settings);
    result = EB_DOCTOR_CHECK_GET_IFACE(self)->run(self, view, settings, cancellable);
    undeclared = eb_host_view_get_undeclared(view);
    if (undeclared != NULL) {
        /* What was refused may be what the result rests on. */
        g_clear_pointer(&result, eb_check_result_free);
        result = eb_check_result_new(EB_CHECK_SKIPPED, "the check wants to look at %s, which it does not declare",
                                     undeclared);
    }
    if (result == NULL)
        result = eb_check_result_new(EB_CHECK_SKIPPED, "the check gave no result");
    return result;
}

/* --- a check as a plain function --- */

#define EB_TYPE_SIMPLE_CHECK (eb_simple_check_get_type())
G_DECLARE_FINAL_TYPE(EbSimpleCheck, eb_simple_check, EB, SIMPLE_CHECK, GObject)

struct _EbSimpleCheck {
    GObject parent_instance;
    const EbCheckInfo *info; /* (unowned): static */
    EbCheckFunc run;
};

static const EbCheckInfo *
simple_get_info(EbDoctorCheck *check)
{
    return EB_SIMPLE_CHECK(check)->info;
}

static EbCheckResult *
simple_run(EbDoctorCheck *check, EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    return EB_SIMPLE_CHECK(check)->run(host, settings, cancellable);
}

static void
simple_iface_init(EbDoctorCheckInterface *iface)
{
    iface->get_info = simple_get_info;
    iface->run = simple_run;
}

G_DEFINE_FINAL_TYPE_WITH_CODE(EbSimpleCheck, eb_simple_check, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_DOCTOR_CHECK, simple_iface_init))

static void
eb_simple_check_class_init(EbSimpleCheckClass *klass)
{
}

static void
eb_simple_check_init(EbSimpleCheck *self)
{
}

EbDoctorCheck *
eb_simple_check_new(const EbCheckInfo *info, EbCheckFunc run)
{
    EbSimpleCheck *self;

    g_return_val_if_fail(info != NULL && run != NULL, NULL);
    self = g_object_new(EB_TYPE_SIMPLE_CHECK, NULL);
    self->info = info;
    self->run = run;
    return EB_DOCTOR_CHECK(self);
}
