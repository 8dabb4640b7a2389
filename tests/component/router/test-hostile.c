/* SPDX-License-Identifier: MIT */
/* What people get away with who may not, or may no longer. */
#include "eb-router-fixture.h"

#include "core/base/eb-redactor.h"

#include <string.h>

static EbRouterFixture *
fixture(void)
{
    EbRouterFixture *r = eb_router_fixture_new(NULL, NULL);
    eb_router_fixture_open(r);
    return r;
}

static gboolean
reacted(EbRouterFixture *r, const char *id, const char *all)
{
    return g_str_equal(eb_fake_service_reaction(r->chat, id), all);
}

static gboolean
answered(EbRouterFixture *r, const char *id, const char *part)
{
    const char *text = eb_fake_service_answer_to(r->chat, id);
    return text != NULL && strstr(text, part) != NULL;
}

static gboolean
agent_has(EbRouterFixture *r, const char *text)
{
    g_auto(GStrv) prompts = eb_router_fixture_prompts(r);
    return g_strv_contains((const char *const *)prompts, text);
}

static const char *
begin(EbRouterFixture *r, const char *text)
{
    const char *id = eb_fake_service_say(r->chat, NULL, OWNER, text);
    UNTIL(reacted(r, id, "wait done"));
    return id;
}

/* Who was denied speaks no more: neither by what waits, nor by changing it. */
static void
test_denied_guest(void)
{
    g_autoptr(EbRouterFixture) r = fixture();
    const char *thread = begin(r, "say x");
    const char *allow = eb_fake_service_say(r->chat, thread, OWNER, "!allow <@" FRIEND ">");
    UNTIL(answered(r, allow, "may speak to the agent"));
    eb_fake_service_say(r->chat, thread, OWNER, "gate open");
    UNTIL(agent_has(r, "gate open"));
    const char *waits = eb_fake_service_say(r->chat, thread, FRIEND, "say of the guest");
    const char *own = eb_fake_service_say(r->chat, thread, OWNER, "say of the owner");
    UNTIL(reacted(r, own, "wait"));
    const char *deny = eb_fake_service_say(r->chat, thread, OWNER, "!deny <@" FRIEND ">");
    UNTIL(answered(r, deny, "may not speak to the agent here any more; what waited of it (1) is dropped"));
    UNTIL(reacted(r, waits, "wait stop"));
    eb_fake_service_edit(r->chat, waits, "say changed");
    eb_router_fixture_open_gate(r, "open");
    UNTIL(reacted(r, own, "wait done"));
    UNTIL(eb_router_fixture_count_open(r) == 0);
    g_assert_false(agent_has(r, "say of the guest"));
    g_assert_false(agent_has(r, "say changed"));
}

/* What waits of somebody who was taken off the lists when the service comes back is nobody's. */
static void
test_blocked_over_restart(void)
{
    static const char *const blocked[] = {OWNER, NULL};
    g_autoptr(EbRouterFixture) r = fixture();
    const char *thread = begin(r, "say x");
    eb_fake_service_say(r->chat, thread, OWNER, "gate never");
    UNTIL(agent_has(r, "gate never"));
    const char *waits = eb_fake_service_say(r->chat, thread, OWNER, "say later");
    UNTIL(reacted(r, waits, "wait"));
    eb_router_fixture_close(r);
    char **before = r->chat->policy.blocked;
    r->chat->policy.blocked = (char **)(gpointer)blocked;
    guint posts = eb_fake_service_count(r->chat, thread);
    eb_router_fixture_open(r);
    UNTIL(eb_router_fixture_count_open(r) == 0);
    g_assert_null(eb_session_manager_find_live(r->session->manager, "chat", thread));
    g_assert_cmpuint(eb_fake_service_count(r->chat, thread), ==, posts);
    g_assert_false(agent_has(r, "say later"));
    eb_router_fixture_close(r);
    r->chat->policy.blocked = before;
}

/* --- secrets in files --- */

#define SECRET "tok3n-of-the-operator-0123456789"

static void
write_project(EbRouterFixture *r, const char *name, const char *bytes, gsize length)
{
    g_autofree char *path = g_build_filename(eb_config_get_project_root(r->session->config), "web", name, NULL);
    g_assert_true(g_file_set_contents(path, bytes, (gssize)length, NULL));
}

static const EbChatFile *
last_file(EbRouterFixture *r)
{
    for (guint i = r->chat->posts->len; i > 0; i--) {
        const EbChatPost *post = r->chat->posts->pdata[i - 1];
        if (post->files != NULL && post->files->len > 0)
            return post->files->pdata[0];
    }
    return NULL;
}

static void
assert_file(EbRouterFixture *r, const char *expected, gsize length)
{
    gsize size = 0;
    const char *bytes = g_bytes_get_data(last_file(r)->bytes, &size);
    g_assert_cmpmem(bytes, size, expected, length);
}

static void
add_secret(void)
{
    char value[] = SECRET;
    g_autoptr(EbSecret) secret = eb_secret_new_take("chat-token", value, strlen(value), NULL);
    g_assert_true(eb_redact_add_configured(secret));
}

/* What a person writes by mistake is not written once more by us, nor kept in the name of a thread. */
static void
test_secret_in_words(void)
{
    add_secret();
    g_autoptr(EbRouterFixture) r = fixture();
    const char *thread = begin(r, "say " SECRET);
    g_assert_cmpstr(g_hash_table_lookup(r->chat->threads, thread), ==, "say [chat-token]");
    const char *gate = eb_fake_service_say(r->chat, thread, OWNER, "gate open");
    UNTIL(agent_has(r, "gate open"));
    g_autofree char *filler = g_strnfill(60, '.');
    g_autofree char *words = g_strconcat(filler, SECRET, NULL);
    const char *waits = eb_fake_service_say(r->chat, thread, OWNER, words);
    UNTIL(reacted(r, waits, "wait"));
    const char *queue = eb_fake_service_say(r->chat, thread, OWNER, "!queue");
    UNTIL(answered(r, queue, "[chat-token]"));
    g_assert_null(strstr(eb_fake_service_answer_to(r->chat, queue), "tok3n"));
    eb_router_fixture_open_gate(r, "open");
    UNTIL(reacted(r, gate, "wait done"));
    UNTIL(reacted(r, waits, "wait done"));
}

static void
test_secret_in_file(void)
{
    static const char binary[] = "\0\1\2" SECRET "\0\3";
    static const char masked[] = "\0\1\2[chat-token]\0\3";
    static const char plain[] = "\0\1\2nothing\0";
    add_secret();
    g_autoptr(EbRouterFixture) r = fixture();
    const char *thread = begin(r, "web: say x");
    write_project(r, "env", "A=" SECRET "\n", strlen("A=" SECRET "\n"));
    const char *text = eb_fake_service_say(r->chat, thread, OWNER, "!file env");
    UNTIL(answered(r, text, "`env`: not as it is: secrets in it are masked"));
    assert_file(r, "A=[chat-token]\n", strlen("A=[chat-token]\n"));
    write_project(r, "core.bin", binary, sizeof binary - 1);
    const char *dump = eb_fake_service_say(r->chat, thread, OWNER, "!file core.bin");
    UNTIL(answered(r, dump, "`core.bin`: not as it is"));
    assert_file(r, masked, sizeof masked - 1);
    write_project(r, "plain.bin", plain, sizeof plain - 1);
    const char *other = eb_fake_service_say(r->chat, thread, OWNER, "!file plain.bin");
    UNTIL(answered(r, other, "`plain.bin`"));
    assert_file(r, plain, sizeof plain - 1);
    write_project(r, SECRET, "x", 1);
    const char *name = eb_fake_service_say(r->chat, thread, OWNER, "!file " SECRET);
    UNTIL(answered(r, name, "[chat-token]"));
    g_assert_null(strstr(last_file(r)->name, "operator"));
    /* Cut within the secret: what is before the cut is more than half of it. */
    g_autofree char *filler = g_strnfill(12 * 1024 - strlen(SECRET) + 4, '.');
    g_autofree char *long_text = g_strconcat(filler, SECRET, " and so on", NULL);
    write_project(r, "long", long_text, strlen(long_text));
    const char *cat = eb_fake_service_say(r->chat, thread, OWNER, "!cat long");
    UNTIL(eb_fake_service_answer_to(r->chat, cat) != NULL);
    UNTIL(eb_router_fixture_count_open(r) == 0);
    for (guint i = 0; i < r->chat->posts->len; i++)
        g_assert_null(strstr(((EbChatPost *)r->chat->posts->pdata[i])->text, "tok3n"));
}

/* What an agent says of itself stays within its code span, and is no more than people can read. */
static void
test_posing_agent(void)
{
    static const char *const commands[] = {"!status", "!model"};
    g_autoptr(EbRouterFixture) r = eb_router_fixture_new(
        NULL, "[agent.posing]\ncommand = [\"test-agent\", \"posing\"]\ndialects = [\"openai\"]\n");
    eb_router_fixture_open(r);
    const char *thread = begin(r, "--agent posing say x");
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        const char *id = eb_fake_service_say(r->chat, thread, OWNER, commands[i]);
        UNTIL(answered(r, id, "`x'"));
        g_assert_null(strstr(eb_fake_service_answer_to(r->chat, id), "\n- state: **"));
    }
    UNTIL(eb_router_fixture_count_open(r) == 0);
    g_assert_cmpuint(eb_fake_service_count(r->chat, thread), <, 20);
}

static guint64
resident_kib(void)
{
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents("/proc/self/status", &text, NULL, NULL));
    const char *line = strstr(text, "VmRSS:");
    return line != NULL ? g_ascii_strtoull(line + strcspn(line, "0123456789"), NULL, 10) : 0;
}

/* An agent that does all of it too often: the service stays small, and the thread readable. */
static void
test_storm(void)
{
    g_autoptr(EbRouterFixture) r = fixture();
    guint64 before_kib = resident_kib();
    const char *thread = eb_fake_service_say(r->chat, NULL, OWNER, "storm");
    guint most = 0;
    guint64 most_kib = 0;
    while (!reacted(r, thread, "wait done")) {
        most = MAX(most, r->chat->asking->len);
        most_kib = MAX(most_kib, resident_kib());
        g_main_context_iteration(NULL, TRUE);
    }
    g_assert_cmpuint(most, <=, 64);
    g_assert_cmpuint(r->chat->asking->len, ==, 0);
    g_assert_cmpuint(eb_fake_service_count(r->chat, thread), <, 3000);
    g_test_message("%" G_GUINT64_FORMAT " KiB more", most_kib - MIN(before_kib, most_kib));
#ifndef __SANITIZE_ADDRESS__ /* which keeps what was freed */
    g_assert_cmpuint(most_kib, <, before_kib + 192 * 1024);
#endif
    UNTIL(eb_router_fixture_count_open(r) == 0);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/hostile/denied-guest", test_denied_guest);
    g_test_add_func("/hostile/blocked-over-restart", test_blocked_over_restart);
    g_test_add_func("/hostile/secret-in-file", test_secret_in_file);
    g_test_add_func("/hostile/secret-in-words", test_secret_in_words);
    g_test_add_func("/hostile/posing-agent", test_posing_agent);
    g_test_add_func("/hostile/storm", test_storm);
    return g_test_run();
}
