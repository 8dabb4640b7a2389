/* SPDX-License-Identifier: MIT */
#include "core/acp/eb-acp-tools.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

static void
check_tool(const EbAcpTool *tool)
{
    if (tool->id == NULL || tool->title == NULL || tool->kind == NULL || tool->status == NULL)
        g_error("a tool without its texts");
    if (tool->output != NULL && (strlen(tool->output) > EB_ACP_MAX_OUTPUT || !g_utf8_validate(tool->output, -1, NULL)))
        g_error("an output beyond its bound");
    if (tool->diffs->len > EB_ACP_MAX_DIFFS || tool->locations->len > EB_ACP_MAX_LOCATIONS)
        g_error("a list beyond its bound");
}

/* One JSON object a line, each taken as everything that an agent may send. */
static void
run_line(EbAcpTools *tools, const char *line, gsize length)
{
    g_autoptr(JsonNode) node = eb_json_parse(line, length, NULL, NULL);
    JsonObject *object = eb_json_node_object(node);
    g_autoptr(EbAcpUpdate) update = NULL;
    g_autoptr(EbAcpTool) tool = NULL;
    g_autoptr(EbAcpTool) announced = NULL;
    g_autoptr(GPtrArray) options = NULL;
    g_autofree char *text = NULL;
    g_autofree char *chosen = NULL;
    g_autoptr(GError) error = NULL;
    EbAcpAgentInfo info = {0};

    if (object == NULL)
        return;
    update = eb_acp_update_decode("s", object);
    eb_acp_update_is_content(update);
    tool = eb_acp_tools_upsert(tools, object, FALSE);
    check_tool(tool);
    announced = eb_acp_tools_upsert(tools, object, TRUE);
    check_tool(announced);
    options = eb_acp_options_decode(eb_json_get_array(object, "options"));
    text = eb_acp_error_text(object);
    if (text == NULL || !g_utf8_validate(text, -1, NULL))
        g_error("an error without text");
    error = eb_acp_error_from("x", object);
    if (eb_acp_agent_info_decode(object, &info, NULL))
        eb_acp_agent_info_clear(&info);
    eb_acp_config_option(eb_json_get_array(object, "configOptions"), "model");
    chosen = eb_acp_config_choose(object, "x", NULL);
    {
        g_autoptr(JsonNode) small = eb_acp_json_bounded_copy(node, 100);
        g_autofree char *written = eb_json_write(small, NULL);
    }
}

int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    g_autoptr(EbAcpTools) tools = eb_acp_tools_new();
    const char *at = (const char *)data;
    const char *end = at + size;

    while (at < end) {
        const char *lf = memchr(at, '\n', (gsize)(end - at));
        const gsize length = (gsize)((lf != NULL ? lf : end) - at);

        run_line(tools, at, length);
        eb_acp_tools_begin_turn(tools);
        at += length + 1;
    }
    g_ptr_array_unref(eb_acp_tools_cancel_open(tools));
    return 0;
}
