/* SPDX-License-Identifier: MIT */
/* The configuration of a selftest's service is one that the program takes, and has nothing of the chat or the keys. */
#include "core/selftest/eb-selftest-scratch.h"
#include "eb-test.h"

#include <string.h>

static EbConfig *
load(const char *dir, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *data = g_build_filename(g_getenv("EB_TEST_SOURCE_ROOT"), "data", NULL);
    g_autoptr(GError) error = NULL;

    eb_test_write_file(path, text);
    EbConfig *config = eb_config_load(path, data, &error);
    g_assert_no_error(error);
    return config;
}

static void
test_configuration(void)
{
    g_autofree char *dir = eb_test_temp_dir("selftest");
    g_autofree char *root = g_build_filename(dir, "w0", NULL);
    g_autoptr(EbConfig) outer =
        load(dir, "outer.toml",
             "[service]\naccount = \"someone\"\nstate_dir = \"/var/lib/errand-box\"\naccept_degraded = [\"E-05\", "
             "\"E-17\"]\n"
             "[plugins]\nenabled = [\"incus\", \"chat-discord\", \"credentials\"]\n"
             "[plugin.incus]\nimage = \"errand-box/\\\"other\\\"\"\nproject = \"user-1000\"\n"
             "[plugin.chat-discord]\ntoken = \"cred:chat-token\"\n"
             "[provider.p]\nkind = \"openai\"\nbase_url = \"https://api.example\"\nkey = \"cred:model-key\"\n");
    EbSelftestOptions options = {.config = outer, .backend_plugin = "incus", .jobs = 1};
    g_autofree char *text = eb_selftest_config_text(&options, root, "print(\"a\\n\")\n# \t'''\n");
    g_autoptr(EbConfig) inner = load(dir, "inner.toml", text);
    g_autoptr(GError) error = NULL;

    g_assert_cmpstr(eb_config_get_account(inner), ==, "someone");
    g_assert_cmpstr(eb_config_get_state_dir(inner), ==, root);
    g_assert_true(g_str_has_prefix(eb_config_get_project_root(inner), root));
    const char *const accepted[] = {"E-05", "E-17", NULL}, *const plugins[] = {"incus", NULL};
    g_assert_cmpstrv(eb_config_get_accept_degraded(inner), accepted);
    g_assert_cmpstrv(eb_config_get_enabled_plugins(inner), plugins);
    g_assert_cmpuint(eb_config_get_providers(inner)->len, ==, 0);
    g_auto(GStrv) credentials = eb_config_list_credentials(inner);
    g_assert_cmpuint(g_strv_length(credentials), ==, 0);
    g_assert_cmpstr(eb_config_get_session(inner)->egress_mode, ==, "none");
    g_autoptr(EbConfigSection) backend = eb_config_get_plugin_section(inner, "incus");
    g_autofree char *image = eb_config_section_get_string(backend, "image", NULL, &error);
    g_assert_cmpstr(image, ==, "errand-box/\"other\"");
    EbAgentProfile *agent = eb_config_get_agent(inner, "selftest", &error);
    g_assert_no_error(error);
    EbAgentVars vars = {.home = "/state/home"};
    g_autoptr(GPtrArray) files = eb_agent_profile_build_files(agent, NULL, &vars, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(files->len, ==, 1);
    g_assert_cmpstr(((EbAgentFile *)files->pdata[0])->content, ==, "print(\"a\\n\")\n# \t'''\n");
}

/* What is shipped goes through the same way unchanged. */
static void
test_agent(void)
{
    g_autofree char *dir = eb_test_temp_dir("selftest");
    g_autofree char *path = g_build_filename(g_getenv("EB_TEST_SOURCE_ROOT"), "data", "selftest", "agent.py", NULL);
    g_autofree char *script = NULL;
    g_autoptr(EbConfig) outer = load(dir, "outer.toml", "[service]\naccount = \"someone\"\n");
    EbSelftestOptions options = {.config = outer, .backend_plugin = "incus", .jobs = 1};
    EbAgentVars vars = {.home = "/state/home"};

    g_assert_true(g_file_get_contents(path, &script, NULL, NULL));
    g_autofree char *text = eb_selftest_config_text(&options, dir, script);
    g_autoptr(EbConfig) inner = load(dir, "inner.toml", text);
    EbAgentProfile *agent = eb_config_get_agent(inner, "selftest", NULL);
    g_autoptr(GPtrArray) files = eb_agent_profile_build_files(agent, NULL, &vars, NULL);
    g_assert_cmpuint(files->len, ==, 1);
    g_assert_cmpstr(((EbAgentFile *)files->pdata[0])->content, ==, script);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/selftest/scratch/configuration", test_configuration);
    g_test_add_func("/selftest/scratch/agent", test_agent);
    return g_test_run();
}
