/* SPDX-License-Identifier: MIT */
#include "core/config/eb-agent-profile.h"

#include "core/config/eb-toml.h"
#include "eb-test.h"

#include <string.h>

static const EbAgentVars full = {.base_url = "http://127.0.0.1:9000/provider/p",
                                 .nonce = "n0nce",
                                 .model = "some/model-1.5",
                                 .provider = "p",
                                 .home = "/state/home",
                                 .workspace = "/workspace"};

static EbAgentProfile *
shipped(const char *name)
{
    g_autofree char *file = g_strconcat(name, ".toml", NULL);
    g_autofree char *path = g_build_filename(g_getenv("EB_TEST_DATA"), "agents", file, NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(EbConfigSection) section = NULL;
    EbAgentProfile *profile;
    gsize length = 0;

    g_assert_true(g_file_get_contents(path, &text, &length, NULL));
    section = eb_toml_parse(text, length, file, &error);
    g_assert_no_error(error);
    profile = eb_agent_profile_from_section(name, section, &error);
    g_assert_no_error(error);
    return profile;
}

static void
test_expand(void)
{
    static const struct {
        const char *text;
        const char *expected;
    } good[] = {
        {"", ""},
        {"plain $HOME {x} $", "plain $HOME {x} $"},
        {"${base_url}/v1", "http://127.0.0.1:9000/provider/p/v1"},
        {"<${nonce}${model}>", "<n0ncesome/model-1.5>"},
        {"$${nonce} ${home?}", "${nonce} /state/home"},
    };
    static const char *const bad[] = {"${nope}", "${", "${nonce", "${}", "${ nonce}", "${?}"};

    for (gsize i = 0; i < G_N_ELEMENTS(good); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = eb_agent_profile_expand(good[i].text, &full, &error);

        g_assert_no_error(error);
        g_assert_cmpstr(text, ==, good[i].expected);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(eb_agent_profile_expand(bad[i], &full, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "agent.template", NULL);
    }
}

static void
test_expand_missing(void)
{
    static const char *const hostile[] = {"a\"b", "a\\b", "a\nb", "a'b"};
    EbAgentVars vars = full;
    g_autoptr(GError) error = NULL;
    g_autofree char *empty = NULL;

    vars.model = NULL;
    g_assert_null(eb_agent_profile_expand("x ${model}", &vars, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "agent.no-model", "${model}");
    empty = eb_agent_profile_expand("x${model?}y", &vars, NULL);
    g_assert_cmpstr(empty, ==, "xy");
    for (gsize i = 0; i < G_N_ELEMENTS(hostile); i++) {
        g_autoptr(GError) refused = NULL;

        vars.model = hostile[i];
        g_assert_null(eb_agent_profile_expand("{\"m\":\"${model}\"}", &vars, &refused));
        eb_test_assert_error(refused, EB_ERROR_CONFIG, "agent.value", "${model}");
    }
}

/* Every profile that is shipped: read, and every file and variable it gives parses as what it claims to be. */
static void
test_shipped(void)
{
    static const char *const names[] = {"kage",       "opencode",  "claude-agent-acp", "copilot",
                                        "gemini-cli", "codex-acp", "qwen-code",        "generic"};

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(EbAgentProfile) profile = shipped(names[i]);

        g_assert_cmpuint(profile->min_memory, >=, EB_AGENT_MEMORY_FLOOR);
        g_assert_cmpuint(profile->min_pids, >=, 64);
        g_assert_cmpuint(profile->start_timeout_ms, >=, 60000);
        g_assert_nonnull(profile->dialects[0]);
        for (char **dialect = profile->dialects; *dialect != NULL; dialect++) {
            g_autoptr(GError) error = NULL;
            g_autoptr(GHashTable) env = eb_agent_profile_build_env(profile, *dialect, &full, &error);
            g_autoptr(GPtrArray) files = eb_agent_profile_build_files(profile, *dialect, &full, &error);
            gboolean base_given = FALSE;
            gboolean nonce_given = FALSE;
            GHashTableIter iter;
            gpointer value;

            g_assert_no_error(error);
            g_hash_table_iter_init(&iter, env);
            while (g_hash_table_iter_next(&iter, NULL, &value)) {
                g_assert_null(strstr(value, "${"));
                base_given |= strstr(value, full.base_url) != NULL;
                nonce_given |= strstr(value, full.nonce) != NULL;
                if (((char *)value)[0] == '{') {
                    g_autoptr(JsonNode) node = eb_json_parse(value, strlen(value), NULL, &error);

                    g_assert_no_error(error);
                    g_assert_nonnull(node);
                }
            }
            for (guint k = 0; k < files->len; k++) {
                const EbAgentFile *file = g_ptr_array_index(files, k);

                g_assert_cmpuint(file->mode, ==, 0600);
                base_given |= strstr(file->content, full.base_url) != NULL;
                /* The nonce goes by the environment alone, which does not survive in the agent's home. */
                g_assert_null(strstr(file->content, full.nonce));
                if (g_str_has_suffix(file->path, ".json")) {
                    g_autoptr(JsonNode) node = eb_json_parse(file->content, strlen(file->content), NULL, &error);

                    g_assert_no_error(error);
                } else {
                    g_autoptr(EbConfigSection) toml =
                        eb_toml_parse(file->content, strlen(file->content), file->path, &error);

                    g_assert_no_error(error);
                }
            }
            g_assert_true(base_given);
            g_assert_true(nonce_given);
        }
    }
}

static void
test_opencode_asks(void)
{
    g_autoptr(EbAgentProfile) profile = shipped("opencode");
    g_autoptr(GHashTable) env = eb_agent_profile_build_env(profile, "openai", &full, NULL);
    const char *text = g_hash_table_lookup(env, "OPENCODE_CONFIG_CONTENT");
    g_autoptr(JsonNode) node = eb_json_parse(text, strlen(text), NULL, NULL);
    JsonObject *permission = eb_json_get_object(eb_json_node_object(node), "permission");

    g_assert_cmpstr(eb_json_get_string(permission, "edit"), ==, "ask");
    g_assert_cmpstr(eb_json_get_string(permission, "bash"), ==, "ask");
    g_assert_cmpstr(g_hash_table_lookup(env, "OPENCODE_DISABLE_MODELS_FETCH"), ==, "1");
}

static void
test_kage_files_by_dialect(void)
{
    g_autoptr(EbAgentProfile) profile = shipped("kage");
    g_auto(GStrv) command = eb_agent_profile_build_command(profile, &full, NULL);
    g_autoptr(GPtrArray) openai = eb_agent_profile_build_files(profile, "openai", &full, NULL);
    g_autoptr(GPtrArray) gemini = eb_agent_profile_build_files(profile, "gemini", &full, NULL);
    g_autofree char *line = g_strjoinv(" ", command);

    g_assert_cmpstr(line, ==, "kage rpc -m errand:some/model-1.5");
    g_assert_cmpuint(openai->len, ==, 1);
    g_assert_cmpuint(gemini->len, ==, 1);
    g_assert_nonnull(strstr(((EbAgentFile *)openai->pdata[0])->content, "provider/p/v1\""));
    g_assert_nonnull(strstr(((EbAgentFile *)gemini->pdata[0])->content, "provider/p\""));
}

/* No provider: no half settings. No model for an agent that needs one: said, not guessed. */
static void
test_missing_values(void)
{
    g_autoptr(EbAgentProfile) opencode = shipped("opencode");
    g_autoptr(EbAgentProfile) codex = shipped("codex-acp");
    g_autoptr(EbAgentProfile) claude = shipped("claude-agent-acp");
    const EbAgentVars none = {.home = "/state/home", .workspace = "/workspace"};
    EbAgentVars no_model = full;
    g_autoptr(GError) error = NULL;
    g_autoptr(GHashTable) bare = eb_agent_profile_build_env(opencode, NULL, &none, NULL);
    g_autoptr(GPtrArray) codex_files = NULL;
    g_autoptr(GHashTable) claude_env = NULL;

    g_assert_false(g_hash_table_contains(bare, "OPENCODE_CONFIG_CONTENT"));
    g_assert_true(g_hash_table_contains(bare, "OPENCODE_DISABLE_PRUNE"));
    no_model.model = NULL;
    g_assert_null(eb_agent_profile_build_env(opencode, "openai", &no_model, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "agent.no-model", "model");
    codex_files = eb_agent_profile_build_files(codex, "openai-responses", &no_model, NULL);
    g_assert_nonnull(strstr(((EbAgentFile *)codex_files->pdata[0])->content, "model = \"gpt-5\""));
    claude_env = eb_agent_profile_build_env(claude, "anthropic", &no_model, NULL);
    g_assert_false(g_hash_table_contains(claude_env, "ANTHROPIC_MODEL"));
    g_assert_cmpstr(g_hash_table_lookup(claude_env, "ANTHROPIC_BASE_URL"), ==, full.base_url);
}

static void
test_choose_dialect(void)
{
    g_autoptr(EbAgentProfile) copilot = shipped("copilot");
    g_autoptr(EbAgentProfile) codex = shipped("codex-acp");
    g_autoptr(EbAgentProfile) kage = shipped("kage");

    g_assert_cmpstr(eb_agent_profile_choose_dialect(copilot, "openai"), ==, "openai");
    g_assert_cmpstr(eb_agent_profile_choose_dialect(copilot, "anthropic"), ==, "anthropic");
    g_assert_cmpstr(eb_agent_profile_choose_dialect(copilot, "gemini"), ==, NULL);
    g_assert_cmpstr(eb_agent_profile_choose_dialect(codex, "openai"), ==, "openai-responses");
    g_assert_cmpstr(eb_agent_profile_choose_dialect(codex, "anthropic"), ==, NULL);
    g_assert_cmpstr(eb_agent_profile_choose_dialect(kage, "gemini"), ==, "gemini");
}

/* Every problem of a table is told at once, with its line. */
static void
test_refused(void)
{
    static const char *const text = "dialects = [\"openai\", \"cobol\"]\n"
                                    "comand = [\"x\"]\n"
                                    "min_memory = \"512MiB\"\n"
                                    "model_via = \"magic\"\n"
                                    "unset = [\"A B\"]\n"
                                    "[env]\n"
                                    "GOOD = \"${nonce}\"\n"
                                    "BAD = \"${key}\"\n"
                                    "[dialect.gemini]\n"
                                    "X = \"1\"\n"
                                    "[[file]]\n"
                                    "path = \"../.ssh/authorized_keys\"\n"
                                    "content = \"\"\n"
                                    "[[file]]\n"
                                    "path = \"ok\"\n"
                                    "mode = \"999\"\n"
                                    "content = \"x\"\n";
    static const char *const told[] = {"cobol",         "comand", "command: missing", "min_memory", "magic", "A B",
                                       "t.toml:8: env", "${key}", "gemini",           "t.toml:12",  "octal"};
    g_autoptr(GError) error = NULL;
    g_autoptr(EbConfigSection) section = eb_toml_parse(text, strlen(text), "t.toml", &error);

    g_assert_no_error(error);
    g_assert_null(eb_agent_profile_from_section("t", section, &error));
    for (gsize i = 0; i < G_N_ELEMENTS(told); i++) {
        if (strstr(error->message, told[i]) == NULL)
            g_test_message("not told: %s\nin:\n%s", told[i], error->message);
        eb_test_assert_error(error, EB_ERROR_CONFIG, "agent.profile", told[i]);
    }
}

/* Built by hand, without TOML. */
static void
test_by_hand(void)
{
    g_autoptr(EbConfigSection) section = eb_config_section_new("agent.mine");
    const char *const command[] = {"mine", "--acp", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(EbAgentProfile) profile = NULL;

    eb_config_section_set(section, "command", g_variant_new_strv(command, -1), "x.toml", 1);
    eb_config_section_set(section, "eof", g_variant_new_string("7s"), "x.toml", 2);
    profile = eb_agent_profile_from_section("mine", section, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(profile->title, ==, "mine");
    g_assert_cmpuint(profile->eof_ms, ==, 7000);
    g_assert_cmpuint(profile->min_memory, ==, EB_AGENT_MEMORY_FLOOR);
    g_assert_null(profile->dialects[0]);
    g_assert_null(eb_agent_profile_choose_dialect(profile, "openai"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/agent-profile/expand", test_expand);
    g_test_add_func("/agent-profile/expand-missing", test_expand_missing);
    g_test_add_func("/agent-profile/shipped", test_shipped);
    g_test_add_func("/agent-profile/opencode-asks", test_opencode_asks);
    g_test_add_func("/agent-profile/kage-files-by-dialect", test_kage_files_by_dialect);
    g_test_add_func("/agent-profile/missing-values", test_missing_values);
    g_test_add_func("/agent-profile/choose-dialect", test_choose_dialect);
    g_test_add_func("/agent-profile/refused", test_refused);
    g_test_add_func("/agent-profile/by-hand", test_by_hand);
    return g_test_run();
}
