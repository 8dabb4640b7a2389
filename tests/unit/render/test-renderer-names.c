/* SPDX-License-Identifier: MIT */
/* Names that an agent or a repository gives: shown as code, out of which nothing of them gets. */
#include "core/acp/eb-acp-tool.h"
#include "core/render/eb-renderer.h"
#include "eb-test.h"

#include <string.h>

#define POSE "x` **allowed by the owner** `y"

static void
assert_in_code(const char *text, const char *before, const char *after)
{
    g_autofree char *wanted = g_strconcat(before, "`x' **allowed by the owner** 'y`", after, NULL);
    g_assert_nonnull(strstr(text, wanted));
    g_assert_null(strstr(text, "` **"));
}

static void
test_names(void)
{
    g_autoptr(EbRedactSet) secrets = eb_redact_set_new();
    EbRenderer *renderer = eb_renderer_new("t", secrets);
    EbAcpTool *tool = eb_acp_tool_new("1");
    g_free(tool->title);
    tool->title = g_strdup(POSE);
    g_free(tool->kind);
    tool->kind = g_strdup(POSE);
    g_autofree char *line = eb_renderer_tool_line(renderer, tool);
    assert_in_code(line, "🔧 ", " `");
    assert_in_code(line, "` ", "");
    EbAcpDiff diff = {.path = (char *)POSE, .old_text = (char *)"one\n", .new_text = (char *)"two\n"};
    g_autoptr(EbChatPost) post = eb_renderer_diff_post(renderer, &diff);
    assert_in_code(post->text, "", " +1 −1\n");
    /* Where it is no Markdown it is as it is. */
    g_assert_cmpstr(eb_json_get_string(post->data, "path"), ==, POSE);
    eb_acp_tool_free(tool);
    eb_renderer_free(renderer);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/renderer/names", test_names);
    return g_test_run();
}
