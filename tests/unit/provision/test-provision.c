/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/provision/eb-id-ranges.h"
#include "core/provision/eb-pool-plan.h"
#include "core/provision/eb-provision-client.h"
#include "core/provision/eb-run.h"
#include "core/provision/eb-settings-text.h"
#include "core/provision/eb-setup-invite.h"
#include "core/provision/eb-setup-private.h"
#include "tests/lib/eb-test.h"

#define GIB (G_GUINT64_CONSTANT(1) << 30)

static void
test_ranges(void)
{
    const char *text = "# comment\nroot:1000000:1000000000\nroot:997:1\nother:5:100\nroot:nonsense:1\nroot:7\n";

    g_assert_cmpuint(eb_id_ranges_largest(text, "root"), ==, 1000000000);
    g_assert_cmpuint(eb_id_ranges_largest(text, "nobody"), ==, 0);
    g_assert_cmpuint(eb_id_ranges_largest(NULL, "root"), ==, 0);
    g_assert_true(eb_id_ranges_contains(text, "root", 997));
    g_assert_false(eb_id_ranges_contains(text, "root", 998));
    g_assert_true(eb_id_ranges_contains(text, "root", 1000999999));
    g_assert_false(eb_id_ranges_contains(text, "root", 1001000000));
    g_assert_false(eb_id_ranges_contains(text, "root", 5));
    /* A name that only begins the same is another owner. */
    g_assert_cmpuint(eb_id_ranges_largest("roo:1:65536\nrooty:1:65536\n", "root"), ==, 0);
}

static void
test_ranges_without(void)
{
    static const struct {
        const char *text, *line, *rest;
    } CASES[] = {
        {"root:1:2\na:3:4\n", "root:1:2", "a:3:4\n"},
        {"a:3:4\nroot:1:2", "root:1:2", "a:3:4\n"},
        {"root:1:2\n", "root:1:2", ""},
        /* Ours is the later one. */
        {"root:1:2\n# x\nroot:1:2\n\n", "root:1:2", "root:1:2\n# x\n\n"},
        {"root:1:20\nxroot:1:2\n root:1:2\n", "root:1:2", NULL},
        {"", "root:1:2", NULL},
    };

    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autofree char *rest = eb_id_ranges_without(CASES[i].text, CASES[i].line);
        g_assert_cmpstr(rest, ==, CASES[i].rest);
    }
}

static void
test_map_overlaps(void)
{
    static const struct {
        const char *map, *line;
        gboolean overlaps;
    } CASES[] = {
        {"         0          0 4294967295\n", "root:1000000:1000000000", FALSE},
        {"         0    1000000      65536\n", "root:1000000:1000000000", TRUE},
        {"         0     999990         10\n", "root:1000000:1000000000", FALSE},
        {"         0     999990         11\n", "root:1000000:1000000000", TRUE},
        {"0 1065536 1000\n1000 993 1\n1001 1066537 64535\n", "root:993:1", TRUE},
        {"0 1065536 1000\n1000 993 1\n1001 1066537 64535\n", "root:994:1", FALSE},
        {"nonsense", "root:1:1", FALSE},
        {"0 5 1", "nonsense", FALSE},
    };

    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++)
        g_assert_cmpint(eb_id_map_overlaps(CASES[i].map, CASES[i].line), ==, CASES[i].overlaps);
}

static void
test_pool(void)
{
    g_assert_cmpuint(eb_pool_plan_size(7 * GIB, 0), ==, 0);
    g_assert_cmpuint(eb_pool_plan_size(7 * GIB, 2 * GIB), ==, 0);
    g_assert_cmpuint(eb_pool_plan_size(9 * GIB, 0), ==, 4 * GIB);
    g_assert_cmpuint(eb_pool_plan_size(1000 * GIB, 0), ==, 200 * GIB);
    g_assert_cmpuint(eb_pool_plan_size(100 * GIB, 2 * GIB), ==, 2 * GIB);
    /* Never more than is there: the file is sparse. */
    g_assert_cmpuint(eb_pool_plan_size(100 * GIB + 5, 300 * GIB), ==, 100 * GIB);
}

static void
test_path(void)
{
    g_autofree char *path = eb_provision_path("/1.0/images/aliases/%s?project=%s", "a/b?c", "d&e=\xc3\xa9");

    g_assert_cmpstr(path, ==, "/1.0/images/aliases/a%2Fb%3Fc?project=d%26e%3D%C3%A9");
}

static GPtrArray *
parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    GPtrArray *entries = eb_env_file_parse(text, strlen(text), &error);

    g_assert_no_error(error);
    return entries;
}

static void
test_settings(void)
{
    g_autoptr(GPtrArray) entries =
        parse("ERRAND_PROVIDER=acme\nERRAND_PROVIDER_KIND=openai\nERRAND_PROVIDER_BASE_URL=https://m.example/v1\n"
              "ERRAND_MODEL=big \"one\"\\\nERRAND_AGENT=opencode\nERRAND_EGRESS_ALLOW=a.example, *.b.example\n"
              "ERRAND_CHAT_CHANNEL_ID=1180000000000000001\nERRAND_CHAT_ALLOWED_USER_IDS=1180000000000000002 "
              "1180000000000000003\n");
    g_autoptr(GError) error = NULL;
    g_autofree char *text = eb_settings_to_toml(entries, &error);

    g_assert_no_error(error);
    g_assert_true(g_str_has_prefix(text, EB_SETTINGS_MARK "\n"));
    g_assert_nonnull(strstr(text, "\n[provider.acme]\nkind = \"openai\"\nbase_url = \"https://m.example/v1\"\n"
                                  "key = \"cred:model-key\"\n"));
    g_assert_nonnull(strstr(text, "model = \"big \\\"one\\\"\\\\\"\n"));
    g_assert_nonnull(strstr(text, "allow = [\"a.example\", \"*.b.example\"]\n"));
    g_assert_nonnull(strstr(text, "allowed_user_ids = [\"1180000000000000002\", \"1180000000000000003\"]\n"));
    g_assert_nonnull(strstr(text, "token = \"cred:chat-token\"\n"));
    g_assert_null(strstr(text, "[plugin.github]"));
}

static void
test_settings_defaults(void)
{
    g_autoptr(GPtrArray) name = parse("ERRAND_PROVIDER=anthropic\n");
    g_autoptr(GPtrArray) none = parse("");
    g_autofree char *text = eb_settings_to_toml(name, NULL);
    g_autoptr(GPtrArray) commas = parse("ERRAND_CHAT_ALLOWED_USER_IDS=,\n");
    g_autofree char *nobody = eb_settings_to_toml(commas, NULL);
    g_autofree char *empty = eb_settings_to_toml(none, NULL);

    g_assert_nonnull(strstr(text, "base_url = \"https://api.anthropic.com\""));
    g_assert_null(strstr(nobody, "chat-discord"));
    g_assert_cmpstr(empty, ==, EB_SETTINGS_MARK "\n");
}

static void
test_settings_refused(void)
{
    static const struct {
        const char *text, *reason, *part;
    } CASES[] = {
        {"ERRAND_MODLE=x\n", "env-file.key", "did you mean ERRAND_MODEL?"},
        {"ERRAND_PROVIDER=acme\n", "settings.provider", "ERRAND_PROVIDER_KIND"},
        {"ERRAND_PROVIDER_KIND=telepathy\n", "settings.provider", "anthropic, openai or gemini"},
        {"ERRAND_PROVIDER=a.b\nERRAND_PROVIDER_KIND=openai\n", "settings.provider", "name"},
        {"ERRAND_PROVIDER_CREDENTIAL=hidden\n", "env-file.key", "ERRAND_PROVIDER_CREDENTIAL"},
        {"ERRAND_CHAT_CHANNEL_ID=general\n", "settings.id", "not names"},
        {"ERRAND_CHAT_CHANNEL_ID=123\n", "settings.id", "ERRAND_CHAT_CHANNEL_ID: 123 is no id"},
        {"ERRAND_CHAT_OPERATOR_USER_IDS=1180000000000000002, 118000000000000000300\n", "settings.id",
         "118000000000000000300 is no id"},
        {"ERRAND_CHAT_CHANNEL_ID=1180000000000000001\nERRAND_CHAT_ALLOWED_USER_IDS=\n", "settings.chat",
         "ERRAND_CHAT_ALLOWED_USER_IDS is missing: the numbers of those who may start errands"},
        {"ERRAND_CHAT_ALLOWED_USER_IDS=1180000000000000002\n", "settings.chat", "ERRAND_CHAT_CHANNEL_ID is missing"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autoptr(GPtrArray) entries = parse(CASES[i].text);
        g_autoptr(GError) error = NULL;
        g_assert_null(eb_settings_to_toml(entries, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, CASES[i].reason, CASES[i].part);
        g_assert_null(strstr(error->message, "hidden"));
    }
}

static void
test_credential_keys(void)
{
    g_autoptr(GPtrArray) good = parse("ERRAND_PROVIDER_CREDENTIAL=a\nERRAND_CRED_OTHER_KEY=b\n");
    g_autoptr(GPtrArray) bad = parse("ERRAND_PROVIDER_CREDENTAIL=a\n");
    g_autoptr(GError) error = NULL;

    g_assert_true(eb_settings_check_credentials(good, &error));
    g_assert_no_error(error);
    g_assert_false(eb_settings_check_credentials(bad, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "env-file.key", "did you mean ERRAND_PROVIDER_CREDENTIAL?");
}

static void
test_run(void)
{
    const char *const fine[] = {"sh", "-c", "echo out; echo err >&2; env", NULL};
    const char *const fails[] = {"sh", "-c", "echo first; echo last words; exit 3", NULL};
    const char *const killed[] = {"sh", "-c", "kill -9 $$", NULL};
    const char *const slow[] = {"sleep", "600", NULL};
    const char *const none[] = {"no-such-program-here", NULL};
    g_autofree char *output = NULL;
    g_autoptr(GError) error = NULL;

    g_setenv("EB_TEST_LEAK", "leak", TRUE);
    g_assert_true(eb_run(fine, 30000, &output, &error));
    g_assert_no_error(error);
    g_assert_nonnull(strstr(output, "out\nerr\n"));
    g_assert_null(strstr(output, "EB_TEST_LEAK"));
    g_assert_false(eb_run(fails, 30000, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_FAILED, "provision.program", "sh ended with 3: last words");
    g_clear_error(&error);
    g_assert_false(eb_run(killed, 30000, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_FAILED, "provision.program", "signal 9");
    g_clear_error(&error);
    g_assert_false(eb_run(slow, 50, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_TIMEOUT, "provision.program", NULL);
    g_clear_error(&error);
    g_assert_false(eb_run(none, 50, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "provision.program", NULL);
}

static void
test_invite(void)
{
    static const char *const NO_TOKENS[] = {"",
                                            ".",
                                            "mock-token",
                                            "MTE4MDAwMDAwMDAwMDAwMDAwMQ",
                                            "bm90LWFuLWlkLWF0LWFsbCE.x.y",
                                            "MDE4MDAwMDAwMDAwMDAwMDAwMQ.x.y",
                                            "MTIz.x.y",
                                            "MTE4MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMQ.x.y",
                                            "\xff\xfe.x.y"};
    g_autofree char *id = g_base64_encode((const guchar *)"1180000000000000001", 19);
    g_autofree char *token = g_strdup_printf("%.26s.Gabcde.secret-part", id);
    g_autofree char *url = eb_setup_invite_url(token);

    g_assert_cmpstr(url, ==,
                    "https://discord.com/oauth2/authorize?client_id=1180000000000000001&scope=bot+applications.commands"
                    "&permissions=326417615936");
    for (gsize i = 0; i < G_N_ELEMENTS(NO_TOKENS); i++)
        g_assert_null(eb_setup_invite_url(NO_TOKENS[i]));
}

/* What others set higher is not lowered by our file when the host starts the next time. */
static void
test_kernel_settings(void)
{
    g_assert_true(eb_setup_keeps_setting(65530, 262144, FALSE));
    g_assert_true(eb_setup_keeps_setting(65530, 262144, TRUE));
    g_assert_true(eb_setup_keeps_setting(262144, 262144, TRUE));
    g_assert_false(eb_setup_keeps_setting(262144, 262144, FALSE));
    g_assert_false(eb_setup_keeps_setting(1048576, 262144, FALSE));
    g_assert_false(eb_setup_keeps_setting(1048576, 262144, TRUE));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/provision/ranges", test_ranges);
    g_test_add_func("/provision/ranges-without", test_ranges_without);
    g_test_add_func("/provision/map-overlaps", test_map_overlaps);
    g_test_add_func("/provision/pool", test_pool);
    g_test_add_func("/provision/path", test_path);
    g_test_add_func("/provision/settings", test_settings);
    g_test_add_func("/provision/settings-defaults", test_settings_defaults);
    g_test_add_func("/provision/settings-refused", test_settings_refused);
    g_test_add_func("/provision/credential-keys", test_credential_keys);
    g_test_add_func("/provision/invite", test_invite);
    g_test_add_func("/provision/run", test_run);
    g_test_add_func("/provision/kernel-settings", test_kernel_settings);
    return g_test_run();
}
