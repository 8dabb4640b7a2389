/* SPDX-License-Identifier: MIT */
/* Who may start, states of a session, names. */
#include "core/session/eb-admission.h"
#include "core/session/eb-project-name.h"
#include "core/session/eb-session-state.h"
#include "eb-test.h"

#include <string.h>

typedef struct {
    const char *name;
    GString *log;
    EbTicket *ticket;
    GError *error;
    gboolean done;
} Waiter;

static void
on_position(guint position, gpointer data)
{
    Waiter *waiter = data;
    g_string_append_printf(waiter->log, "%s@%u ", waiter->name, position);
}

static void
on_ticket(GObject *source, GAsyncResult *result, gpointer data)
{
    Waiter *waiter = data;
    waiter->ticket = eb_admission_acquire_finish(EB_ADMISSION(source), result, &waiter->error);
    waiter->done = TRUE;
    if (waiter->ticket != NULL)
        g_string_append_printf(waiter->log, "%s! ", waiter->name);
}

static void
acquire(EbAdmission *admission, Waiter *waiter, const char *owner, GCancellable *cancellable)
{
    eb_admission_acquire_async(admission, owner, on_position, cancellable, on_ticket, waiter);
}

static void
release(Waiter *waiter)
{
    g_clear_pointer(&waiter->ticket, eb_ticket_free);
    eb_test_drain();
}

static void
test_fair(void)
{
    g_autoptr(GString) log = g_string_new(NULL);
    g_autoptr(EbAdmission) admission = eb_admission_new("turn", 1, 10, 60000);
    Waiter w[5] = {{.name = "a1", .log = log},
                   {.name = "a2", .log = log},
                   {.name = "a3", .log = log},
                   {.name = "b1", .log = log},
                   {.name = "c1", .log = log}};
    acquire(admission, &w[0], "a", NULL);
    acquire(admission, &w[1], "a", NULL);
    acquire(admission, &w[2], "a", NULL);
    acquire(admission, &w[3], "b", NULL);
    acquire(admission, &w[4], "c", NULL);
    eb_test_drain();
    /* b and c had nothing yet: they come before the further errands of a. */
    g_assert_cmpstr(log->str, ==, "a1! b1@1 c1@2 a2@3 a3@4 ");
    g_string_truncate(log, 0);
    release(&w[0]);
    /* a holds nothing now: a2 came first. */
    g_assert_cmpstr(log->str, ==, "a2! a3@3 ");
    release(&w[1]);
    release(&w[2]);
    release(&w[3]);
    release(&w[4]);
    for (guint i = 0; i < 5; i++)
        release(&w[i]);
    for (guint i = 0; i < 5; i++)
        release(&w[i]);
    g_assert_cmpuint(eb_admission_get_held(admission), ==, 0);
    g_assert_cmpuint(eb_admission_get_waiting(admission), ==, 0);
}

static void
test_full_expired_cancelled(void)
{
    g_autoptr(GString) log = g_string_new(NULL);
    g_autoptr(EbAdmission) admission = eb_admission_new("session", 1, 2, 50);
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    Waiter w[4] = {
        {.name = "1", .log = log}, {.name = "2", .log = log}, {.name = "3", .log = log}, {.name = "4", .log = log}};
    acquire(admission, &w[0], "a", NULL);
    acquire(admission, &w[1], "b", NULL);
    acquire(admission, &w[2], "c", cancellable);
    acquire(admission, &w[3], "d", NULL);
    eb_test_run_until_true(&w[3].done);
    eb_test_assert_error(w[3].error, EB_ERROR_QUOTA, "admission.full", "1 of 1 sessions run and 2 wait");
    g_cancellable_cancel(cancellable);
    eb_test_run_until_true(&w[2].done);
    eb_test_assert_error(w[2].error, EB_ERROR_CANCELLED, NULL, NULL);
    eb_test_run_until_true(&w[1].done);
    eb_test_assert_error(w[1].error, EB_ERROR_TIMEOUT, "admission.expired", "free session");
    g_assert_cmpuint(eb_admission_get_waiting(admission), ==, 0);
    release(&w[0]);
    g_assert_cmpuint(eb_admission_get_held(admission), ==, 0);
    for (guint i = 0; i < 4; i++)
        g_clear_error(&w[i].error);
}

/* Whatever happens, places are never exceeded and nobody is forgotten. */
static void
test_random(void)
{
    g_autoptr(GString) log = g_string_new(NULL);
    g_autoptr(EbAdmission) admission = eb_admission_new("turn", 3, 64, 60000);
    enum { N = 60 };
    g_autofree Waiter *w = g_new0(Waiter, N);
    static const char *const owners[] = {"a", "b", "c", "d"};
    guint started = 0;
    guint finished = 0;
    gboolean released[N] = {0};
    while (finished < N) {
        if (started < N && g_test_rand_int_range(0, 2) == 0) {
            w[started].name = "x";
            w[started].log = log;
            acquire(admission, &w[started], owners[g_test_rand_int_range(0, 4)], NULL);
            started++;
        } else {
            guint i = (guint)g_test_rand_int_range(0, N);
            if (w[i].ticket != NULL) {
                g_clear_pointer(&w[i].ticket, eb_ticket_free);
                released[i] = TRUE;
                finished++;
            }
        }
        eb_test_drain();
        guint held = 0;
        for (guint i = 0; i < N; i++)
            held += w[i].ticket != NULL;
        g_assert_cmpuint(held, <=, 3);
        g_assert_cmpuint(held, ==, eb_admission_get_held(admission));
        g_assert_true(eb_admission_get_waiting(admission) == 0 || held == 3);
    }
    for (guint i = 0; i < N; i++)
        g_assert_true(released[i]);
}

static void
test_states(void)
{
    guint allowed = 0;
    for (int state = EB_SESSION_STARTING; state <= EB_SESSION_ENDED; state++)
        for (int event = EB_SESSION_EVENT_OPENED; event <= EB_SESSION_EVENT_ENDED; event++) {
            EbSessionState next;
            if (eb_session_state_next((EbSessionState)state, (EbSessionEvent)event, &next)) {
                allowed++;
                g_assert_cmpint(state, !=, EB_SESSION_ENDED);
                g_assert_true((event == EB_SESSION_EVENT_ENDED) == (next == EB_SESSION_ENDED));
                g_assert_true((event == EB_SESSION_EVENT_PROMPTED) == (next == EB_SESSION_WORKING));
            }
        }
    g_assert_cmpuint(allowed, ==, 9);
    EbSessionState next;
    g_assert_false(eb_session_state_next(EB_SESSION_STARTING, EB_SESSION_EVENT_PROMPTED, &next));
    g_assert_false(eb_session_state_next(EB_SESSION_WORKING, EB_SESSION_EVENT_PROMPTED, &next));
    g_assert_false(eb_session_state_next(EB_SESSION_WORKING, EB_SESSION_EVENT_RESTED, &next));
    g_assert_false(eb_session_state_next((EbSessionState)9, EB_SESSION_EVENT_ENDED, &next));
    g_assert_cmpstr(eb_session_state_to_string(EB_SESSION_IDLE), ==, "idle");
}

static void
test_project_names(void)
{
    static const char *const good[] = {"a", "A.b_c-9", "0", "errand-box", "x..y"};
    static const char *const bad[] = {"",     ".",   "..",    ".git", "a/b", "../a",
                                      "/etc", "a b", "naïve", "a\nb", "-rf", "a\\b"};
    for (guint i = 0; i < G_N_ELEMENTS(good); i++)
        g_assert_true(eb_project_name_check(good[i], NULL));
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_false(eb_project_name_check(bad[i], &error));
        eb_test_assert_error(error, EB_ERROR_INVALID, "project.name", NULL);
        g_assert_null(strchr(error->message, '\n'));
    }
    g_autofree char *longest = g_strnfill(64, 'p');
    g_autofree char *too_long = g_strnfill(300, 'p');
    g_assert_true(eb_project_name_check(longest, NULL));
    g_autoptr(GError) error = NULL;
    g_assert_false(eb_project_name_check(too_long, &error));
    g_assert_cmpuint(strlen(error->message), <, 220);
    g_assert_false(eb_project_name_check(NULL, NULL));
}

static void
test_ids(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < 1000; i++) {
        char *id = eb_session_id_new();
        g_assert_true(eb_session_id_check(id));
        g_assert_true(g_hash_table_add(seen, id));
    }
    g_assert_false(eb_session_id_check("short"));
    g_assert_false(eb_session_id_check("../../../../"));
    g_assert_false(eb_session_id_check("ABCDEFGHIJKL"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/admission/fair", test_fair);
    g_test_add_func("/admission/full-expired-cancelled", test_full_expired_cancelled);
    g_test_add_func("/admission/random", test_random);
    g_test_add_func("/session/states", test_states);
    g_test_add_func("/session/project-names", test_project_names);
    g_test_add_func("/session/ids", test_ids);
    return g_test_run();
}
