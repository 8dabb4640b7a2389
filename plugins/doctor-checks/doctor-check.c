/* SPDX-License-Identifier: MIT */
#include "doctor-checks.h"

/* One row of the tables as an EbDoctorCheck. */

#define DC_TYPE_CHECK (dc_check_get_type())
G_DECLARE_FINAL_TYPE(DcCheck, dc_check, DC, CHECK, GObject)

struct _DcCheck {
    GObject parent_instance;
    const DcRow *row; /* (unowned): static */
};

static const EbCheckInfo *
dc_check_get_info(EbDoctorCheck *check)
{
    return DC_CHECK(check)->row->info;
}

static EbCheckResult *
dc_check_run(EbDoctorCheck *check, EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    const DcRow *row = DC_CHECK(check)->row;
    EbCheckResult *result = row->run(host, settings, cancellable);

    /* An operator who is asked to accept a gap should read what it costs right there. */
    if (result->status == EB_CHECK_DEGRADED && *row->cost != '\0') {
        char *observed = g_strdup_printf("%s. Cost: %s", result->observed, row->cost);
        g_free(result->observed);
        result->observed = observed;
    }
    return result;
}

static void
check_iface_init(EbDoctorCheckInterface *iface)
{
    iface->get_info = dc_check_get_info;
    iface->run = dc_check_run;
}

G_DEFINE_FINAL_TYPE_WITH_CODE(DcCheck, dc_check, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_DOCTOR_CHECK, check_iface_init))

static void
dc_check_class_init(DcCheckClass *klass)
{
}

static void
dc_check_init(DcCheck *self)
{
}

EbDoctorCheck *
dc_check_new(const DcRow *row)
{
    DcCheck *self = g_object_new(DC_TYPE_CHECK, NULL);

    self->row = row;
    return EB_DOCTOR_CHECK(self);
}

GPtrArray *
dc_list(void)
{
    static const DcRow *const TABLES[] = {DC_KERNEL_CHECKS,  DC_DAEMON_CHECKS,  DC_PROJECT_CHECKS,    DC_STORAGE_CHECKS,
                                          DC_ACCOUNT_CHECKS, DC_FILE_CHECKS,    DC_CREDENTIAL_CHECKS, DC_GUEST_CHECKS,
                                          DC_HOST_CHECKS,    DC_PROVIDER_CHECKS};
    GPtrArray *list = g_ptr_array_new_with_free_func(g_object_unref);

    for (guint i = 0; i < G_N_ELEMENTS(TABLES); i++)
        for (const DcRow *row = TABLES[i]; row->info != NULL; row++)
            g_ptr_array_add(list, dc_check_new(row));
    return list;
}
