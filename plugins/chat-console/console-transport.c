/* SPDX-License-Identifier: MIT */
#include "console-transport.h"

#include "console-lines.h"
#include "console-show.h"
#include "console-text.h"
#include "console-writer.h"

#include <string.h>
#include <unistd.h>

/* One question; the head of the queue is the one on the screen. */
typedef struct {
    char *id;
    EbChatQuestion *question;
    GTask *task;
    GSource *timer;     /* (nullable) */
    gulong cancelled;   /* handler of the cancellable, 0 = none */
    GSource *withdrawn; /* (nullable): set by the cancellable, whose thread may be another */
} Ask;

struct _EbChatConsoleTransport {
    GObject parent_instance;
    ConsoleSettings settings;
    ConsoleWriter *writer; /* (nullable): made with the first text: a service with this plugin loaded needs no thread */
    ConsoleShow *show;
    ConsoleLines *lines;
    GQueue asks; /* (element-type Ask), at most CONSOLE_MAX_QUESTIONS */
    guint n_asked;
    guint n_posts;
    char *last_answered; /* (nullable): id of the question answered last */
    gboolean told_broken;
};

enum { PROP_EVENTS = 1, PROP_PERMISSIONS };

static void eb_chat_console_transport_iface_init(EbChatTransportInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(EbChatConsoleTransport, eb_chat_console_transport, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CHAT_TRANSPORT, eb_chat_console_transport_iface_init))

static void line_came(const char *line, gpointer user_data);

static void
clear_source(GSource **source)
{
    if (*source == NULL)
        return;
    g_source_destroy(*source);
    g_clear_pointer(source, g_source_unref);
}

static void
ask_free(Ask *ask)
{
    clear_source(&ask->timer);
    if (ask->cancelled != 0)
        g_cancellable_disconnect(g_task_get_cancellable(ask->task), ask->cancelled);
    clear_source(&ask->withdrawn);
    g_free(ask->id);
    eb_chat_question_unref(ask->question);
    g_object_unref(ask->task);
    g_free(ask);
}

static void
eb_chat_console_transport_finalize(GObject *object)
{
    EbChatConsoleTransport *self = EB_CHAT_CONSOLE_TRANSPORT(object);

    g_clear_pointer(&self->lines, console_lines_free);
    g_clear_pointer(&self->writer, console_writer_free);
    g_clear_pointer(&self->show, console_show_free);
    g_free(self->last_answered);
    G_OBJECT_CLASS(eb_chat_console_transport_parent_class)->finalize(object);
}

gboolean
console_policy_from_string(const char *text, ConsolePolicy *policy)
{
    static const char *const words[] = {"ask", "allow", "reject"};

    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        if (g_strcmp0(text, words[i]) == 0) {
            *policy = (ConsolePolicy)i;
            return TRUE;
        }
    return FALSE;
}

static void
set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec)
{
    EbChatConsoleTransport *self = EB_CHAT_CONSOLE_TRANSPORT(object);

    if (id == PROP_EVENTS)
        self->settings.json = g_value_get_boolean(value);
    else if (id != PROP_PERMISSIONS || !console_policy_from_string(g_value_get_string(value), &self->settings.policy))
        g_warning("\"%s\" cannot be set to that", spec->name);
}

static void
eb_chat_console_transport_class_init(EbChatConsoleTransportClass *klass)
{
    GObjectClass *object_class = G_OBJECT_CLASS(klass);

    object_class->finalize = eb_chat_console_transport_finalize;
    object_class->set_property = set_property;
    g_object_class_install_property(
        object_class, PROP_EVENTS,
        g_param_spec_boolean("events", NULL, NULL, FALSE, G_PARAM_WRITABLE | G_PARAM_STATIC_STRINGS));
    g_object_class_install_property(
        object_class, PROP_PERMISSIONS,
        g_param_spec_string("permissions", NULL, NULL, "ask", G_PARAM_WRITABLE | G_PARAM_STATIC_STRINGS));
}

static void
eb_chat_console_transport_init(EbChatConsoleTransport *self)
{
    g_queue_init(&self->asks);
}

EbChatConsoleTransport *
eb_chat_console_transport_new(const ConsoleSettings *settings)
{
    EbChatConsoleTransport *self = g_object_new(EB_TYPE_CHAT_CONSOLE_TRANSPORT, NULL);

    self->settings = *settings;
    self->show = console_show_new(settings->color);
    self->lines = console_lines_new(settings->input, line_came, self);
    return self;
}

/* @text: (transfer full); @task, @id: as for console_writer_write() */
static void
write_text(EbChatConsoleTransport *self, int fd, char *text, GTask *task, char *id)
{
    if (self->writer == NULL)
        self->writer = console_writer_new();
    console_writer_write(self->writer, fd, text, task, id);
    if (!self->told_broken && console_writer_is_broken(self->writer)) {
        self->told_broken = TRUE;
        g_signal_emit_by_name(self, "connection", FALSE, "nobody reads stdout any more");
    }
}

void
eb_chat_console_transport_flush(EbChatConsoleTransport *self, GTask *task)
{
    if (self->writer == NULL) {
        g_task_return_boolean(task, TRUE);
        g_object_unref(task);
        return;
    }
    if (!self->settings.json)
        console_writer_write(self->writer, STDOUT_FILENO, console_show_break(self->show), NULL, NULL);
    console_writer_flush(self->writer, task);
}

static EbChatCaps
get_caps(EbChatTransport *transport, EbChatLimits *limits)
{
    limits->max_text_units = 0;
    limits->edit_interval_ms = 0;
    return EB_CHAT_CAP_STREAM | EB_CHAT_CAP_STRUCTURED;
}

static void
post_async(EbChatTransport *transport, EbChatPost *post, GCancellable *cancellable, GAsyncReadyCallback callback,
           gpointer user_data)
{
    EbChatConsoleTransport *self = EB_CHAT_CONSOLE_TRANSPORT(transport);
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    char *id = g_strdup_printf("m%u", ++self->n_posts);
    int fd = STDOUT_FILENO;
    char *text, *before = NULL;

    g_task_set_source_tag(task, post_async);
    if (self->settings.json)
        text = console_show_json(post, post->kind == EB_CHAT_POST_PERMISSION ? self->last_answered : NULL);
    else
        text = console_show_post(self->show, post, &fd, &before);
    if (before != NULL)
        write_text(self, STDOUT_FILENO, before, NULL, NULL);
    write_text(self, fd, text, task, id);
}

static char *
finish_text(EbChatTransport *transport, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, transport), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- questions --- */

static void
show_head(EbChatConsoleTransport *self)
{
    Ask *ask = g_queue_peek_head(&self->asks);

    if (ask != NULL && !self->settings.json) {
        g_autofree char *before = console_show_break(self->show);
        g_autofree char *text = console_show_question(ask->question, self->settings.color);
        write_text(self, STDOUT_FILENO, g_strconcat(before, text, NULL), NULL, NULL);
    }
    console_lines_set_wanted(self->lines, ask != NULL);
}

/* @choice: (nullable): NULL with @error (transfer full) */
static void
close_ask(EbChatConsoleTransport *self, Ask *ask, const EbChatChoice *choice, GError *error)
{
    gboolean head = g_queue_peek_head(&self->asks) == ask;

    g_queue_remove(&self->asks, ask);
    g_free(self->last_answered);
    self->last_answered = g_strdup(ask->id);
    if (choice != NULL)
        g_task_return_pointer(ask->task, g_strdup(choice->id), g_free);
    else
        g_task_return_error(ask->task, error);
    ask_free(ask);
    if (head || g_queue_is_empty(&self->asks))
        show_head(self);
}

static void
answer_by_policy(EbChatConsoleTransport *self, Ask *ask, const char *kind, const char *why)
{
    const EbChatChoice *choice = console_choose_kind(ask->question, kind);

    if (!self->settings.json && why != NULL) {
        g_autofree char *title = console_text_clean_line(ask->question->text, -1);
        write_text(self, STDERR_FILENO, g_strdup_printf("errand-box: %s: %s\n", title, why), NULL, NULL);
    }
    close_ask(self, ask, choice,
              choice == NULL ? eb_error_new(EB_ERROR_DENIED, "console.no-choice",
                                            "the question offers no way to %s, it is cancelled", kind)
                             : NULL);
}

static void
line_for_text(EbChatConsoleTransport *self, const char *line)
{
    Ask *ask = g_queue_peek_head(&self->asks);
    const EbChatChoice *choice = console_choose(ask->question, line);

    if (choice != NULL)
        close_ask(self, ask, choice, NULL);
    else
        show_head(self);
}

static void
tell_bad_line(EbChatConsoleTransport *self, const char *why)
{
    g_autoptr(EbChatPost) post = eb_chat_post_new("main", EB_CHAT_POST_ERROR, why);
    write_text(self, STDOUT_FILENO, console_show_json(post, NULL), NULL, NULL);
}

static void
line_for_json(EbChatConsoleTransport *self, const char *line)
{
    g_autoptr(JsonNode) node = eb_json_parse(line, strlen(line), &EB_JSON_LIMITS_SMALL, NULL);
    JsonObject *object = eb_json_node_object(node);
    const char *id = eb_json_get_string(object, "permission");
    const char *option = eb_json_get_string(object, "option");

    if (*line == '\0')
        return;
    if (id == NULL || option == NULL) {
        tell_bad_line(self, "not an answer: {\"permission\":ID,\"option\":OPTION_ID} is expected");
        return;
    }
    for (GList *at = self->asks.head; at != NULL; at = at->next) {
        Ask *ask = at->data;
        if (strcmp(ask->id, id) != 0)
            continue;
        for (guint i = 0; i < ask->question->choices->len; i++) {
            const EbChatChoice *choice = ask->question->choices->pdata[i];
            if (strcmp(choice->id, option) == 0) {
                close_ask(self, ask, choice, NULL);
                return;
            }
        }
        tell_bad_line(self, "the question has no such option");
        return;
    }
    tell_bad_line(self, "no such question is open");
}

static void
line_came(const char *line, gpointer user_data)
{
    EbChatConsoleTransport *self = user_data;

    if (line == NULL) {
        if (!self->settings.json && !g_queue_is_empty(&self->asks))
            write_text(self, STDOUT_FILENO, g_strdup("\n"), NULL, NULL);
        while (!g_queue_is_empty(&self->asks))
            answer_by_policy(self, g_queue_peek_head(&self->asks), "reject", "the input ended, so it is rejected");
        return;
    }
    if (g_queue_is_empty(&self->asks))
        return;
    if (self->settings.json)
        line_for_json(self, line);
    else
        line_for_text(self, line);
}

static EbChatConsoleTransport *
ask_owner(Ask *ask)
{
    return g_task_get_source_object(ask->task);
}

static gboolean
ask_timed_out(gpointer data)
{
    Ask *ask = data;
    close_ask(ask_owner(ask), ask, NULL, eb_error_new(EB_ERROR_TIMEOUT, "console.timeout", "nobody answered in time"));
    return G_SOURCE_REMOVE;
}

static gboolean
ask_withdrawn(gpointer data)
{
    Ask *ask = data;
    EbChatConsoleTransport *self = ask_owner(ask);

    if (!self->settings.json)
        write_text(self, STDOUT_FILENO, g_strdup("(withdrawn)\n"), NULL, NULL);
    close_ask(self, ask, NULL, eb_error_new(EB_ERROR_CANCELLED, "console.withdrawn", "the question was withdrawn"));
    return G_SOURCE_REMOVE;
}

/* Runs wherever the cancellable is cancelled, and must not disconnect itself there. */
static void
ask_cancelled(GCancellable *cancellable, gpointer data)
{
    Ask *ask = data;

    if (ask->withdrawn != NULL)
        return;
    ask->withdrawn = g_idle_source_new();
    g_source_set_callback(ask->withdrawn, ask_withdrawn, ask, NULL);
    g_source_attach(ask->withdrawn, g_task_get_context(ask->task));
}

static void
ask_async(EbChatTransport *transport, EbChatQuestion *question, guint timeout_ms, GCancellable *cancellable,
          GAsyncReadyCallback callback, gpointer user_data)
{
    EbChatConsoleTransport *self = EB_CHAT_CONSOLE_TRANSPORT(transport);
    Ask *ask = g_new0(Ask, 1);

    ask->task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_check_cancellable(ask->task, FALSE);
    g_task_set_source_tag(ask->task, ask_async);
    ask->question = eb_chat_question_ref(question);
    ask->id = g_strdup_printf("q%u", ++self->n_asked);
    if (g_queue_get_length(&self->asks) >= CONSOLE_MAX_QUESTIONS) {
        g_task_return_error(ask->task, eb_error_new(EB_ERROR_QUOTA, "console.questions", "too many open questions"));
        ask_free(ask);
        return;
    }
    gboolean first = g_queue_is_empty(&self->asks);
    g_queue_push_tail(&self->asks, ask);
    if (self->settings.json)
        write_text(self, STDOUT_FILENO, console_show_json_question(question, ask->id), NULL, NULL);
    if (self->settings.policy != CONSOLE_ASK) {
        gboolean allow = self->settings.policy == CONSOLE_ALLOW && !question->standing;
        answer_by_policy(self, ask, allow ? "allow" : "reject", allow ? "allowed (--permissions allow)" : "rejected");
        return;
    }
    if (!self->settings.json && !self->settings.interactive) {
        answer_by_policy(self, ask, "reject",
                         question->standing
                             ? "this is no terminal to ask on"
                             : "rejected: this is no terminal to ask on (--permissions allow answers yes)");
        return;
    }
    if (timeout_ms > 0) {
        ask->timer = g_timeout_source_new(timeout_ms);
        g_source_set_callback(ask->timer, ask_timed_out, ask, NULL);
        g_source_attach(ask->timer, NULL);
    }
    if (cancellable != NULL)
        ask->cancelled = g_cancellable_connect(cancellable, G_CALLBACK(ask_cancelled), ask, NULL);
    if (first || self->settings.json)
        show_head(self);
}

static char *
ask_finish(EbChatTransport *transport, GAsyncResult *result, char **answered_by, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, transport), NULL);
    char *choice = g_task_propagate_pointer(G_TASK(result), error);
    if (answered_by != NULL)
        *answered_by = choice != NULL ? g_strdup("console") : NULL;
    return choice;
}

static void
eb_chat_console_transport_iface_init(EbChatTransportInterface *iface)
{
    iface->get_caps = get_caps;
    iface->post_async = post_async;
    iface->post_finish = finish_text;
    iface->ask_async = ask_async;
    iface->ask_finish = ask_finish;
}
