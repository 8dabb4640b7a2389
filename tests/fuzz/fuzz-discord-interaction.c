/* SPDX-License-Identifier: MIT */
#include "discord-interaction.h"
#include "discord-question.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

/* What is read goes into the path of a request and to a question: nothing else than ids and tokens may. */
int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    g_autoptr(JsonNode) node = eb_json_parse((const char *)data, size, &EB_JSON_LIMITS_SMALL, NULL);
    g_autoptr(DiscordInteraction) what = discord_interaction_read(eb_json_node_object(node));

    if (what == NULL)
        return 0;
    if (strspn(what->id, "0123456789") != strlen(what->id) ||
        strspn(what->user_id, "0123456789") != strlen(what->user_id) ||
        strspn(what->application_id, "0123456789") != strlen(what->application_id))
        g_error("an id that is none");
    if (strpbrk(what->token, "/?#%\\ \n\t\"") != NULL || strlen(what->token) > DISCORD_INTERACTION_MAX_TOKEN)
        g_error("a token that is none");
    if ((what->kind == DISCORD_INTERACTION_COMMAND) != (what->command != NULL && what->options != NULL))
        g_error("half a command");
    if ((what->kind == DISCORD_INTERACTION_PRESS) != (what->question_id != NULL))
        g_error("half a press");
    if (what->kind == DISCORD_INTERACTION_PRESS &&
        (strlen(what->question_id) > 40 || what->choice >= DISCORD_QUESTION_MAX_BUTTONS))
        g_error("a button that was never made");
    if (what->options != NULL && json_object_get_size(what->options) > DISCORD_INTERACTION_MAX_OPTIONS)
        g_error("too many options");
    return 0;
}
