/* SPDX-License-Identifier: MIT */
#include "core/daemon/eb-daemon-health-rules.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

static void
check_words(const EbHealthRules *rules)
{
    g_autoptr(GError) hold = eb_health_rules_hold(rules);
    g_autoptr(GError) gate = NULL;
    g_auto(GStrv) ids = eb_health_rules_watched(rules);

    eb_health_rules_gate(rules, NULL, "/etc/errand-box/errand-box.toml", &gate);
    if ((hold != NULL && strpbrk(hold->message, "\n\r\033") != NULL) ||
        (gate != NULL && strpbrk(gate->message, "\n\r\033") != NULL))
        g_error("more than one line for people");
    if (hold != NULL && strlen(hold->message) > 4 * 2 * EB_HEALTH_MAX_TEXT)
        g_error("a reason without an end");
    for (char **id = ids; *id != NULL; id++)
        if (**id == '-')
            g_error("an id that is an option of the doctor's");
    if (g_strv_length(ids) > EB_HEALTH_MAX_CHECKS)
        g_error("more checks than there may be");
}

/* Reports carry what third-party checks say: whole and in part, one after the other, each one line and bounded. */
int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    static const char *const accepted[] = {"E-17", NULL};
    g_autoptr(EbHealthRules) rules = eb_health_rules_new(accepted);
    g_autoptr(JsonNode) report = eb_json_parse((const char *)data, size, &EB_JSON_LIMITS_SMALL, NULL);

    if (report == NULL)
        return 0;
    for (guint i = 0; i < 3; i++) {
        g_autoptr(GError) error = NULL;
        gboolean taken = eb_health_rules_take(rules, report, i == 1, (gint64)i * 1000, &error);
        if (taken == (error != NULL))
            g_error("neither taken nor refused");
        check_words(rules);
        g_autofree char *warning = eb_health_rules_warn(rules);
    }
    json_array_unref(eb_health_rules_to_json(rules));
    return 0;
}
