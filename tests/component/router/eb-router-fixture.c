/* SPDX-License-Identifier: MIT */
#include "eb-router-fixture.h"

#include "core/state/eb-journal.h"

#include <string.h>

EbRouterFixture *
eb_router_fixture_new(const char *dir, const char *settings)
{
    EbRouterFixture *self = g_new0(EbRouterFixture, 1);
    self->session = eb_session_fixture_new(dir, settings, EB_CHAT_CAP_STRUCTURED);
    self->chat = eb_fake_service_new();
    return self;
}

void
eb_router_fixture_open(EbRouterFixture *self)
{
    eb_session_fixture_open(self->session);
    eb_session_manager_attach_transport(self->session->manager, "chat", EB_CHAT_TRANSPORT(self->chat));
}

void
eb_router_fixture_close(EbRouterFixture *self)
{
    eb_session_fixture_close(self->session);
}

void
eb_router_fixture_restart(EbRouterFixture *self)
{
    eb_router_fixture_close(self);
    eb_router_fixture_open(self);
}

void
eb_router_fixture_free(EbRouterFixture *self)
{
    eb_session_fixture_free(self->session);
    g_object_unref(self->chat);
    g_free(self);
}

static char *
agents_dir(EbRouterFixture *self)
{
    return g_build_filename(self->session->backend->dir, "..", "agent-sessions", NULL);
}

char **
eb_router_fixture_prompts(EbRouterFixture *self)
{
    g_autofree char *path = agents_dir(self);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        if (!g_str_has_suffix(name, ".json"))
            continue;
        g_autofree char *file = g_build_filename(path, name, NULL);
        g_autofree char *text = NULL;
        gsize length = 0;
        g_assert_true(g_file_get_contents(file, &text, &length, NULL));
        g_autoptr(JsonNode) node = eb_json_parse(text, length, NULL, NULL);
        JsonArray *prompts = node != NULL ? json_node_get_array(node) : NULL;
        for (guint i = 0; prompts != NULL && i < json_array_get_length(prompts); i++)
            g_strv_builder_add(builder, eb_json_array_string(prompts, i));
    }
    return g_strv_builder_end(builder);
}

void
eb_router_fixture_open_gate(EbRouterFixture *self, const char *name)
{
    g_autofree char *path = agents_dir(self);
    g_autofree char *gate = g_build_filename(path, name, NULL);
    eb_test_write_file(gate, "");
}

guint
eb_router_fixture_count_open(EbRouterFixture *self)
{
    g_auto(EbTestResult) done = {0};
    EbStore *store = self->session->manager->parts->store;
    eb_journal_open_async(store, "chat", NULL, eb_test_result_ready, &done);
    g_autoptr(GPtrArray) open = eb_journal_open_finish(store, eb_test_result_wait(&done), NULL);
    return open->len;
}
