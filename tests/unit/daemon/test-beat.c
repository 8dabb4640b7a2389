/* SPDX-License-Identifier: MIT */
/* The one line that a supervisor shows of the service. */
#include "core/daemon/eb-daemon-beat.h"
#include "tests/lib/eb-test.h"

#include <string.h>

static void
test_text(void)
{
    const char *json = "{\"live\":2,\"max_live\":4,\"turns\":1,\"waiting_sessions\":1,\"waiting_turns\":2}";
    g_autoptr(JsonNode) node = eb_json_parse(json, strlen(json), NULL, NULL);
    g_autofree char *text = eb_daemon_beat_text(eb_json_node_object(node), NULL);
    g_autofree char *held = eb_daemon_beat_text(eb_json_node_object(node), "E-05: the pool is full");

    g_assert_cmpstr(text, ==, "2 of 4 sessions, 1 turn at work, 3 waiting");
    g_assert_cmpstr(held, ==, "2 of 4 sessions, 1 turn at work, 3 waiting; no new sessions: E-05: the pool is full");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/daemon-beat/text", test_text);
    return g_test_run();
}
