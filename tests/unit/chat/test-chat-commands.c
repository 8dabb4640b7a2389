/* SPDX-License-Identifier: MIT */
#include "core/chat/eb-command-parse.h"
#include "eb-test.h"

#include <string.h>

typedef struct {
    const char *text;
    EbCommandParse result;
    EbCommandId id;
    const char *value; /* of the first option, or part of the error */
} Case;

#define NONE EB_COMMAND_PARSE_NONE, EB_COMMAND_N, NULL
#define UNKNOWN EB_COMMAND_PARSE_UNKNOWN, EB_COMMAND_N, NULL
#define OK(id, value) EB_COMMAND_PARSE_OK, EB_COMMAND_##id, value
#define INVALID(text) EB_COMMAND_PARSE_INVALID, EB_COMMAND_N, text

static const Case cases[] = {
    {"fix it", NONE},
    {"", NONE},
    {"fix it !stop", NONE},
    {"!", UNKNOWN},
    {"!!", UNKNOWN},
    {"!!x", UNKNOWN},
    {"! stop", UNKNOWN},
    {"!stopp", UNKNOWN},
    {"!important: fix it", UNKNOWN},
    {"!= is wrong", UNKNOWN},
    {"!stop.", UNKNOWN},
    {"!st\xc3\xb6p", UNKNOWN},
    {"!pr title", UNKNOWN},
    {"!stop", OK(STOP, NULL)},
    {" \n!stop \n", OK(STOP, NULL)},
    {"!STOP", OK(STOP, NULL)},
    {"!stop doing that", INVALID("!stop takes nothing after it: write !stop alone")},
    {"!interrupt", OK(INTERRUPT, NULL)},
    {"!help", OK(HELP, NULL)},
    {"!help stop", OK(HELP, "stop")},
    {"!steer use\nthree lines\nof it", OK(STEER, "use\nthree lines\nof it")},
    {"!steer \"quoted\"", OK(STEER, "\"quoted\"")},
    {"!steer", INVALID("!steer TEXT lacks something: what to say to the agent. For example: !steer leave")},
    {"!then\tgo", OK(THEN, "go")},
    {"!then   ", INVALID("!then TEXT lacks something")},
    {"!model", OK(MODEL, NULL)},
    {"!model gpt-5", OK(MODEL, "gpt-5")},
    {"!allow <@123456789012345678>", OK(ALLOW, "123456789012345678")},
    {"!allow <@!123456789012345678>", OK(ALLOW, "123456789012345678")},
    {"!allow 12345", OK(ALLOW, "12345")},
    {"!allow 1234", INVALID("mention the person")},
    {"!allow 12345678901234567890123456", INVALID("mention the person")},
    {"!allow @sam", INVALID("mention the person")},
    {"!allow <@&123456789>", INVALID("mention the person")},
    {"!allow <@12345> <@12346>", INVALID("mention the person")},
    {"!allow", INVALID("!allow PERSON lacks something")},
    {"!deny 12345", OK(DENY, "12345")},
    {"!ls", OK(LS, NULL)},
    {"!ls src/a b", OK(LS, "src/a b")},
    {"!cat \"my file.txt\"", OK(CAT, "my file.txt")},
    {"!cat \xe2\x80\x9cmy file.txt\xe2\x80\x9d", OK(CAT, "my file.txt")},
    {"!cat `a`", OK(CAT, "a")},
    {"!cat it's", OK(CAT, "it's")},
    {"!cat ''", OK(CAT, "''")},
    {"!cat", INVALID("!cat PATH lacks something")},
    {"!file a/b.bin", OK(FILE, "a/b.bin")},
    {"!pwd", OK(PWD, NULL)},
    {"!!! hello", OK(ASIDE, "hello")},
    {"!!!hello", OK(ASIDE, "hello")},
    {"!!!!", OK(ASIDE, "!")},
    {"!!!", INVALID("lacks something")},
};

static void
check(EbCommandParse got, const EbCommand *command, const GError *error, const Case *wanted)
{
    g_assert_cmpint(got, ==, wanted->result);
    g_assert_true((command != NULL) == (got == EB_COMMAND_PARSE_OK));
    g_assert_true((error != NULL) == (got == EB_COMMAND_PARSE_INVALID));
    if (command != NULL) {
        g_assert_cmpint(command->spec->id, ==, wanted->id);
        g_assert_cmpstr(command->values[0], ==, wanted->value);
    }
    if (error != NULL) {
        eb_test_assert_error(error, EB_ERROR_INVALID, NULL, wanted->value);
        g_assert_null(strchr(error->message, '\n'));
    }
}

static void
test_text(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(EbCommand) command = NULL;
        g_autoptr(GError) error = NULL;
        g_test_message("\"%s\"", cases[i].text);
        EbCommandParse got = eb_command_parse_text(cases[i].text, &command, &error);
        check(got, command, error, &cases[i]);
    }
}

/* The slash form of a command is the same command. */
static void
test_action(void)
{
    static const Case actions[] = {
        {"{}", NONE},
        {"{\"command\": 7}", NONE},
        {"{\"command\": \"nothing\"}", UNKNOWN},
        {"{\"command\": \"!!\", \"options\": {\"text\": \"x\"}}", UNKNOWN},
        {"{\"command\": \"stop\"}", OK(STOP, NULL)},
        {"{\"command\": \"stop\", \"options\": {\"surplus\": \"x\"}}", OK(STOP, NULL)},
        {"{\"command\": \"steer\", \"options\": {\"text\": \" go \"}}", OK(STEER, "go")},
        {"{\"command\": \"steer\", \"options\": {\"text\": 3}}", INVALID("!steer TEXT lacks something")},
        {"{\"command\": \"steer\", \"options\": []}", INVALID("!steer TEXT lacks something")},
        {"{\"command\": \"model\", \"options\": {\"name\": \"\"}}", OK(MODEL, NULL)},
        {"{\"command\": \"allow\", \"options\": {\"person\": \"12345\"}}", OK(ALLOW, "12345")},
        {"{\"command\": \"allow\", \"options\": {\"person\": \"sam\"}}", INVALID("mention the person")},
        {"{\"command\": \"cat\", \"options\": {\"path\": \"a b\"}}", OK(CAT, "a b")},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(actions); i++) {
        g_autoptr(JsonNode) node = eb_json_parse(actions[i].text, strlen(actions[i].text), NULL, NULL);
        g_autoptr(EbCommand) command = NULL;
        g_autoptr(GError) error = NULL;
        g_test_message("%s", actions[i].text);
        EbCommandParse got = eb_command_parse_action(eb_json_node_object(node), &command, &error);
        check(got, command, error, &actions[i]);
    }
    g_autoptr(EbCommand) command = NULL;
    g_assert_cmpint(eb_command_parse_action(NULL, &command, NULL), ==, EB_COMMAND_PARSE_NONE);
}

static void
test_table(void)
{
    gsize n, n_chat;
    const EbCommandSpec *table = eb_command_table(&n);
    const EbChatCommand *chat = eb_command_list_for_chat(&n_chat);
    g_assert_cmpuint(n_chat, ==, n - 1);
    for (gsize i = 0; i < n; i++) {
        const EbCommandSpec *spec = &table[i];
        g_assert_true(eb_command_get(spec->id) == spec);
        g_assert_cmpuint(spec->n_options, <=, EB_COMMAND_MAX_OPTIONS);
        /* Whoever follows the example is understood. */
        g_autoptr(EbCommand) command = NULL;
        g_autofree char *example = NULL;
        if (spec->n_options > 0 && spec->options[0].person) {
            char **parts = g_strsplit(spec->example, "@sam", 2);
            example = g_strjoin("<@123456>", parts[0], parts[1], NULL);
            g_strfreev(parts);
        } else {
            example = g_strdup(spec->example);
        }
        g_assert_cmpint(eb_command_parse_text(example, &command, NULL), ==, EB_COMMAND_PARSE_OK);
        g_assert_true(command->spec == spec);
    }
    for (gsize i = 0; i < n_chat; i++) {
        g_assert_true(g_regex_match_simple("^[a-z][a-z0-9-]{0,31}$", chat[i].name, 0, 0));
        /* What the chat services allow for a description. */
        g_assert_cmpint(g_utf8_strlen(chat[i].summary, -1), <=, 100);
        gboolean optional = FALSE;
        for (gsize k = 0; k < chat[i].n_options; k++) {
            g_assert_true(g_regex_match_simple("^[a-z][a-z0-9-]{0,31}$", chat[i].options[k].name, 0, 0));
            g_assert_cmpint(g_utf8_strlen(chat[i].options[k].summary, -1), <=, 100);
            g_assert_false(optional && chat[i].options[k].required);
            optional = !chat[i].options[k].required;
        }
    }
}

static void
test_roles(void)
{
    g_auto(GStrv) allowed = g_strsplit("1,2,3,9", ",", 0);
    g_auto(GStrv) blocked = g_strsplit("9,8", ",", 0);
    g_auto(GStrv) operators = g_strsplit("5,8", ",", 0);
    g_auto(GStrv) everybody = g_strsplit("*", ",", 0);
    g_auto(GStrv) nobody = g_strsplit("", ",", 0);
    EbChatPolicy policy = {allowed, blocked, operators, FALSE, 0};
    EbChatPolicy open = {everybody, blocked, nobody, FALSE, 0};
    g_autoptr(GPtrArray) guests = g_ptr_array_new();
    char guest[] = "2", stranger[] = "7";
    g_ptr_array_add(guests, guest);
    g_ptr_array_add(guests, stranger);
    const struct {
        const EbChatPolicy *policy;
        const char *author;
        EbRole role;
    } roles[] = {
        {&policy, "1", EB_ROLE_OWNER},       {&policy, "2", EB_ROLE_GUEST},        {&policy, "3", EB_ROLE_ANYONE},
        {&policy, "4", EB_ROLE_NOT_ALLOWED}, {&policy, "5", EB_ROLE_OPERATOR},     {&policy, "7", EB_ROLE_NOT_ALLOWED},
        {&policy, "8", EB_ROLE_BLOCKED},     {&policy, "9", EB_ROLE_BLOCKED},      {&policy, "", EB_ROLE_NOT_ALLOWED},
        {&policy, "*", EB_ROLE_NOT_ALLOWED}, {&policy, NULL, EB_ROLE_NOT_ALLOWED}, {&open, "4", EB_ROLE_ANYONE},
        {&open, "7", EB_ROLE_GUEST},         {&open, "8", EB_ROLE_BLOCKED},        {NULL, "4", EB_ROLE_OPERATOR},
        {NULL, NULL, EB_ROLE_OPERATOR},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(roles); i++)
        g_assert_cmpint(eb_role_of(roles[i].policy, "1", guests, roles[i].author), ==, roles[i].role);
    g_assert_cmpint(eb_role_of(&policy, NULL, NULL, "1"), ==, EB_ROLE_ANYONE);
}

static void
test_help(void)
{
    g_autofree char *owner = eb_command_help_all(EB_ROLE_OWNER, EB_COMMAND_IN_THREAD);
    g_assert_nonnull(strstr(owner, "`!stop`"));
    g_assert_nonnull(strstr(owner, "`!allow PERSON`"));
    g_assert_nonnull(strstr(owner, "`!model [NAME]`"));
    g_autofree char *guest = eb_command_help_all(EB_ROLE_GUEST, EB_COMMAND_IN_THREAD);
    g_assert_null(strstr(guest, "`!stop`"));
    g_assert_nonnull(strstr(guest, "`!then TEXT`"));
    g_autofree char *anyone = eb_command_help_all(EB_ROLE_ANYONE, EB_COMMAND_IN_THREAD);
    g_assert_null(strstr(anyone, "`!then TEXT`"));
    g_assert_nonnull(strstr(anyone, "you must be invited"));
    g_autofree char *channel = eb_command_help_all(EB_ROLE_OPERATOR, EB_COMMAND_IN_CHANNEL);
    g_assert_null(strstr(channel, "`!stop`"));
    g_assert_nonnull(strstr(channel, "--model NAME"));
    gsize n;
    const EbCommandSpec *table = eb_command_table(&n);
    for (gsize i = 0; i < n; i++) {
        g_autofree char *one = eb_command_help_one(&table[i]);
        g_assert_nonnull(strstr(one, table[i].example));
    }
}

static void
test_docs(void)
{
    g_autofree char *path = g_build_filename(g_getenv("EB_TEST_SOURCE_ROOT"), "docs", "commands.md", NULL);
    g_autofree char *wanted = eb_command_to_markdown();
    g_autofree char *found = NULL;
    g_assert_true(g_file_get_contents(path, &found, NULL, NULL));
    if (!g_str_equal(found, wanted))
        g_test_message("docs/commands.md is out of date: build/tests/unit/chat/gen-commands > docs/commands.md");
    g_assert_cmpstr(found, ==, wanted);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/commands/text", test_text);
    g_test_add_func("/commands/action", test_action);
    g_test_add_func("/commands/table", test_table);
    g_test_add_func("/commands/roles", test_roles);
    g_test_add_func("/commands/help", test_help);
    g_test_add_func("/commands/docs", test_docs);
    return g_test_run();
}
