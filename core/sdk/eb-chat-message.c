/* SPDX-License-Identifier: MIT */
#include "eb-chat-message.h"

G_DEFINE_BOXED_TYPE(EbChatMessage, eb_chat_message, eb_chat_message_ref, eb_chat_message_unref)
G_DEFINE_BOXED_TYPE(EbChatPost, eb_chat_post, eb_chat_post_ref, eb_chat_post_unref)
G_DEFINE_BOXED_TYPE(EbChatQuestion, eb_chat_question, eb_chat_question_ref, eb_chat_question_unref)

static void
attachment_free(gpointer data)
{
    EbChatAttachment *attachment = data;

    g_free(attachment->id);
    g_free(attachment->name);
    g_free(attachment->content_type);
    g_free(attachment->url);
    g_free(attachment);
}

EbChatMessage *
eb_chat_message_new(const char *id, const char *thread, const char *author_id, const char *text)
{
    EbChatMessage *self = g_new0(EbChatMessage, 1);

    g_atomic_ref_count_init(&self->ref_count);
    self->id = g_strdup(id);
    self->thread = g_strdup(thread);
    self->author_id = g_strdup(author_id);
    self->text = g_strdup(text != NULL ? text : "");
    self->attachments = g_ptr_array_new_with_free_func(attachment_free);
    return self;
}

void
eb_chat_message_add_attachment(EbChatMessage *self, const char *id, const char *name, const char *content_type,
                               guint64 size_bytes, const char *url)
{
    EbChatAttachment *attachment;

    g_return_if_fail(self != NULL && id != NULL);
    attachment = g_new0(EbChatAttachment, 1);
    attachment->id = g_strdup(id);
    attachment->name = g_strdup(name != NULL ? name : "");
    attachment->content_type = g_strdup(content_type);
    attachment->size_bytes = size_bytes;
    attachment->url = g_strdup(url);
    g_ptr_array_add(self->attachments, attachment);
}

EbChatMessage *
eb_chat_message_ref(EbChatMessage *self)
{
    g_return_val_if_fail(self != NULL, NULL);
    g_atomic_ref_count_inc(&self->ref_count);
    return self;
}

void
eb_chat_message_unref(EbChatMessage *self)
{
    if (self == NULL || !g_atomic_ref_count_dec(&self->ref_count))
        return;
    g_free(self->id);
    g_free(self->thread);
    g_free(self->author_id);
    g_free(self->author_name);
    g_free(self->text);
    g_free(self->note);
    g_ptr_array_unref(self->attachments);
    g_clear_pointer(&self->extra, json_object_unref);
    g_free(self);
}

const char *
eb_chat_post_kind_to_string(EbChatPostKind kind)
{
    static const char *const names[] = {"text",  "thought", "tool", "diff",       "notice", "error",  "usage", "plan",
                                        "guest", "ready",   "end",  "permission", "busy",   "answer", "file"};

    return (guint)kind < G_N_ELEMENTS(names) ? names[kind] : "unknown";
}

EbChatPost *
eb_chat_post_new(const char *thread, EbChatPostKind kind, const char *text)
{
    EbChatPost *self = g_new0(EbChatPost, 1);

    g_atomic_ref_count_init(&self->ref_count);
    self->thread = g_strdup(thread);
    self->kind = kind;
    self->text = g_strdup(text != NULL ? text : "");
    return self;
}

EbChatPost *
eb_chat_post_ref(EbChatPost *self)
{
    g_return_val_if_fail(self != NULL, NULL);
    g_atomic_ref_count_inc(&self->ref_count);
    return self;
}

void
eb_chat_post_unref(EbChatPost *self)
{
    if (self == NULL || !g_atomic_ref_count_dec(&self->ref_count))
        return;
    g_free(self->thread);
    g_free(self->key);
    g_free(self->text);
    g_free(self->reply_to);
    g_free(self->notify);
    g_clear_pointer(&self->files, g_ptr_array_unref);
    g_clear_pointer(&self->notify_also, g_ptr_array_unref);
    g_clear_pointer(&self->data, json_object_unref);
    g_free(self);
}

EbChatFile *
eb_chat_file_new(const char *name, const char *content_type, GBytes *bytes)
{
    EbChatFile *self = g_new0(EbChatFile, 1);

    self->name = g_strdup(name);
    self->content_type = g_strdup(content_type);
    self->bytes = g_bytes_ref(bytes);
    return self;
}

void
eb_chat_file_free(EbChatFile *self)
{
    if (self == NULL)
        return;
    g_free(self->name);
    g_free(self->content_type);
    g_bytes_unref(self->bytes);
    g_free(self);
}

static void
choice_free(gpointer data)
{
    EbChatChoice *choice = data;

    g_free(choice->id);
    g_free(choice->label);
    g_free(choice->kind);
    g_clear_pointer(&choice->answerers, g_ptr_array_unref);
    g_free(choice);
}

EbChatQuestion *
eb_chat_question_new(const char *thread, const char *text)
{
    EbChatQuestion *self = g_new0(EbChatQuestion, 1);

    g_atomic_ref_count_init(&self->ref_count);
    self->thread = g_strdup(thread);
    self->text = g_strdup(text != NULL ? text : "");
    self->choices = g_ptr_array_new_with_free_func(choice_free);
    return self;
}

void
eb_chat_question_add_choice(EbChatQuestion *self, const char *id, const char *label, const char *kind)
{
    EbChatChoice *choice;

    g_return_if_fail(self != NULL && id != NULL);
    choice = g_new0(EbChatChoice, 1);
    choice->id = g_strdup(id);
    choice->label = g_strdup(label != NULL ? label : id);
    choice->kind = g_strdup(kind);
    g_ptr_array_add(self->choices, choice);
}

EbChatQuestion *
eb_chat_question_ref(EbChatQuestion *self)
{
    g_return_val_if_fail(self != NULL, NULL);
    g_atomic_ref_count_inc(&self->ref_count);
    return self;
}

void
eb_chat_question_unref(EbChatQuestion *self)
{
    if (self == NULL || !g_atomic_ref_count_dec(&self->ref_count))
        return;
    g_free(self->thread);
    g_free(self->text);
    g_ptr_array_unref(self->choices);
    if (self->answerers != NULL)
        g_ptr_array_unref(self->answerers);
    g_clear_pointer(&self->notify, g_ptr_array_unref);
    g_free(self->id);
    g_free(self->message_id);
    g_free(self->outcome);
    g_clear_pointer(&self->data, json_object_unref);
    g_free(self);
}
