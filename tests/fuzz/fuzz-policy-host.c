/* SPDX-License-Identifier: MIT */
/* Hosts, ports and paths: what is accepted is in normal form and stays what it is when read again. */
#include <string.h>

#include "core/broker/eb-broker-policy.h"
#include "core/broker/eb-route.h"

int LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length);

int
LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length)
{
    static const char *const ALLOW[] = {"allowed.test", "*.wild.test", "10.0.0.1", NULL};
    static const guint16 PORTS[] = {443, 80};
    static EbPolicy *policy;
    g_autofree char *text = g_strndup((const char *)bytes, length);
    g_autofree char *rest = g_strconcat("/", text, NULL);
    g_autofree char *joined = eb_route_join("/base/v1", rest);
    const char *why = NULL;
    EbTarget target, again;

    if (policy == NULL)
        policy = eb_policy_new(TRUE, ALLOW, PORTS, 2, FALSE, NULL);
    if (joined != NULL)
        g_assert(g_str_has_prefix(joined, "/base/v1"));
    if (eb_target_parse((const char *)bytes, length, 443, &target, &why)) {
        g_autofree char *shown = eb_target_format(&target);
        EbVerdict verdict = eb_policy_judge(policy, &target, NULL);

        g_assert(target.port != 0 && target.host[0] != '\0' && strlen(target.host) <= EB_HOST_MAX);
        g_assert(eb_target_parse(shown, strlen(shown), 0, &again, NULL));
        g_assert(strcmp(target.host, again.host) == 0 && target.port == again.port && target.literal == again.literal);
        /* Nothing internal gets through, however it is written. */
        if (target.literal && eb_address_special(&target.address) != NULL)
            g_assert(verdict == EB_VERDICT_INTERNAL);
        if (verdict == EB_VERDICT_ALLOWED)
            g_assert(strcmp(target.host, "allowed.test") == 0 || g_str_has_suffix(target.host, ".wild.test"));
    } else {
        g_assert(why != NULL);
    }
    return 0;
}
