/* SPDX-License-Identifier: MIT */
#include "talkative.h"

static char *
tool(guint group, guint step)
{
    if (step == 0)
        return g_strdup_printf("{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"call-%u\",\"kind\":\"%s\",\"status\":"
                               "\"pending\",\"title\":\"npm run step-%u -- --key %s\"}",
                               group, group % 2 ? "edit" : "execute", group, TALKATIVE_SECRET);
    if (step < 9)
        return g_strdup_printf("{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"call-%u\",\"status\":"
                               "\"in_progress\",\"content\":[{\"type\":\"content\",\"content\":{\"type\":\"text\","
                               "\"text\":\"line %u of the output\\n%s\\n\"}}]}",
                               group, step, TALKATIVE_SECRET);
    if (group % 2)
        return g_strdup_printf("{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"call-%u\",\"status\":"
                               "\"completed\",\"content\":[{\"type\":\"diff\",\"path\":\"src/file-%u.c\",\"oldText\":"
                               "\"a\\nb\\nc\\nd\\n\",\"newText\":\"a\\nb %s\\nc\\nd\\ne %u\\n\"}]}",
                               group, group, TALKATIVE_SECRET, group);
    return g_strdup_printf("{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"call-%u\",\"status\":\"%s\"}",
                           group, group % 5 ? "completed" : "failed");
}

static char *
text(guint group, guint step)
{
    static const char *const pieces[] = {"The next thing to do is **this** ", "and then `that`, which ",
                                         "needs a look, ", "and more of the same, ", "as far as it goes.\\n\\n"};
    return g_strdup_printf(
        "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"%s%u \"}}",
        pieces[step % 5], group);
}

static char *
secret_half(guint half)
{
    return g_strdup_printf(
        "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"%s\"}}",
        half == 0 ? "needs sk-talkat" : "ive-0123456789abcdef to be there ");
}

char *
talkative_update(guint i)
{
    guint group = i / TALKATIVE_GROUP;
    guint step = i % TALKATIVE_GROUP;
    if (step < 10)
        return tool(group, step);
    if (step < 16)
        return g_strdup_printf(
            "{\"sessionUpdate\":\"agent_thought_chunk\",\"content\":{\"type\":\"text\",\"text\":\"hm %u "
            "%s\"}}",
            step, TALKATIVE_SECRET);
    if (step < 18)
        return g_strdup_printf(
            "{\"sessionUpdate\":\"plan\",\"entries\":[{\"content\":\"step %u\",\"priority\":\"high\","
            "\"status\":\"completed\"},{\"content\":\"step %u\",\"status\":\"in_progress\"}]}",
            group, group + 1);
    if (step == 18)
        return g_strdup_printf("{\"sessionUpdate\":\"usage_update\",\"used\":%u,\"size\":200000}", i);
    if (step == 30 || step == 31)
        return secret_half(step - 30);
    return text(group, step);
}
