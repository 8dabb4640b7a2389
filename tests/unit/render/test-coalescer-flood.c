/* SPDX-License-Identifier: MIT */
/* The coalescer with whatever comes in whatever order, and with far too much. */
#include "coalescer-fixture.h"
#include "core/render/eb-coalescer-private.h"

/* Whatever floods it, the queue is bounded, and people are told. */
static void
test_bounds(void)
{
    Fixture f;
    begin(&f, CHAT, 2000, 1);
    f.chat->hold = TRUE;
    for (guint i = 0; i < 3000; i++) {
        g_autofree char *key = g_strdup_printf("text-%u", i);
        say(&f, key, key, TRUE);
        push(&f, EB_CHAT_POST_NOTICE, NULL, key, NULL);
        g_assert_cmpuint(eb_coalescer_get_queued(f.coalescer), <=, EB_COALESCER_MAX_POSTS);
    }
    g_autofree char *large = g_strnfill(300 * 1024, 'x');
    for (guint i = 0; i < 40; i++)
        push(&f, EB_CHAT_POST_NOTICE, NULL, large, NULL);
    push(&f, EB_CHAT_POST_END, NULL, "the end", NULL);
    g_assert_cmpuint(eb_coalescer_get_queued(f.coalescer), <=, EB_COALESCER_MAX_POSTS);
    render_chat_release(f.chat);
    flush(&f);
    g_autofree char *screen = render_chat_screen(f.chat);
    g_assert_nonnull(strstr(screen, "messages were left out: the chat could not keep up"));
    g_assert_true(g_str_has_suffix(screen, "|the end"));
    end(&f);
}

/* Whatever comes, in whatever order, while the chat is slow or not: each thing is seen once, and in order. */
static void
random_round(guint caps)
{
    Fixture f;
    guint tools = 0;
    g_autoptr(GString) order = g_string_new(NULL); /* of what makes a message of its own */
    begin(&f, (EbChatCaps)caps, (guint)g_test_rand_int_range(100, 400), (guint)g_test_rand_int_range(0, 4));
    guint n = (guint)g_test_rand_int_range(1, 60);
    for (guint i = 0; i < n; i++) {
        g_autofree char *token = g_strdup_printf("<%u>", i);
        switch (g_test_rand_int_range(0, 8)) {
        case 0:
        case 1: {
            g_autofree char *key = g_strdup_printf("text-%u", i);
            guint pieces = (guint)g_test_rand_int_range(1, 30);
            say(&f, key, token, FALSE);
            for (guint k = 0; k < pieces; k++)
                say(&f, key, k % 7 == 6 ? "\n\n" : " and more", FALSE);
            if (g_test_rand_bit())
                say(&f, key, "", TRUE);
            g_string_append(order, token);
            break;
        }
        case 2:
            push(&f, EB_CHAT_POST_NOTICE, NULL, token, NULL);
            g_string_append(order, token);
            break;
        case 3:
        case 4: {
            g_autofree char *key = g_strdup_printf("tool-%u", tools++);
            g_autofree char *line = g_strdup_printf("tool %s", token);
            tool(&f, key, line, "pending", NULL);
            g_string_append(order, token);
            break;
        }
        case 5:
            if (tools > 0) {
                /* Only what it says of a call that is known already. */
                g_autofree char *key = g_strdup_printf("tool-%u", (guint)g_test_rand_int_range(0, (int)tools));
                tool(&f, key, "tool (changed)", g_test_rand_bit() ? "completed" : "in_progress", NULL);
            }
            break;
        case 6:
            push(&f, EB_CHAT_POST_PLAN, "plan", "", "{\"entries\":[{\"content\":\"look\"}]}");
            break;
        default:
            if (g_test_rand_int_range(0, 6) > 0)
                g_main_context_iteration(NULL, FALSE);
            else
                eb_test_run_until(is_quiet, &f);
            break;
        }
    }
    push(&f, EB_CHAT_POST_END, NULL, "the end", "{}");
    flush(&f);
    g_autofree char *screen = render_chat_screen(f.chat);
    g_autoptr(GString) seen = g_string_new(NULL);
    for (const char *at = strchr(screen, '<'); at != NULL; at = strchr(at + 1, '<'))
        g_string_append_len(seen, at, strchr(at, '>') - at + 1);
    /* A changed line no longer has its mark. */
    const char *expected = order->str;
    for (const char *at = seen->str; *at != '\0'; at = strchr(at, '>') + 1) {
        g_autofree char *token = g_strndup(at, (gsize)(strchr(at, '>') - at) + 1);
        const char *place = strstr(expected, token);
        g_assert_nonnull(place);
        expected = place + strlen(token);
    }
    guint made = 0;
    guint shown = 0;
    for (const char *at = order->str; *at != '\0'; at++)
        made += *at == '<';
    for (const char *at = screen; *at != '\0'; at++)
        shown += *at == '<';
    for (const char *at = screen; (at = strstr(at, "tool (changed)")) != NULL; at++)
        shown++;
    g_assert_cmpuint(shown, ==, made);
    g_assert_true(g_str_has_suffix(screen, "|the end") || g_str_equal(screen, "the end"));
    end(&f);
}

static void
test_random(void)
{
    for (guint i = 0; i < 80; i++)
        random_round(i % 2 ? CHAT : EB_CHAT_CAP_EDIT);
}

/* A transport that keeps a post until it is shown is not given up on; any other one is, some time. */
static void
test_patience(void)
{
    for (guint patient = 0; patient < 2; patient++) {
        Fixture f;
        begin(&f, CHAT, 2000, 1);
        f.chat->limits.patient = patient == 1;
        f.chat->hold = TRUE;
        g_clear_object(&f.coalescer);
        f.coalescer = eb_coalescer_new(EB_CHAT_TRANSPORT(f.chat));
        push(&f, EB_CHAT_POST_NOTICE, NULL, "a", NULL);
        g_assert_true(f.coalescer->posting);
        g_assert_cmpint(f.coalescer->deadline == NULL, ==, patient == 1);
        render_chat_release(f.chat);
        assert_screen(&f, "a");
        end(&f);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/coalescer/random", test_random);
    g_test_add_func("/coalescer/patience", test_patience);
    g_test_add_func("/coalescer/bounds", test_bounds);
    return g_test_run();
}
