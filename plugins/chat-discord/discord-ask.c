/* SPDX-License-Identifier: MIT */
#include "discord-ask.h"

#include "discord-question.h"
#include "discord-text.h"

#include <string.h>

#define TIMED_OUT "No answer in time."
/* Questions remembered as closed, so that a second press is told at once. */
#define MAX_CLOSED 64

/* One question, from the call until its message needs nothing more. */
typedef struct {
    DiscordAsk *owner; /* (unowned): its task holds it while it is open */
    char *id;          /* in the buttons */
    EbChatQuestion *question;
    DiscordOutbox *outbox;
    GTask *task;           /* (nullable): NULL = closed */
    GCancellable *posting; /* of the message that is on its way */
    GSource *timer;        /* (nullable) */
    GSource *cancelled;    /* (nullable) */
    char *message_id;      /* (nullable): not shown yet */
    JsonObject *outcome;   /* (nullable): the edit to make as soon as the message is there */
} Ask;

/* A press of a button whose question may still be taken up. */
typedef struct {
    char *question_id;
    guint choice;
    char *user_id;
    DiscordPressed pressed;
    gpointer user_data;
} Press;

struct _DiscordAsk {
    GObject parent_instance;
    GHashTable *open;  /* id -> Ask (rc box), at most DISCORD_ASK_MAX */
    GQueue parked;     /* (element-type Press), at most DISCORD_ASK_MAX_PARKED */
    GQueue closed;     /* (element-type utf8): the last MAX_CLOSED ids */
    GSource *settling; /* (nullable): NULL = a question that is unknown now stays so */
};

G_DEFINE_FINAL_TYPE(DiscordAsk, discord_ask, G_TYPE_OBJECT)

enum { SIGNAL_ASKED, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
clear_source(GSource **source)
{
    if (*source == NULL)
        return;
    g_source_destroy(*source);
    g_clear_pointer(source, g_source_unref);
}

static void
ask_clear(gpointer data)
{
    Ask *ask = data;

    clear_source(&ask->timer);
    clear_source(&ask->cancelled);
    g_clear_object(&ask->task);
    g_clear_object(&ask->posting);
    g_clear_object(&ask->outbox);
    g_clear_pointer(&ask->question, eb_chat_question_unref);
    g_clear_pointer(&ask->outcome, json_object_unref);
    g_free(ask->message_id);
    g_free(ask->id);
}

static void
ask_unref(gpointer data)
{
    g_rc_box_release_full(data, ask_clear);
}

/* The press is over: whoever waits for it is told. */
static void
press_end(Press *press, DiscordPressResult result)
{
    press->pressed(result, press->user_data);
    g_free(press->question_id);
    g_free(press->user_id);
    g_free(press);
}

static void
discord_ask_dispose(GObject *object)
{
    DiscordAsk *self = DISCORD_ASK(object);
    Press *press;

    clear_source(&self->settling);
    while ((press = g_queue_pop_head(&self->parked)) != NULL)
        press_end(press, DISCORD_PRESS_CLOSED);
    G_OBJECT_CLASS(discord_ask_parent_class)->dispose(object);
}

static void
discord_ask_finalize(GObject *object)
{
    DiscordAsk *self = DISCORD_ASK(object);

    g_hash_table_unref(self->open);
    g_queue_clear_full(&self->closed, g_free);
    G_OBJECT_CLASS(discord_ask_parent_class)->finalize(object);
}

static void
discord_ask_class_init(DiscordAskClass *klass)
{
    G_OBJECT_CLASS(klass)->dispose = discord_ask_dispose;
    G_OBJECT_CLASS(klass)->finalize = discord_ask_finalize;
    signals[SIGNAL_ASKED] = g_signal_new("asked", DISCORD_TYPE_ASK, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE,
                                         2, G_TYPE_STRING, G_TYPE_STRING);
}

static void
discord_ask_init(DiscordAsk *self)
{
    self->open = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, ask_unref);
    g_queue_init(&self->parked);
    g_queue_init(&self->closed);
    discord_ask_set_settle_ms(self, DISCORD_ASK_SETTLE_MS);
}

DiscordAsk *
discord_ask_new(void)
{
    return g_object_new(DISCORD_TYPE_ASK, NULL);
}

static gboolean
settled(gpointer user_data)
{
    DiscordAsk *self = user_data;
    GQueue late = self->parked;
    Press *press;

    g_queue_init(&self->parked);
    clear_source(&self->settling);
    while ((press = g_queue_pop_head(&late)) != NULL)
        press_end(press, DISCORD_PRESS_CLOSED);
    return G_SOURCE_REMOVE;
}

static GSource *
add_timeout(guint ms, GSourceFunc function, gpointer user_data)
{
    GSource *source = g_timeout_source_new(ms);

    g_source_set_callback(source, function, user_data, NULL);
    g_source_attach(source, g_main_context_get_thread_default());
    return source;
}

void
discord_ask_set_settle_ms(DiscordAsk *self, guint ms)
{
    clear_source(&self->settling);
    self->settling = add_timeout(ms, settled, self);
}

/* --- the message --- */

static void
edited(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;

    /* The message may have been deleted: then nothing shows a question any more. */
    if (!discord_outbox_edit_finish(DISCORD_OUTBOX(source), result, &error))
        eb_debug("a question's message could not be closed: %s", error->message);
}

static void
edit_message(Ask *ask)
{
    discord_outbox_edit_async(ask->outbox, ask->message_id, g_steal_pointer(&ask->outcome), NULL, edited, NULL);
}

/* The question is no longer open. @outcome: (nullable): safe Markdown; NULL = its message stays as it is.
   Returns: (transfer full): its task; @ask may be gone */
static GTask *
close_ask(Ask *ask, const char *outcome)
{
    DiscordAsk *self = ask->owner;
    GTask *task = g_steal_pointer(&ask->task);

    clear_source(&ask->timer);
    clear_source(&ask->cancelled);
    g_queue_push_tail(&self->closed, g_strdup(ask->id));
    if (g_queue_get_length(&self->closed) > MAX_CLOSED)
        g_free(g_queue_pop_head(&self->closed));
    if (outcome != NULL)
        ask->outcome = discord_question_to_outcome(ask->question, outcome);
    if (ask->message_id == NULL)
        g_cancellable_cancel(ask->posting);
    else if (ask->outcome != NULL)
        edit_message(ask);
    g_hash_table_remove(self->open, ask->id);
    return task;
}

static void
created(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Ask *ask = user_data;
    g_autoptr(GError) error = NULL;

    ask->message_id = discord_outbox_create_finish(DISCORD_OUTBOX(source), result, &error);
    if (ask->message_id == NULL) {
        if (ask->task != NULL) {
            g_autoptr(GTask) task = close_ask(ask, NULL);
            g_task_return_error(task, g_steal_pointer(&error));
        }
    } else if (ask->outcome != NULL) {
        edit_message(ask);
    } else if (ask->task != NULL && ask->question->id != NULL) {
        g_signal_emit(ask->owner, signals[SIGNAL_ASKED], 0, ask->question->id, ask->message_id);
    }
    ask_unref(ask);
}

/* --- ends --- */

static gboolean
timed_out(gpointer user_data)
{
    Ask *ask = user_data;
    g_autoptr(GTask) task = close_ask(ask, TIMED_OUT);

    g_task_return_error(task,
                        eb_error_new(EB_ERROR_TIMEOUT, "discord.question", "nobody answered the question in time"));
    return G_SOURCE_REMOVE;
}

static gboolean
cancelled(GCancellable *cancellable, gpointer user_data)
{
    Ask *ask = user_data;
    g_autofree char *outcome = ask->question->outcome != NULL ? discord_text_prepare(ask->question->outcome) : NULL;
    g_autoptr(GTask) task = close_ask(ask, outcome);

    g_task_return_error(task, eb_error_new(EB_ERROR_CANCELLED, "discord.question", "the question was withdrawn"));
    return G_SOURCE_REMOVE;
}

static gboolean
is_among(GPtrArray *answerers, const char *user_id)
{
    return answerers == NULL || g_ptr_array_find_with_equal_func(answerers, user_id, g_str_equal, NULL);
}

static DiscordPressResult
judge(Ask *ask, guint number, const char *user_id)
{
    const EbChatChoice *choice;
    g_autofree char *outcome = NULL;
    g_autofree char *id = NULL;
    g_autoptr(GTask) task = NULL;

    if (number >= ask->question->choices->len)
        return DISCORD_PRESS_CLOSED;
    choice = ask->question->choices->pdata[number];
    if (!is_among(ask->question->answerers, user_id) || !is_among(choice->answerers, user_id))
        return DISCORD_PRESS_REFUSED;
    outcome = discord_question_answer(choice, user_id);
    g_object_set_data_full(G_OBJECT(ask->task), "answered-by", g_strdup(user_id), g_free);
    id = g_strdup(choice->id);
    task = close_ask(ask, outcome);
    g_task_return_pointer(task, g_steal_pointer(&id), g_free);
    return DISCORD_PRESS_TAKEN;
}

static gboolean
was_closed(DiscordAsk *self, const char *id)
{
    return g_queue_find_custom(&self->closed, id, (GCompareFunc)strcmp) != NULL;
}

void
discord_ask_press(DiscordAsk *self, const char *question_id, guint choice, const char *user_id, DiscordPressed pressed,
                  gpointer user_data)
{
    Ask *ask = g_hash_table_lookup(self->open, question_id);
    Press *press;

    if (ask != NULL || self->settling == NULL || was_closed(self, question_id)) {
        pressed(ask != NULL ? judge(ask, choice, user_id) : DISCORD_PRESS_CLOSED, user_data);
        return;
    }
    if (g_queue_get_length(&self->parked) >= DISCORD_ASK_MAX_PARKED)
        press_end(g_queue_pop_head(&self->parked), DISCORD_PRESS_CLOSED);
    press = g_new0(Press, 1);
    press->question_id = g_strdup(question_id);
    press->choice = choice;
    press->user_id = g_strdup(user_id);
    press->pressed = pressed;
    press->user_data = user_data;
    g_queue_push_tail(&self->parked, press);
}

/* Question @id is there now: presses that came before it are judged, in their order. */
static void
unpark(DiscordAsk *self, const char *id)
{
    for (GList *item = self->parked.head; item != NULL;) {
        GList *next = item->next;
        Press *press = item->data;
        if (strcmp(press->question_id, id) == 0) {
            Ask *ask = g_hash_table_lookup(self->open, id);
            g_queue_delete_link(&self->parked, item);
            press_end(press, ask != NULL ? judge(ask, press->choice, press->user_id) : DISCORD_PRESS_CLOSED);
            next = self->parked.head;
        }
        item = next;
    }
}

/* --- asking --- */

static gboolean
check_question(DiscordAsk *self, EbChatQuestion *question, GError **error)
{
    g_autofree char *custom_id = g_strdup_printf("q:%s:0", question->id != NULL ? question->id : "-");
    g_autofree char *id = NULL;
    guint choice;

    if (!discord_question_parse_button(custom_id, &id, &choice))
        eb_set_error(error, EB_ERROR_INVALID, "discord.question", "\"%s\" is no id of a question", question->id);
    else if (question->choices->len == 0)
        eb_set_error(error, EB_ERROR_INVALID, "discord.question", "a question without choices");
    else if (question->id != NULL && g_hash_table_contains(self->open, question->id))
        eb_set_error(error, EB_ERROR_EXISTS, "discord.question", "question %s is open already", question->id);
    else if (g_hash_table_size(self->open) >= DISCORD_ASK_MAX)
        eb_set_error(error, EB_ERROR_QUOTA, "discord.questions", "%d questions are open", DISCORD_ASK_MAX);
    else
        return TRUE;
    return FALSE;
}

void
discord_ask_open_async(DiscordAsk *self, DiscordOutbox *outbox, EbChatQuestion *question, guint timeout_ms,
                       GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    GError *error = NULL;
    g_autofree char *id = NULL;
    Ask *ask;

    g_task_set_source_tag(task, discord_ask_open_async);
    /* What the person who pressed was told has happened: it may not be turned into a cancellation on the way. */
    g_task_set_check_cancellable(task, FALSE);
    if (!check_question(self, question, &error)) {
        g_task_return_error(task, error);
        return;
    }
    ask = g_rc_box_new0(Ask);
    ask->owner = self;
    ask->id = question->id != NULL ? g_strdup(question->id) : g_uuid_string_random();
    ask->question = eb_chat_question_ref(question);
    ask->outbox = g_object_ref(outbox);
    ask->task = g_steal_pointer(&task);
    ask->posting = g_cancellable_new();
    ask->message_id = g_strdup(question->message_id);
    g_hash_table_insert(self->open, ask->id, ask);
    if (timeout_ms > 0)
        ask->timer = add_timeout(timeout_ms, timed_out, ask);
    if (cancellable != NULL) {
        ask->cancelled = g_cancellable_source_new(cancellable);
        g_source_set_callback(ask->cancelled, G_SOURCE_FUNC(cancelled), ask, NULL);
        g_source_attach(ask->cancelled, g_main_context_get_thread_default());
    }
    if (ask->message_id == NULL) {
        discord_outbox_create_async(outbox, discord_question_to_message(question, ask->id), NULL, ask->posting, created,
                                    g_rc_box_acquire(ask));
        return;
    }
    id = g_strdup(ask->id);
    unpark(self, id);
}

char *
discord_ask_open_finish(DiscordAsk *self, GAsyncResult *result, char **answered_by, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    if (answered_by != NULL)
        *answered_by = g_strdup(g_object_get_data(G_OBJECT(result), "answered-by"));
    return g_task_propagate_pointer(G_TASK(result), error);
}

guint
discord_ask_get_open(DiscordAsk *self)
{
    return g_hash_table_size(self->open);
}
