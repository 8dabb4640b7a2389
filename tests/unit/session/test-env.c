/* SPDX-License-Identifier: MIT */
/* The launcher's block, byte for byte, and what a launch decides before it begins. */
#include "core/session/eb-launch-plan.h"
#include "eb-test.h"

#include <string.h>

static EbConfig *
load(const char *extra)
{
    g_autofree char *dir = eb_test_temp_dir("config");
    g_autofree char *path = g_build_filename(dir, "errand-box.toml", NULL);
    g_autofree char *text = g_strdup_printf(
        "%s\n[provider.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9\"\nkey = \"cred:model-key\"\n"
        "[agent.tiny]\ncommand = [\"tiny\", \"--acp\"]\ndialects = [\"openai\"]\nmodel_via = \"argument\"\n"
        "model_argument = [\"-m\", \"${model}\"]\nunset = [\"TERM\"]\n[agent.tiny.env]\nTINY_HOME = \"${home}/x\"\n"
        "[agent.tiny.dialect.openai]\nOPENAI_BASE_URL = \"${base_url}/v1\"\nOPENAI_API_KEY = \"${nonce}\"\n"
        "[agent.needy]\ncommand = [\"needy\"]\ndialects = [\"openai\"]\nmin_pids = 32\n[agent.needy.env]\nMODEL = "
        "\"${model}\"\n"
        "[[agent.tiny.file]]\npath = \".tiny/config\"\nmode = \"600\"\ncontent = \"url=${base_url}\"\n",
        extra);
    eb_test_write_file(path, text);
    g_autoptr(GError) error = NULL;
    EbConfig *config = eb_config_load(path, EB_TEST_DATA_DIR, &error);
    g_assert_no_error(error);
    return config;
}

static void
test_block(void)
{
    g_autoptr(EbConfig) config = load("[session]\nmodel = \"m1\"\n[egress]\nallow = [\"example.org\"]\n");
    g_autoptr(GError) error = NULL;
    g_autoptr(EbLaunchPlan) plan = eb_launch_plan_new(config, "tiny", NULL, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(plan->provider->name, ==, "local");
    g_assert_cmpstr(plan->model, ==, "m1");
    char value[] = "NONCE";
    g_autoptr(EbSecret) nonce = eb_secret_new_take("nonce", value, 5, NULL);
    EbSessionEnv env = eb_launch_plan_env(plan, config, nonce);
    g_autoptr(GBytes) block = eb_session_env_bytes(&env, &error);
    g_assert_no_error(error);
    static const char records[] = "EHOME=/state/home\0"
                                  "EHTTPS_PROXY=http://127.0.0.1:47129\0"
                                  "EHTTP_PROXY=http://127.0.0.1:47129\0"
                                  "ELANG=C.UTF-8\0"
                                  "ELOGNAME=agent\0"
                                  "ENO_PROXY=127.0.0.1,localhost,::1\0"
                                  "EOPENAI_API_KEY=NONCE\0"
                                  "EOPENAI_BASE_URL=http://127.0.0.1:47129/provider/local/v1\0"
                                  "EPATH=/usr/local/bin:/usr/bin:/bin\0"
                                  "ESHELL=/bin/bash\0"
                                  "ETINY_HOME=/state/home/x\0"
                                  "ETMPDIR=/tmp\0"
                                  "EUSER=agent\0"
                                  "Ehttp_proxy=http://127.0.0.1:47129\0"
                                  "Ehttps_proxy=http://127.0.0.1:47129\0"
                                  "Eno_proxy=127.0.0.1,localhost,::1\0"
                                  "F.tiny/config\0"
                                  "600\0"
                                  "41\0"
                                  "url=http://127.0.0.1:47129/provider/local";
    g_autofree char *head = g_strdup_printf("ERRAND1 %u\n", (guint)sizeof records - 1);
    gsize length = 0;
    const char *bytes = g_bytes_get_data(block, &length);
    g_assert_cmpuint(length, ==, strlen(head) + sizeof records - 1);
    g_assert_cmpmem(bytes, strlen(head), head, strlen(head));
    g_assert_cmpmem(bytes + strlen(head), sizeof records - 1, records, sizeof records - 1);
    g_autoptr(EbExecSpec) exec = eb_launch_plan_exec(plan, config, &error);
    g_assert_no_error(error);
    g_autofree char *line = g_strjoinv(" ", exec->argv);
    g_assert_cmpstr(line, ==,
                    "/opt/errand/run/launch --relay 47129 --tmp 536870912 --shm 268435456 --home /state/home --cwd "
                    "/workspace --lease -- tiny --acp -m m1");
    g_assert_null(strstr(line, "NONCE"));
    g_assert_cmpuint(exec->uid, ==, 0);
}

/* Without the way out there are no proxy variables, but what keeps loopback direct stays. */
static void
test_no_proxy(void)
{
    g_autoptr(EbConfig) config = load("[session]\nmodel = \"m1\"\n[egress]\nmode = \"none\"\n");
    g_autoptr(EbLaunchPlan) plan = eb_launch_plan_new(config, "tiny", "other", NULL, NULL);
    g_assert_cmpstr(plan->model, ==, "other");
    g_autoptr(EbSecret) nonce = eb_secret_new_random("nonce", 16);
    EbSessionEnv env = eb_launch_plan_env(plan, config, nonce);
    g_autoptr(GBytes) block = eb_session_env_bytes(&env, NULL);
    gsize length = 0;
    const char *bytes = g_bytes_get_data(block, &length);
    g_assert_null(memmem(bytes, length, "HTTP_PROXY", 10));
    g_assert_nonnull(memmem(bytes, length, "ENO_PROXY=127.0.0.1,localhost,::1", 32));
    g_autoptr(EbBrokerRules) rules = eb_launch_plan_rules(plan, config, "abcdefghij01", nonce, nonce);
    g_assert_false(rules->proxy);
    g_assert_cmpuint(rules->providers->len, ==, 1);
}

static void
test_built_in_agents(void)
{
    g_autoptr(EbConfig) config = load("[session]\nmodel = \"m1\"\n[provider.claude]\nkind = \"anthropic\"\n"
                                      "base_url = \"https://api.anthropic.com\"\nkey = \"cred:model-key\"\n"
                                      "[provider.goog]\nkind = \"gemini\"\nbase_url = \"https://g.example\"\nkey = "
                                      "\"cred:model-key\"\n");
    g_autoptr(GPtrArray) agents = eb_config_get_agents(config);
    g_assert_cmpuint(agents->len, >=, 8);
    for (guint i = 0; i < agents->len; i++) {
        EbAgentProfile *profile = agents->pdata[i];
        g_autoptr(GError) error = NULL;
        g_autoptr(EbLaunchPlan) plan = eb_launch_plan_new(config, profile->name, NULL, NULL, &error);
        g_assert_no_error(error);
        g_autoptr(EbSecret) nonce = eb_secret_new_random("nonce", 32);
        EbSessionEnv env = eb_launch_plan_env(plan, config, nonce);
        g_autoptr(GBytes) block = eb_session_env_bytes(&env, &error);
        g_assert_no_error(error);
        g_autoptr(EbExecSpec) exec = eb_launch_plan_exec(plan, config, &error);
        g_assert_no_error(error);
        g_auto(EbSecretView) view = eb_secret_view(nonce);
        gsize length = 0;
        const char *bytes = g_bytes_get_data(block, &length);
        if (plan->provider != NULL && !g_str_equal(profile->name, "needy"))
            g_assert_nonnull(memmem(bytes, length, view.bytes, view.length));
    }
}

static void
test_plans_refused(void)
{
    g_autoptr(EbConfig) config = load("[session]\nmemory = \"1GiB\"\npids = 512\n");
    g_autoptr(GError) error = NULL;
    g_assert_null(eb_launch_plan_new(config, "no-such", NULL, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, NULL, "no-such");
    g_clear_error(&error);
    g_assert_null(eb_launch_plan_new(config, "tiny", NULL, "nobody", &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "provider.unknown", "nobody");
    g_clear_error(&error);
    g_assert_null(eb_launch_plan_new(config, "claude-agent-acp", NULL, NULL, &error));
    g_assert_cmpint(error->code, ==, EB_ERROR_CONFIG);
    g_clear_error(&error);
    g_assert_null(eb_launch_plan_new(config, "needy", NULL, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "agent.no-model", "agent needy needs to be told a model (--model");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/env/block", test_block);
    g_test_add_func("/env/no-proxy", test_no_proxy);
    g_test_add_func("/env/built-in-agents", test_built_in_agents);
    g_test_add_func("/env/plans-refused", test_plans_refused);
    return g_test_run();
}
