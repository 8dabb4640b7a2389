/* SPDX-License-Identifier: MIT */
/* What people order: one function a command, by the table of core/chat. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-router-private.h"
#include "core/state/eb-transcript.h"

/* Of a waiting prompt in !queue. */
#define MAX_SHOWN_CHARACTERS 80
/* Of an agent's list; whoever has more knows the name. */
#define MAX_SHOWN_MODELS 100

/* One command under way. */
typedef struct {
    EbRouter *self;
    EbChatMessage *message;
    EbCommand *command;
} EbOrder;

static void
order_free(EbOrder *order)
{
    g_object_unref(order->self);
    eb_chat_message_unref(order->message);
    eb_command_free(order->command);
    g_free(order);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbOrder, order_free)

gboolean
eb_router_is_action(const EbChatMessage *message)
{
    return eb_json_get_string(message->extra, "command") != NULL;
}

/* (transfer full): a name or words from outside in a code span, out of which they do not get; masked before the cut. */
static char *
in_code(EbOrder *order, const char *text)
{
    g_autofree char *masked = eb_redact_set_mask(eb_router_secrets(order->self, order->message->thread), text, -1);
    g_autofree char *line = eb_log_escape(masked, -1, MAX_SHOWN_CHARACTERS);
    return g_strdup_printf("`%s`", g_strdelimit(line, "`", '\''));
}

static void
answer(EbOrder *order, const char *text)
{
    eb_router_answer(order->self, order->message, text);
    eb_router_done(order->self, order->message);
}

/* --- the session's life --- */

static void
do_help(EbOrder *order, EbRouterAddress *address)
{
    EbCommandWhere where = address->thread != NULL ? EB_COMMAND_IN_THREAD : EB_COMMAND_IN_CHANNEL;
    const char *name = order->command->values[0];
    const char *bare = name != NULL && (*name == '!' || *name == '/') ? name + 1 : name;
    const EbCommandSpec *spec = bare != NULL ? eb_command_find(bare, strlen(bare)) : NULL;
    g_autofree char *help = spec != NULL ? eb_command_help_one(spec) : eb_command_help_all(address->role, where);

    if (name == NULL || spec != NULL) {
        answer(order, help);
        return;
    }
    g_autofree char *shown = eb_log_escape(name, -1, 40);
    g_autofree char *text = g_strdup_printf("there is no command \"%s\"; there are:\n%s", shown, help);
    answer(order, text);
}

/* Its end may take a while, and a kill come first: it is done when the thread is put away. TRUE: that is to be waited for. */
static gboolean
keep_stop(EbOrder *order)
{
    EbRouter *self = order->self;
    if (self->stops->len >= EB_ROUTER_MAX_STOPS)
        return FALSE;
    g_ptr_array_add(self->stops, eb_chat_message_ref(order->message));
    return TRUE;
}

static void
answer_stop(EbOrder *order, const char *text)
{
    if (keep_stop(order))
        eb_router_answer(order->self, order->message, text);
    else
        answer(order, text);
}

static void
on_stopped(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbOrder) order = user_data;
    EbRouter *self = order->self;
    g_autoptr(GError) error = NULL;
    gboolean ok = eb_session_manager_stop_session_finish(EB_SESSION_MANAGER(source), result, &error);
    if (self->manager == NULL)
        return;
    if (!ok) {
        answer(order, error->message);
        return;
    }
    answer_stop(order, "the session was ended; the files of its project stay");
    eb_router_session_ended(self, order->message->thread, eb_session_end_to_string(EB_SESSION_END_STOPPED));
}

/* @order: (transfer full) */
static void
do_stop(EbOrder *order, EbRouterAddress *address)
{
    EbRouter *self = order->self;
    if (address->session != NULL) {
        g_autoptr(EbOrder) owned = order;
        answer_stop(order, eb_session_is_ending(address->session)
                               ? "the session is ending already"
                               : "ending the session; the files of its project stay");
        eb_session_end(address->session, EB_SESSION_END_STOPPED, NULL);
        return;
    }
    eb_session_manager_stop_session_async(self->manager, address->record->id, FALSE, NULL, on_stopped, order);
}

static void
do_interrupt(EbOrder *order, EbRouterAddress *address)
{
    answer(order, eb_session_interrupt(address->session) ? "breaking off what the agent does"
                                                         : "nothing runs that could be broken off");
}

static void
do_compact(EbOrder *order, EbRouterAddress *address)
{
    g_autoptr(GError) error = NULL;
    answer(order,
           eb_session_compact(address->session, &error) ? "asked the agent to shorten its memory" : error->message);
}

static void
do_retry(EbOrder *order, EbRouterAddress *address)
{
    EbRouter *self = order->self;
    EbChatMessage *message = order->message;
    g_autoptr(GError) error = NULL;
    eb_journal_mark(self->manager->parts->store, self->name, message->id, EB_JOURNAL_RECEIVED,
                    eb_session_get_record(address->session)->id);
    eb_router_follow(self, message);
    if (eb_session_retry(address->session, message->id, message->author_id, &error)) {
        if (eb_router_is_action(message))
            eb_router_answer(self, message, "giving the agent the last prompt once more");
        return;
    }
    eb_router_unfollow(self, message->id);
    if (!eb_router_is_action(message))
        eb_router_react(self, message->thread, message->id, EB_CHAT_SYMBOL_FAILED);
    answer(order, error->message);
}

static void
do_prompt(EbOrder *order, EbRouterAddress *address, EbRouterGive how)
{
    EbRouter *self = order->self;
    if (address->session != NULL && eb_session_is_ending(address->session)) {
        answer(order, "the session is just ending: say it again when it has");
        return;
    }
    if (eb_router_give(self, address, order->message, order->command->values[0], how) &&
        eb_router_is_action(order->message))
        eb_router_answer(self, order->message,
                         how == EB_ROUTER_STEER ? "told the agent" : "the agent gets it when it is done");
}

static void
do_queue(EbOrder *order, EbRouterAddress *address)
{
    g_autoptr(GPtrArray) prompts = eb_session_list_prompts(address->session);
    g_autoptr(GString) text = g_string_new(prompts->len == 0 ? "nothing waits" : "");
    for (guint i = 0; i < prompts->len; i++) {
        const EbPrompt *prompt = prompts->pdata[i];
        g_autofree char *line = in_code(order, *prompt->text != '\0' ? prompt->text : "files");
        g_string_append_printf(text, "%u. <@%s>: %s\n", i + 1, prompt->author_id != NULL ? prompt->author_id : "0",
                               line);
    }
    answer(order, text->str);
}

/* --- models and agents --- */

static void
on_model_set(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbOrder) order = user_data;
    g_autoptr(GError) error = NULL;
    g_autofree char *model = eb_session_set_model_finish(EB_SESSION(source), result, &error);
    if (order->self->manager == NULL)
        return;
    g_autofree char *name = model != NULL ? in_code(order, model) : NULL;
    g_autofree char *text = model != NULL ? g_strdup_printf("the agent uses %s from now on", name)
                                          : g_strdup_printf("the model stays as it is: %s", error->message);
    answer(order, text);
}

/* @order: (transfer full) */
static void
do_model(EbOrder *order, EbRouterAddress *address)
{
    if (order->command->values[0] != NULL) {
        eb_session_set_model_async(address->session, order->command->values[0], order->self->cancellable, on_model_set,
                                   order);
        return;
    }
    g_autoptr(EbOrder) owned = order;
    g_autoptr(JsonArray) models = eb_session_list_models(address->session);
    guint n = json_array_get_length(models);
    g_autoptr(GString) text = g_string_new(n == 0 ? "this agent offers no choice of models" : "");
    for (guint i = 0; i < MIN(n, MAX_SHOWN_MODELS); i++) {
        JsonObject *model = eb_json_array_object(models, i);
        const char *id = eb_json_get_string(model, "id");
        g_autofree char *name = in_code(order, id != NULL ? id : "?");
        g_string_append_printf(text, "- %s%s\n", name, eb_json_get_bool(model, "current", FALSE) ? " (in use)" : "");
    }
    if (n > MAX_SHOWN_MODELS)
        g_string_append_printf(text, "and %u more", n - MAX_SHOWN_MODELS);
    answer(order, text->str);
}

static void
do_agent(EbOrder *order, EbRouterAddress *address)
{
    EbConfig *config = order->self->manager->parts->config;
    g_autoptr(GPtrArray) agents = eb_config_get_agents(config);
    const char *usual = eb_config_get_session(config)->agent;
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < agents->len; i++) {
        const EbAgentProfile *agent = agents->pdata[i];
        gboolean here = address->record != NULL && g_strcmp0(agent->name, address->record->agent) == 0;
        g_string_append_printf(text, "- `%s`%s%s\n", agent->name, here ? " (works here)" : "",
                               g_strcmp0(agent->name, usual) == 0 ? " (when none is named)" : "");
    }
    g_string_append(text, "a session keeps its agent: begin a new one in the channel with `--agent NAME`");
    answer(order, text->str);
}

/* --- people --- */

static void
do_allow(EbOrder *order, EbRouterAddress *address)
{
    EbRouter *self = order->self;
    const char *id = order->command->values[0];
    const EbSessionRecord *record = address->record;
    EbRole role = eb_role_of(self->policy, record->owner, record->guests, id);
    g_autofree char *text = NULL;
    if (role < EB_ROLE_ANYONE)
        text = g_strdup_printf("<@%s> may not use this service at all: its operator decides that", id);
    else if (role > EB_ROLE_ANYONE)
        text = g_strdup_printf("<@%s> may speak here already (%s)", id, eb_role_to_string(role));
    else if (eb_session_manager_set_guest(self->manager, address->record, id, TRUE))
        text = g_strdup_printf("<@%s> may speak to the agent here from now on", id);
    else
        text = g_strdup_printf("no more than %d people can be invited", EB_SESSION_MAX_GUESTS);
    answer(order, text);
}

/* What @author said and no agent was given yet. Returns how many. */
static guint
withdraw_prompts(EbSession *session, const char *author)
{
    g_autoptr(GPtrArray) prompts = eb_session_list_prompts(session);
    guint gone = 0;
    for (guint i = 0; i < prompts->len; i++) {
        const EbPrompt *prompt = prompts->pdata[i];
        if (g_strcmp0(prompt->author_id, author) == 0 && eb_session_withdraw(session, prompt->message_id))
            gone++;
    }
    return gone;
}

static void
do_deny(EbOrder *order, EbRouterAddress *address)
{
    const char *id = order->command->values[0];
    g_autoptr(GString) text = g_string_new(NULL);
    gboolean was_guest = eb_session_manager_set_guest(order->self->manager, address->record, id, FALSE);
    EbRole role = eb_role_of(order->self->policy, address->record->owner, address->record->guests, id);
    if (!was_guest) {
        g_string_append_printf(text, "<@%s> was not invited", id);
    } else if (role > EB_ROLE_GUEST) {
        g_string_append_printf(text, "<@%s> is no guest any more, but still %s", id, eb_role_to_string(role));
    } else {
        guint gone = address->session != NULL ? withdraw_prompts(address->session, id) : 0;
        g_string_append_printf(text, "<@%s> may not speak to the agent here any more", id);
        if (gone > 0)
            g_string_append_printf(text, "; what waited of it (%u) is dropped", gone);
    }
    answer(order, text->str);
}

static void
do_guests(EbOrder *order, EbRouterAddress *address)
{
    const EbSessionRecord *record = address->record;
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_printf(text, "owner: <@%s>\n", record->owner);
    for (guint i = 0; record->guests != NULL && i < record->guests->len; i++)
        g_string_append_printf(text, "- <@%s>\n", (const char *)record->guests->pdata[i]);
    if (record->guests == NULL || record->guests->len == 0)
        g_string_append(text, "nobody was invited");
    answer(order, text->str);
}

/* People may speak past the agent; the transcript has it, the agent never. */
static void
do_aside(EbOrder *order, EbRouterAddress *address)
{
    EbRouter *self = order->self;
    EbSessionParts *parts = self->manager->parts;
    g_autoptr(EbTranscript) transcript = eb_transcript_new(parts->store, address->record->id);
    g_autofree char *masked = eb_redact_set_mask(parts->secrets, order->command->values[0], -1);
    g_autoptr(JsonObject) data = json_object_new();
    json_object_set_string_member(data, "author", order->message->author_id);
    eb_transcript_add(transcript, address->record->turns, "aside", masked, data);
    eb_transcript_flush(transcript);
    eb_router_react(self, order->message->thread, order->message->id, EB_CHAT_SYMBOL_DONE);
    eb_router_done(self, order->message);
}

/* --- state --- */

static void
add_line(EbOrder *order, GString *text, JsonObject *object, const char *member, const char *label)
{
    JsonNode *node = eb_json_get_node(object, member);
    if (node == NULL || !JSON_NODE_HOLDS_VALUE(node))
        return;
    GType type = json_node_get_value_type(node);
    if (type == G_TYPE_STRING) {
        /* What the agent says of itself. */
        gboolean foreign = g_str_equal(member, "agent_name") || g_str_equal(member, "model");
        g_autofree char *name = foreign ? in_code(order, json_node_get_string(node)) : NULL;
        g_string_append_printf(text, "- %s: %s\n", label, foreign ? name : json_node_get_string(node));
    } else if (type == G_TYPE_INT64)
        g_string_append_printf(text, "- %s: %" G_GINT64_FORMAT "\n", label, json_node_get_int(node));
}

static void
do_status(EbOrder *order, EbRouterAddress *address)
{
    EbRouter *self = order->self;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(JsonObject) status = NULL;
    g_autoptr(JsonNode) all = NULL;
    static const char *const here[][2] = {
        {"project", "project"},
        {"state", "state"},
        {"agent_name", "agent"},
        {"model", "model"},
        {"provider", "model provider"},
        {"unroutable", "model providers that cannot be used"},
        {"turns", "turns"},
        {"waiting", "prompts that wait"},
        {"questions", "questions that are open"},
        {"budget_text", "used"},
    };
    static const char *const service[][2] = {
        {"live", "sessions that run"},
        {"max_live", "of these at most"},
        {"waiting_sessions", "sessions that wait"},
        {"turns", "agents at work"},
        {"max_turns", "of these at most"},
        {"waiting_turns", "prompts that wait for a turn"},
        {"budget_text", "used"},
    };
    if (address->session != NULL) {
        status = eb_session_status(address->session);
        for (gsize i = 0; i < G_N_ELEMENTS(here); i++)
            add_line(order, text, status, here[i][0], here[i][1]);
    } else if (address->record != NULL) {
        g_string_append_printf(
            text, "- project: %s\n- state: asleep (%s): write something and it goes on\n- turns: %u\n",
            address->record->project, address->record->end_reason != NULL ? address->record->end_reason : "ended",
            address->record->turns);
    } else if (address->stopped) {
        g_string_append(text, "this session was ended with !stop");
    } else {
        all = eb_session_manager_status_json(self->manager);
        for (gsize i = 0; i < G_N_ELEMENTS(service); i++)
            add_line(order, text, json_node_get_object(all), service[i][0], service[i][1]);
    }
    answer(order, text->str);
}

static void
do_pwd(EbOrder *order, EbRouterAddress *address)
{
    g_autofree char *text =
        g_strdup_printf("the project is `%s`; for the agent it is `/workspace`", address->record->project);
    answer(order, text);
}

/* --- all of them --- */

/* @order: (transfer full) */
static void
carry_out(EbOrder *order, EbRouterAddress *address)
{
    EbCommandId id = order->command->spec->id;
    if (id == EB_COMMAND_STOP || id == EB_COMMAND_MODEL) {
        (id == EB_COMMAND_STOP ? do_stop : do_model)(order, address);
        return;
    }
    g_autoptr(EbOrder) owned = order;
    static void (*const functions[EB_COMMAND_N])(EbOrder *, EbRouterAddress *) = {
        [EB_COMMAND_HELP] = do_help,     [EB_COMMAND_STATUS] = do_status, [EB_COMMAND_INTERRUPT] = do_interrupt,
        [EB_COMMAND_RETRY] = do_retry,   [EB_COMMAND_QUEUE] = do_queue,   [EB_COMMAND_COMPACT] = do_compact,
        [EB_COMMAND_AGENT] = do_agent,   [EB_COMMAND_ALLOW] = do_allow,   [EB_COMMAND_DENY] = do_deny,
        [EB_COMMAND_GUESTS] = do_guests, [EB_COMMAND_PWD] = do_pwd,       [EB_COMMAND_ASIDE] = do_aside,
    };
    if (id == EB_COMMAND_STEER || id == EB_COMMAND_THEN)
        do_prompt(order, address, id == EB_COMMAND_STEER ? EB_ROUTER_STEER : EB_ROUTER_THEN);
    else if (id == EB_COMMAND_LS || id == EB_COMMAND_CAT || id == EB_COMMAND_FILE)
        eb_router_show_files(order->self, order->message, address->record, order->command);
    else if (id == EB_COMMAND_ALLOW_HOST || id == EB_COMMAND_DENY_HOST || id == EB_COMMAND_HOSTS)
        eb_router_hosts(order->self, order->message, address->record, order->command);
    else
        functions[id](order, address);
}

/* (transfer full) (nullable): why it cannot be carried out. */
static char *
find_obstacle(const EbRouterAddress *address, const EbCommandSpec *spec)
{
    EbCommandWhere where = address->thread != NULL ? EB_COMMAND_IN_THREAD : EB_COMMAND_IN_CHANNEL;
    if ((spec->where & where) == 0)
        return where == EB_COMMAND_IN_CHANNEL
                   ? g_strdup_printf("!%s belongs into the thread of a session: write it there", spec->name)
                   : g_strdup_printf("!%s belongs into the channel: write it there", spec->name);
    if (spec->needs >= EB_COMMAND_NEEDS_SESSION && address->record == NULL)
        return g_strdup(address->stopped ? "this session was ended: begin a new one in the channel"
                                         : "there is no session here");
    if (address->role < spec->who)
        return g_strdup_printf(spec->who == EB_ROLE_GUEST
                                   ? "only people who were invited may use !%s: the owner can let you in with !allow"
                                   : "only the owner of the session may use !%s",
                               spec->name);
    if (spec->needs == EB_COMMAND_NEEDS_LIVE && address->session == NULL)
        return g_strdup("the session sleeps: write something to the agent first, and it goes on");
    return NULL;
}

EbJournalState
eb_router_first_state(EbRouter *self, const EbChatMessage *message)
{
    g_autoptr(EbCommand) command = NULL;
    if (eb_router_is_action(message))
        eb_command_parse_action(message->extra, &command, NULL);
    else if (self->policy != NULL && message->text != NULL)
        eb_command_parse_text(message->text, &command, NULL);
    EbCommandId id = command != NULL ? command->spec->id : EB_COMMAND_THEN;
    /* These become a prompt: it is begun when an agent is given it. */
    gboolean prompt = id == EB_COMMAND_STEER || id == EB_COMMAND_THEN || id == EB_COMMAND_RETRY;
    return prompt ? EB_JOURNAL_RECEIVED : EB_JOURNAL_STARTED;
}

gboolean
eb_router_continue_stop(EbRouter *self, EbChatMessage *message)
{
    g_autoptr(EbCommand) command = NULL;
    if (eb_router_is_action(message))
        eb_command_parse_action(message->extra, &command, NULL);
    else if (self->policy != NULL)
        eb_command_parse_text(message->text != NULL ? message->text : "", &command, NULL);
    if (command == NULL || command->spec->id != EB_COMMAND_STOP)
        return FALSE;
    EbRouterAddress address = eb_router_address(self, message);
    /* The session had ended for good; only its thread was left. */
    if (address.record == NULL && address.stopped && address.thread != NULL && self->stops->len < EB_ROUTER_MAX_STOPS) {
        g_ptr_array_add(self->stops, eb_chat_message_ref(message));
        eb_router_put_away(self, address.thread);
        return TRUE;
    }
    return eb_router_command(self, message);
}

gboolean
eb_router_command(EbRouter *self, EbChatMessage *message)
{
    gboolean action = eb_router_is_action(message);
    /* Where everybody may everything, in a terminal, "!" is a text like any other. */
    if (!action && self->policy == NULL)
        return FALSE;
    g_autoptr(EbOrder) order = g_new0(EbOrder, 1);
    g_autoptr(GError) error = NULL;
    order->self = g_object_ref(self);
    order->message = eb_chat_message_ref(message);
    EbCommandParse parse =
        action ? eb_command_parse_action(message->extra, &order->command, &error)
               : eb_command_parse_text(message->text != NULL ? message->text : "", &order->command, &error);
    if (parse == EB_COMMAND_PARSE_NONE)
        return FALSE;
    if (parse != EB_COMMAND_PARSE_OK) {
        if (parse == EB_COMMAND_PARSE_INVALID || action)
            eb_router_answer(self, message, error != NULL ? error->message : "there is no such command: see !help");
        eb_router_done(self, message);
        return TRUE;
    }
    EbRouterAddress address = eb_router_address(self, message);
    g_autofree char *obstacle = find_obstacle(&address, order->command->spec);
    if (obstacle != NULL) {
        answer(order, obstacle);
        return TRUE;
    }
    carry_out(g_steal_pointer(&order), &address);
    return TRUE;
}
