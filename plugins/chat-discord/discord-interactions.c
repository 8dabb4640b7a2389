/* SPDX-License-Identifier: MIT */
#include "discord-interactions.h"

#include "discord-clean.h"
#include "discord-config.h"
#include "discord-interaction.h"
#include "discord-message.h"
#include "discord-text.h"

#include <string.h>

/* Interactions remembered by their id: the same one may be told twice. */
#define MAX_SEEN 512
/* A command whose first sign of life came too late and that is older than this is not run: the person was told by
   Discord that it failed, and will have given it again. */
#define STALE_MS (30 * 1000)
/* How long a request that answers may take; the interaction lives longer. */
#define ANSWER_MS (30 * 1000)
#define MAX_CONTENT 2000
/* Discord's numbers: kinds of first answers, flags of a message, errors. */
#define REPLY_MESSAGE 4
#define REPLY_LATER 5
#define REPLY_UPDATE 6
#define EPHEMERAL 64
#define SUPPRESS_EMBEDS 4
#define UNKNOWN_WEBHOOK 10015
#define UNKNOWN_INTERACTION 10062
#define ALREADY_ACKNOWLEDGED 40060
#define INVALID_WEBHOOK_TOKEN 50027

#define TEXT_REFUSED "You may not answer this question. Where there is a button \"Ask an operator\", it asks for you."
#define TEXT_CLOSED "This question is no longer open."
#define TEXT_ELSEWHERE "This does not work here."
#define TEXT_SILENCE "No answer came. Try again, or write it as a message: `!%s`"

typedef enum { ACKNOWLEDGING, ACKNOWLEDGED, LOST } State;

/* A command that was told. */
typedef struct {
    DiscordInteractions *owner; /* (unowned): which has it in its table */
    DiscordInteraction *what;
    char *thread; /* (nullable) */
    State state;
    gboolean answered; /* what was shown as "thinking" is an answer */
    gboolean busy;     /* a request that answers is under way */
    GQueue waiting;    /* (element-type Answer) */
    GSource *timer;    /* (nullable): of its silence, then of its life */
    gint64 began;      /* monotonic microseconds */
} Command;

/* One post on its way to be an answer. */
typedef struct {
    GTask *task;
    char *text;
    GPtrArray *files; /* (nullable) */
    DiscordOutbox *fallback;
    Command *command; /* (rc box) (nullable) */
} Answer;

/* A press on its way: its acknowledgement and its judgement, either may be first. */
typedef struct {
    DiscordInteractions *self;
    DiscordInteraction *what;
    gboolean acknowledged, judged, failed;
    DiscordPressResult result;
} PressCall;

struct _DiscordInteractions {
    GObject parent_instance;
    DiscordRest *rest;
    DiscordAsk *ask;
    GCancellable *closing;
    char *application_id, *guild_id, *channel_id; /* (nullable) */
    GHashTable *commands;                         /* id -> Command (rc box) */
    GQueue order;                                 /* (element-type Command) (unowned): oldest first */
    GHashTable *seen;                             /* ids */
    GQueue seen_order;                            /* (element-type utf8) (unowned) */
    guint silence_ms, life_ms;
};

G_DEFINE_FINAL_TYPE(DiscordInteractions, discord_interactions, G_TYPE_OBJECT)

enum { SIGNAL_ACTION, N_SIGNALS };
static guint signals[N_SIGNALS];

static void pump(Command *command);
static void forget_oldest(DiscordInteractions *self);

static void
clear_source(GSource **source)
{
    if (*source == NULL)
        return;
    g_source_destroy(*source);
    g_clear_pointer(source, g_source_unref);
}

static void
command_clear(gpointer data)
{
    Command *command = data;

    clear_source(&command->timer);
    discord_interaction_free(command->what);
    g_free(command->thread);
}

static void
command_unref(gpointer data)
{
    g_rc_box_release_full(data, command_clear);
}

static void
answer_free(Answer *answer)
{
    g_clear_pointer(&answer->command, command_unref);
    g_clear_pointer(&answer->files, g_ptr_array_unref);
    g_clear_object(&answer->fallback);
    g_object_unref(answer->task);
    g_free(answer->text);
    g_free(answer);
}

static void
discord_interactions_dispose(GObject *object)
{
    DiscordInteractions *self = DISCORD_INTERACTIONS(object);

    g_cancellable_cancel(self->closing);
    while (!g_queue_is_empty(&self->order))
        forget_oldest(self);
    G_OBJECT_CLASS(discord_interactions_parent_class)->dispose(object);
}

static void
discord_interactions_finalize(GObject *object)
{
    DiscordInteractions *self = DISCORD_INTERACTIONS(object);

    g_hash_table_unref(self->commands);
    g_queue_clear(&self->seen_order);
    g_hash_table_unref(self->seen);
    g_object_unref(self->closing);
    g_object_unref(self->rest);
    g_object_unref(self->ask);
    g_free(self->application_id);
    g_free(self->guild_id);
    g_free(self->channel_id);
    G_OBJECT_CLASS(discord_interactions_parent_class)->finalize(object);
}

static void
discord_interactions_class_init(DiscordInteractionsClass *klass)
{
    G_OBJECT_CLASS(klass)->dispose = discord_interactions_dispose;
    G_OBJECT_CLASS(klass)->finalize = discord_interactions_finalize;
    signals[SIGNAL_ACTION] = g_signal_new("action", DISCORD_TYPE_INTERACTIONS, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                          G_TYPE_NONE, 1, EB_TYPE_CHAT_MESSAGE);
}

static void
discord_interactions_init(DiscordInteractions *self)
{
    self->closing = g_cancellable_new();
    self->commands = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, command_unref);
    self->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_queue_init(&self->order);
    g_queue_init(&self->seen_order);
    self->silence_ms = DISCORD_INTERACTIONS_SILENCE_MS;
    self->life_ms = DISCORD_INTERACTIONS_LIFE_MS;
}

DiscordInteractions *
discord_interactions_new(DiscordRest *rest, DiscordAsk *ask)
{
    DiscordInteractions *self = g_object_new(DISCORD_TYPE_INTERACTIONS, NULL);

    self->rest = g_object_ref(rest);
    self->ask = g_object_ref(ask);
    return self;
}

void
discord_interactions_set_place(DiscordInteractions *self, const char *application_id, const char *guild_id,
                               const char *channel_id)
{
    g_free(self->application_id);
    g_free(self->guild_id);
    g_free(self->channel_id);
    self->application_id = g_strdup(application_id);
    self->guild_id = g_strdup(guild_id);
    self->channel_id = g_strdup(channel_id);
}

void
discord_interactions_set_times(DiscordInteractions *self, guint silence_ms, guint life_ms)
{
    self->silence_ms = silence_ms;
    self->life_ms = life_ms;
}

/* --- requests --- */

/* A body that notifies nobody: every one of ours, since Discord reads a text anew each time. */
static JsonObject *
make_body(void)
{
    JsonObject *body = json_object_new();
    JsonObject *mentions = json_object_new();

    json_object_set_array_member(mentions, "parse", json_array_new());
    json_object_set_object_member(body, "allowed_mentions", mentions);
    return body;
}

static JsonObject *
make_content(const char *text, int flags)
{
    g_autofree char *cut = discord_clean_cut(text, MAX_CONTENT);
    JsonObject *body = make_body();

    json_object_set_string_member(body, "content", cut);
    if (flags != 0)
        json_object_set_int_member(body, "flags", flags);
    return body;
}

static JsonNode *
take_node(JsonObject *object)
{
    return json_node_init_object(json_node_alloc(), object);
}

/* The first sign of life. @data: (nullable) (transfer full) */
static void
send_callback(DiscordInteractions *self, const DiscordInteraction *what, int type, JsonObject *data,
              GAsyncReadyCallback callback, gpointer user_data)
{
    DiscordRequest *request = discord_request_new("POST", "/interactions/{i}/{t}/callback", what->id,
                                                  "/interactions/%s/%s/callback", what->id, what->token);
    g_autoptr(JsonObject) body = json_object_new();

    json_object_set_int_member(body, "type", type);
    if (data != NULL)
        json_object_set_object_member(body, "data", data);
    request->body = json_node_init_object(json_node_alloc(), body);
    request->plain = TRUE;
    request->repeatable = TRUE; /* twice is told, and told apart */
    request->patience_ms = DISCORD_INTERACTIONS_ACK_MS;
    discord_rest_send_async(self->rest, request, self->closing, callback, user_data);
}

/* Changes what the interaction shows: "thinking", or the message with the button. */
static DiscordRequest *
edit_request(const DiscordInteraction *what, JsonObject *body)
{
    DiscordRequest *request =
        discord_request_new("PATCH", "/webhooks/{a}/{t}/messages/@original", what->id,
                            "/webhooks/%s/%s/messages/@original", what->application_id, what->token);

    request->body = take_node(body);
    json_object_unref(body);
    request->plain = TRUE;
    request->repeatable = TRUE;
    request->patience_ms = ANSWER_MS;
    return request;
}

/* A further message, for the same person alone. Sent once: nothing would tell a repetition from a second one. */
static DiscordRequest *
follow_up_request(const DiscordInteraction *what, JsonObject *body)
{
    DiscordRequest *request = discord_request_new("POST", "/webhooks/{a}/{t}", what->id, "/webhooks/%s/%s",
                                                  what->application_id, what->token);

    request->body = take_node(body);
    json_object_unref(body);
    request->plain = TRUE;
    request->patience_ms = ANSWER_MS;
    return request;
}

static void
sent(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);

    if (node == NULL && error->code != EB_ERROR_CANCELLED)
        eb_debug("%s could not be told: %s", (const char *)user_data, error->message);
}

static void
send_and_forget(DiscordInteractions *self, DiscordRequest *request, const char *what)
{
    discord_rest_send_async(self->rest, request, self->closing, sent, (gpointer)what);
}

static gboolean
is_acknowledged(JsonNode *node, const GError *error)
{
    return node != NULL || discord_error_code(error) == ALREADY_ACKNOWLEDGED;
}

/* --- answers --- */

static void
fallback_done(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Answer *answer = user_data;
    g_autoptr(GError) error = NULL;
    char *id = discord_outbox_create_finish(DISCORD_OUTBOX(source), result, &error);

    if (id != NULL)
        g_task_return_pointer(answer->task, id, g_free);
    else
        g_task_return_error(answer->task, g_steal_pointer(&error));
    answer_free(answer);
}

/* Discord takes no answer to this command any more: it is a plain message in the place where it was given. */
static void
send_fallback(Answer *answer)
{
    if (answer->fallback == NULL) {
        g_task_return_error(answer->task,
                            eb_error_new(EB_ERROR_NOT_FOUND, "discord.interaction", "the command is no longer open"));
        answer_free(answer);
        return;
    }
    discord_outbox_create_async(answer->fallback, make_content(answer->text, SUPPRESS_EMBEDS), answer->files,
                                g_task_get_cancellable(answer->task), fallback_done, answer);
}

static void
lose(Command *command)
{
    Answer *answer;

    command->state = LOST;
    while ((answer = g_queue_pop_head(&command->waiting)) != NULL)
        send_fallback(answer);
}

static void
answer_done(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Answer *answer = user_data;
    Command *command = g_rc_box_acquire(answer->command);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);

    command->busy = FALSE;
    if (node != NULL) {
        const char *id = eb_json_get_string(eb_json_node_object(node), "id");
        command->answered = TRUE;
        g_task_return_pointer(answer->task, g_strdup(id != NULL ? id : command->what->id), g_free);
        answer_free(answer);
    } else if (error->code == EB_ERROR_CANCELLED) {
        g_task_return_error(answer->task, g_steal_pointer(&error));
        answer_free(answer);
    } else {
        const guint code = discord_error_code(error);
        eb_debug("a command could not be answered in its place: %s", error->message);
        if (code == UNKNOWN_WEBHOOK || code == UNKNOWN_INTERACTION || code == INVALID_WEBHOOK_TOKEN ||
            error->code == EB_ERROR_UNAUTHENTICATED || error->code == EB_ERROR_NOT_FOUND)
            command->state = LOST;
        send_fallback(answer);
    }
    if (command->state == LOST)
        lose(command);
    else
        pump(command);
    command_unref(command);
}

/* Sends the next answer, one at a time: their order is that of the calls. */
static void
pump(Command *command)
{
    DiscordRequest *request;
    Answer *answer;

    if (command->busy || command->state != ACKNOWLEDGED || g_queue_is_empty(&command->waiting))
        return;
    answer = g_queue_pop_head(&command->waiting);
    command->busy = TRUE;
    request = command->answered
                  ? follow_up_request(command->what, make_content(answer->text, EPHEMERAL | SUPPRESS_EMBEDS))
                  : edit_request(command->what, make_content(answer->text, 0));
    request->files = answer->files != NULL ? g_ptr_array_ref(answer->files) : NULL;
    discord_rest_send_async(command->owner->rest, request, g_task_get_cancellable(answer->task), answer_done, answer);
}

void
discord_interactions_answer_async(DiscordInteractions *self, const char *id, EbChatPost *post, DiscordOutbox *fallback,
                                  GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    Answer *answer = g_new0(Answer, 1);
    Command *command = id != NULL ? g_hash_table_lookup(self->commands, id) : NULL;

    answer->task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(answer->task, discord_interactions_answer_async);
    g_task_set_check_cancellable(answer->task, FALSE);
    answer->text = discord_text_show_people(post->text != NULL ? post->text : "");
    answer->files = post->files != NULL && post->files->len > 0 ? g_ptr_array_ref(post->files) : NULL;
    if ((answer->text == NULL || *g_strstrip(answer->text) == '\0') && answer->files == NULL) {
        g_free(answer->text);
        answer->text = g_strdup("Done."); /* a message cannot be empty */
    }
    answer->fallback = fallback != NULL ? g_object_ref(fallback) : NULL;
    if (command == NULL || command->state == LOST ||
        g_queue_get_length(&command->waiting) >= DISCORD_INTERACTIONS_MAX_WAITING) {
        send_fallback(answer);
        return;
    }
    answer->command = g_rc_box_acquire(command);
    g_queue_push_tail(&command->waiting, answer);
    pump(command);
}

char *
discord_interactions_answer_finish(DiscordInteractions *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- commands --- */

static gboolean
life_over(gpointer user_data)
{
    Command *command = user_data;

    clear_source(&command->timer);
    lose(command);
    return G_SOURCE_REMOVE;
}

static void
set_timer(Command *command, guint ms, GSourceFunc function)
{
    clear_source(&command->timer);
    command->timer = g_timeout_source_new(ms);
    g_source_set_callback(command->timer, function, command, NULL);
    g_source_attach(command->timer, g_main_context_get_thread_default());
}

static gboolean
silence_over(gpointer user_data)
{
    Command *command = user_data;
    DiscordInteractions *self = command->owner;
    const gint64 passed_ms = (g_get_monotonic_time() - command->began) / 1000;

    if (command->state == ACKNOWLEDGED && !command->answered && !command->busy) {
        g_autofree char *text = g_strdup_printf(TEXT_SILENCE, command->what->command);
        send_and_forget(self, edit_request(command->what, make_content(text, 0)), "that no answer came");
    }
    set_timer(command, (guint)MAX(1, (gint64)self->life_ms - passed_ms), life_over);
    return G_SOURCE_REMOVE;
}

static EbChatMessage *
make_action(const Command *command)
{
    const DiscordInteraction *what = command->what;
    EbChatMessage *message = eb_chat_message_new(what->id, command->thread, what->user_id, "");

    g_free(message->author_name);
    message->author_name = g_strdup(what->user_name);
    message->sent_unix_ms = discord_snowflake_ms(what->id);
    message->extra = json_object_new();
    json_object_set_string_member(message->extra, "command", what->command);
    json_object_set_object_member(message->extra, "options", json_object_ref(what->options));
    return message;
}

static void
command_acknowledged(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Command *command = user_data;
    g_autoptr(DiscordInteractions) self = command->owner; /* held for this call */
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);
    const gint64 age_ms = g_get_real_time() / 1000 - discord_snowflake_ms(command->what->id);

    if (!g_error_matches(error, EB_ERROR, EB_ERROR_CANCELLED) &&
        (discord_error_code(error) != UNKNOWN_INTERACTION || age_ms < STALE_MS)) {
        g_autoptr(EbChatMessage) message = make_action(command);
        if (is_acknowledged(node, error))
            command->state = ACKNOWLEDGED;
        else
            lose(command);
        g_signal_emit(self, signals[SIGNAL_ACTION], 0, message);
        pump(command);
    } else {
        lose(command);
    }
    command_unref(command);
}

/* The oldest command makes room: what still answers it is a plain message. */
static void
forget_oldest(DiscordInteractions *self)
{
    Command *oldest = g_queue_pop_head(&self->order);

    if (oldest->state == ACKNOWLEDGED)
        lose(oldest);
    clear_source(&oldest->timer);
    g_hash_table_remove(self->commands, oldest->what->id);
}

/* @what: (transfer full) */
static void
handle_command(DiscordInteractions *self, DiscordInteraction *what, const char *thread)
{
    Command *command = g_rc_box_new0(Command);
    g_autoptr(JsonObject) data = json_object_new();

    if (g_queue_get_length(&self->order) >= DISCORD_INTERACTIONS_MAX)
        forget_oldest(self);
    command->owner = self;
    command->what = what;
    command->thread = g_strdup(thread);
    command->began = g_get_monotonic_time();
    g_queue_init(&command->waiting);
    g_hash_table_insert(self->commands, what->id, command);
    g_queue_push_tail(&self->order, command);
    set_timer(command, MIN(self->silence_ms, self->life_ms), silence_over);
    json_object_set_int_member(data, "flags", EPHEMERAL);
    g_object_ref(self);
    send_callback(self, what, REPLY_LATER, g_steal_pointer(&data), command_acknowledged, g_rc_box_acquire(command));
}

/* --- buttons --- */

static void
press_free(PressCall *press)
{
    g_object_unref(press->self);
    discord_interaction_free(press->what);
    g_free(press);
}

/* Both are known: the one who pressed is told when it did nothing. */
static void
press_step(PressCall *press)
{
    DiscordInteractions *self = press->self;

    if (!press->acknowledged || !press->judged)
        return;
    if (!press->failed && press->result == DISCORD_PRESS_REFUSED)
        send_and_forget(self, follow_up_request(press->what, make_content(TEXT_REFUSED, EPHEMERAL)), "a refusal");
    if (!press->failed && press->result == DISCORD_PRESS_CLOSED) {
        JsonObject *bare = make_body();
        json_object_set_array_member(bare, "components", json_array_new());
        send_and_forget(self, edit_request(press->what, bare), "that a question is closed");
        send_and_forget(self, follow_up_request(press->what, make_content(TEXT_CLOSED, EPHEMERAL)),
                        "that a question is closed");
    }
    press_free(press);
}

static void
press_acknowledged(GObject *source, GAsyncResult *result, gpointer user_data)
{
    PressCall *press = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);

    press->acknowledged = TRUE;
    press->failed = !is_acknowledged(node, error);
    press_step(press);
}

static void
press_judged(DiscordPressResult result, gpointer user_data)
{
    PressCall *press = user_data;

    press->judged = TRUE;
    press->result = result;
    press_step(press);
}

/* @what: (transfer full) */
static void
handle_press(DiscordInteractions *self, DiscordInteraction *what)
{
    PressCall *press = g_new0(PressCall, 1);

    press->self = g_object_ref(self);
    press->what = what;
    send_callback(self, what, REPLY_UPDATE, NULL, press_acknowledged, press);
    /* In the order they came, not in that of their acknowledgements: the first one is the answer. */
    if (what->kind == DISCORD_INTERACTION_PRESS)
        discord_ask_press(self->ask, what->question_id, what->choice, what->user_id, press_judged, press);
    else
        press_judged(DISCORD_PRESS_CLOSED, press);
}

/* --- what comes --- */

static gboolean
is_news(DiscordInteractions *self, const char *id)
{
    char *copy;

    if (g_hash_table_contains(self->seen, id))
        return FALSE;
    copy = g_strdup(id);
    g_hash_table_add(self->seen, copy);
    g_queue_push_tail(&self->seen_order, copy);
    if (g_queue_get_length(&self->seen_order) > MAX_SEEN)
        g_hash_table_remove(self->seen, g_queue_pop_head(&self->seen_order));
    return TRUE;
}

/* (transfer full) (nullable): NULL when it is no concern of ours, or was told before */
static DiscordInteraction *
read_ours(DiscordInteractions *self, JsonObject *data)
{
    g_autoptr(DiscordInteraction) what = discord_interaction_read(data);
    const char *guild_id = eb_json_get_string(data, "guild_id");

    if (what == NULL || g_strcmp0(what->application_id, self->application_id) != 0 ||
        (self->guild_id != NULL && g_strcmp0(guild_id, self->guild_id) != 0) || !is_news(self, what->id))
        return NULL;
    return g_steal_pointer(&what);
}

static void
refuse(DiscordInteractions *self, const DiscordInteraction *what, const char *text)
{
    if (what->kind == DISCORD_INTERACTION_OTHER && !what->component)
        return; /* suggestions while somebody types, forms: nothing that could be answered by a message */
    send_callback(self, what, REPLY_MESSAGE, make_content(text, EPHEMERAL), sent, (gpointer) "a refusal");
}

void
discord_interactions_handle(DiscordInteractions *self, JsonObject *interaction, const char *thread)
{
    g_autoptr(DiscordInteraction) what = read_ours(self, interaction);

    if (what == NULL)
        return;
    if (what->component) {
        handle_press(self, g_steal_pointer(&what));
    } else if (what->kind == DISCORD_INTERACTION_COMMAND) {
        const char *place = thread != NULL ? thread : self->channel_id;
        if (place != NULL && g_strcmp0(place, what->channel_id) != 0)
            refuse(self, what, TEXT_ELSEWHERE);
        else
            handle_command(self, g_steal_pointer(&what), thread);
    }
}

void
discord_interactions_refuse(DiscordInteractions *self, JsonObject *interaction, const char *text)
{
    g_autoptr(DiscordInteraction) what = read_ours(self, interaction);

    if (what != NULL)
        refuse(self, what, text);
}

gboolean
discord_interactions_knows(DiscordInteractions *self, const char *id)
{
    return id != NULL && g_hash_table_contains(self->commands, id);
}

guint
discord_interactions_get_open(DiscordInteractions *self)
{
    return g_queue_get_length(&self->order);
}
