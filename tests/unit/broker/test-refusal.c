/* SPDX-License-Identifier: MIT */
/* What a guest hears: one wording for every way in, in the status line and in the body. */
#include <string.h>

#include "core/broker/eb-refusal.h"
#include "eb-test.h"

static JsonObject *
body_of(const GString *answer, JsonNode **node)
{
    const char *body = strstr(answer->str, "\r\n\r\n");
    g_autoptr(GError) error = NULL;

    g_assert_nonnull(body);
    *node = eb_json_parse(body + 4, strlen(body + 4), &EB_JSON_LIMITS_SMALL, &error);
    g_assert_no_error(error);
    return eb_json_node_object(*node);
}

static GString *
answer_for(EbRefusalCode code, const char *host)
{
    EbRefusal refusal;

    eb_refusal_set(&refusal, code, host, NULL);
    return eb_refusal_response(&refusal, FALSE, FALSE);
}

static void
test_all_codes(void)
{
    for (guint code = EB_REFUSAL_NONE + 1; code < EB_REFUSAL_N; code++) {
        GString *answer = answer_for((EbRefusalCode)code, "host.test:443");
        g_autoptr(JsonNode) node = NULL;
        JsonObject *body = body_of(answer, &node);
        JsonObject *error = eb_json_get_object(body, "error");
        const gsize line = strcspn(answer->str, "\r");
        const char *how = eb_json_get_string(body, "how");

        g_test_message("%s", eb_refusal_token((EbRefusalCode)code));
        g_assert_cmpstr(eb_json_get_string(body, "code"), ==, eb_refusal_token((EbRefusalCode)code));
        g_assert_cmpstr(eb_json_get_string(body, "host"), ==, "host.test:443");
        g_assert_cmpuint(strlen(eb_json_get_string(body, "reason")), >, 0);
        g_assert_cmpuint(strlen(how), >, 0);
        g_assert_null(strchr(how, '{'));
        g_assert_nonnull(strstr(eb_json_get_string(error, "message"), how));
        g_assert_cmpuint(eb_refusal_status((EbRefusalCode)code), >=, 400);
        /* A person may be shown this line and nothing else. */
        g_assert_cmpuint(line, <, 400);
        if (eb_refusal_is_policy((EbRefusalCode)code))
            g_assert_nonnull(g_strstr_len(answer->str, (gssize)line, "Refused by errand-box: host.test:443: "));
        g_string_free(answer, TRUE);
    }
}

static void
test_names_the_host(void)
{
    static const struct {
        const char *host;
        const char *bare;
    } ROWS[] = {
        {"api.other.test:443", "\"api.other.test\""},
        {"[2606:4700::1111]:443", "\"2606:4700::1111\""},
        {"1.1.1.1:80", "\"1.1.1.1\""},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        EbRefusal refusal;
        g_autofree char *how = NULL;

        eb_refusal_set(&refusal, EB_REFUSAL_HOST, ROWS[i].host, NULL);
        how = eb_refusal_how(&refusal);
        g_assert_nonnull(strstr(how, ROWS[i].bare));
        g_assert_nonnull(strstr(how, "[egress] allow"));
    }
}

/* A provider's name comes out of the guest's path, and could end a line or hold what terminals act on. */
static void
test_status_line_bytes(void)
{
    GString *answer = answer_for(EB_REFUSAL_PROVIDER_UNKNOWN, "a\r\nX-Evil: 1\x1b[2J\xc3\xbc");
    const char *end = strstr(answer->str, "\r\n");

    for (const char *c = answer->str; c < end; c++)
        g_assert_true((guchar)*c >= ' ' && (guchar)*c <= '~');
    g_assert_null(strstr(answer->str, "\nX-Evil"));
    g_assert_true(g_str_has_prefix(end, "\r\nContent-Type: application/json\r\n"));
    g_string_free(answer, TRUE);
}

static void
test_head_only(void)
{
    EbRefusal refusal;
    GString *answer;

    eb_refusal_set(&refusal, EB_REFUSAL_HOST, "h.test:443", NULL);
    answer = eb_refusal_response(&refusal, TRUE, TRUE);
    g_assert_true(g_str_has_suffix(answer->str, "\r\n\r\n"));
    g_assert_null(strstr(answer->str, "Connection: close"));
    g_string_free(answer, TRUE);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/refusal/all-codes", test_all_codes);
    g_test_add_func("/refusal/names-the-host", test_names_the_host);
    g_test_add_func("/refusal/status-line-bytes", test_status_line_bytes);
    g_test_add_func("/refusal/head-only", test_head_only);
    return g_test_run();
}
