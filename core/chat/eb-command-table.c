/* SPDX-License-Identifier: MIT */
#include "core/chat/eb-command-table.h"

#include <string.h>

static const EbChatOption on_command[] = {{"command", "the command you want to know about", FALSE, FALSE}};
static const EbChatOption on_text[] = {{"text", "what to say to the agent", TRUE, FALSE}};
static const EbChatOption on_model[] = {
    {"name", "the model to use from now on; without it all are listed", FALSE, FALSE}};
static const EbChatOption on_person[] = {{"person", "who: a mention or the number of an account", TRUE, TRUE}};
static const EbChatOption on_host[] = {{"host", "a host's name or address, without a port", TRUE, FALSE}};
static const EbChatOption on_folder[] = {
    {"path", "a folder of the project; without it the project itself", FALSE, FALSE}};
static const EbChatOption on_path[] = {{"path", "a file of the project", TRUE, FALSE}};
static const EbChatOption on_words[] = {{"text", "what to say to the people here", TRUE, FALSE}};

#define OPTIONS(array) array, G_N_ELEMENTS(array)
#define NO_OPTIONS NULL, 0

static const EbCommandSpec table[] = {
    {EB_COMMAND_HELP, "help", "tell what can be ordered here", OPTIONS(on_command), EB_ROLE_ANYONE, EB_COMMAND_ANYWHERE,
     EB_COMMAND_NEEDS_NOTHING, "!help", NULL},
    {EB_COMMAND_STATUS, "status", "tell what is going on here", NO_OPTIONS, EB_ROLE_ANYONE, EB_COMMAND_ANYWHERE,
     EB_COMMAND_NEEDS_NOTHING, "!status", NULL},
    {EB_COMMAND_STOP, "stop", "end the session and put the thread away", NO_OPTIONS, EB_ROLE_OWNER,
     EB_COMMAND_IN_THREAD, EB_COMMAND_NEEDS_SESSION, "!stop",
     "The files of the project stay. To break off only what the agent does just now, use !interrupt."},
    {EB_COMMAND_INTERRUPT, "interrupt", "break off what the agent is doing; the session stays", NO_OPTIONS,
     EB_ROLE_OWNER, EB_COMMAND_IN_THREAD, EB_COMMAND_NEEDS_LIVE, "!interrupt", NULL},
    {EB_COMMAND_STEER, "steer", "say something to the agent while it works", OPTIONS(on_text), EB_ROLE_OWNER,
     EB_COMMAND_IN_THREAD, EB_COMMAND_NEEDS_LIVE, "!steer leave the tests alone",
     "Refused when nothing runs or the agent cannot be spoken to meanwhile."},
    {EB_COMMAND_THEN, "then", "say something to the agent when it is done with what it does", OPTIONS(on_text),
     EB_ROLE_GUEST, EB_COMMAND_IN_THREAD, EB_COMMAND_NEEDS_SESSION, "!then run the tests",
     "When nothing runs it begins at once."},
    {EB_COMMAND_RETRY, "retry", "give the agent the last prompt once more", NO_OPTIONS, EB_ROLE_OWNER,
     EB_COMMAND_IN_THREAD, EB_COMMAND_NEEDS_LIVE, "!retry", NULL},
    {EB_COMMAND_QUEUE, "queue", "list the prompts that wait", NO_OPTIONS, EB_ROLE_GUEST, EB_COMMAND_IN_THREAD,
     EB_COMMAND_NEEDS_LIVE, "!queue", "Edit a message that waits to change it, delete it to take it back."},
    {EB_COMMAND_COMPACT, "compact", "let the agent shorten its memory of the conversation", NO_OPTIONS, EB_ROLE_OWNER,
     EB_COMMAND_IN_THREAD, EB_COMMAND_NEEDS_LIVE, "!compact", "Refused while the agent works."},
    {EB_COMMAND_MODEL, "model", "list the models, or change to one", OPTIONS(on_model), EB_ROLE_OWNER,
     EB_COMMAND_IN_THREAD, EB_COMMAND_NEEDS_LIVE, "!model gpt-5", "Refused while the agent works."},
    {EB_COMMAND_AGENT, "agent", "tell which agents there are, and which one works here", NO_OPTIONS, EB_ROLE_ANYONE,
     EB_COMMAND_ANYWHERE, EB_COMMAND_NEEDS_NOTHING, "!agent",
     "A session keeps its agent: begin a new one in the channel with --agent NAME."},
    {EB_COMMAND_ALLOW, "allow", "invite somebody to this session", OPTIONS(on_person), EB_ROLE_OWNER,
     EB_COMMAND_IN_THREAD, EB_COMMAND_NEEDS_SESSION, "!allow @sam", NULL},
    {EB_COMMAND_DENY, "deny", "take an invitation back", OPTIONS(on_person), EB_ROLE_OWNER, EB_COMMAND_IN_THREAD,
     EB_COMMAND_NEEDS_SESSION, "!deny @sam", NULL},
    {EB_COMMAND_GUESTS, "guests", "list who was invited", NO_OPTIONS, EB_ROLE_GUEST, EB_COMMAND_IN_THREAD,
     EB_COMMAND_NEEDS_SESSION, "!guests", NULL},
    {EB_COMMAND_ALLOW_HOST, "allow-host", "let this session reach one more host", OPTIONS(on_host), EB_ROLE_GUEST,
     EB_COMMAND_IN_THREAD, EB_COMMAND_NEEDS_SESSION, "!allow-host docs.example.org",
     "For this session alone, until it is removed. Operators allow; others ask them by this."},
    {EB_COMMAND_DENY_HOST, "deny-host", "take back that this session may reach a host", OPTIONS(on_host), EB_ROLE_OWNER,
     EB_COMMAND_IN_THREAD, EB_COMMAND_NEEDS_SESSION, "!deny-host docs.example.org", "Connections that are open stay."},
    {EB_COMMAND_HOSTS, "hosts", "list which hosts this session may reach", NO_OPTIONS, EB_ROLE_GUEST,
     EB_COMMAND_IN_THREAD, EB_COMMAND_NEEDS_SESSION, "!hosts", NULL},
    {EB_COMMAND_LS, "ls", "list the files of a folder", OPTIONS(on_folder), EB_ROLE_GUEST, EB_COMMAND_IN_THREAD,
     EB_COMMAND_NEEDS_SESSION, "!ls src", NULL},
    {EB_COMMAND_CAT, "cat", "show a text file", OPTIONS(on_path), EB_ROLE_GUEST, EB_COMMAND_IN_THREAD,
     EB_COMMAND_NEEDS_SESSION, "!cat README.md", NULL},
    {EB_COMMAND_FILE, "file", "get a file", OPTIONS(on_path), EB_ROLE_GUEST, EB_COMMAND_IN_THREAD,
     EB_COMMAND_NEEDS_SESSION, "!file build/report.pdf", NULL},
    {EB_COMMAND_PWD, "pwd", "tell which project this is", NO_OPTIONS, EB_ROLE_GUEST, EB_COMMAND_IN_THREAD,
     EB_COMMAND_NEEDS_SESSION, "!pwd", NULL},
    {EB_COMMAND_ASIDE, "!!", "say something to the people here that the agent does not get", OPTIONS(on_words),
     EB_ROLE_ANYONE, EB_COMMAND_IN_THREAD, EB_COMMAND_NEEDS_SESSION, "!!! back after lunch", NULL},
};
G_STATIC_ASSERT(G_N_ELEMENTS(table) == EB_COMMAND_N);

const EbCommandSpec *
eb_command_table(gsize *n)
{
    *n = G_N_ELEMENTS(table);
    return table;
}

const EbCommandSpec *
eb_command_get(EbCommandId id)
{
    return (guint)id < G_N_ELEMENTS(table) ? &table[id] : NULL;
}

const EbCommandSpec *
eb_command_find(const char *name, gsize length)
{
    for (gsize i = 0; i < G_N_ELEMENTS(table); i++)
        if (strlen(table[i].name) == length && g_ascii_strncasecmp(table[i].name, name, length) == 0)
            return &table[i];
    return NULL;
}

const EbChatCommand *
eb_command_list_for_chat(gsize *n)
{
    static EbChatCommand list[EB_COMMAND_N];
    static gsize filled = 0;
    if (filled == 0) {
        for (gsize i = 0; i < G_N_ELEMENTS(table); i++) {
            /* Words for people need no command of a form of their own. */
            if (table[i].id == EB_COMMAND_ASIDE)
                continue;
            EbChatCommand *command = &list[filled++];
            command->name = table[i].name;
            command->summary = table[i].summary;
            command->options = table[i].options;
            command->n_options = table[i].n_options;
        }
    }
    *n = filled;
    return list;
}
