/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbFakeChat: a transport that keeps what it is told and answers questions as it was told to. */
#define EB_TYPE_FAKE_CHAT (eb_fake_chat_get_type())
G_DECLARE_FINAL_TYPE(EbFakeChat, eb_fake_chat, EB, FAKE_CHAT, GObject)

struct _EbFakeChat {
    GObject parent_instance;
    EbChatCaps caps;
    EbChatLimits limits;
    GPtrArray *posts; /* (element-type EbChatPost) */
    char *answer;     /* (nullable): choice for the next questions; "" = never answers */
    GPtrArray *asks;  /* (element-type EbFakeAsk): every message with a question, as people see it; beyond restarts */
    guint asked;      /* questions shown anew */
    guint taken_up;   /* questions shown before and asked again */
    gboolean deaf;    /* asks fail at once */
    guint messages;
    guint threads;
    GBytes *file;        /* (nullable): what every attachment is */
    gboolean hold_fetch; /* fetches end only when they are cancelled */
    guint fetching;
    gboolean hold;   /* posts are not answered until eb_fake_chat_release() */
    GPtrArray *held; /* (element-type GTask) */
};

/** EbFakeAsk: a message with a question. */
typedef struct {
    char *message;
    char *question;        /* id */
    char *outcome;         /* (nullable): shown in place of the buttons */
    gboolean live;         /* its buttons do something when pressed */
    EbChatQuestion *shown; /* (nullable): while it is asked */
    GTask *task;           /* (nullable) */
    GSource *timer;        /* (nullable) */
} EbFakeAsk;

EbFakeChat *eb_fake_chat_new(EbChatCaps caps);
/** eb_fake_chat_say: @extra: (nullable): JSON text */
void eb_fake_chat_say(EbFakeChat *self, const char *thread, const char *text, const char *extra);
/** eb_fake_chat_said: (transfer full): all texts of @kind, joined. */
char *eb_fake_chat_said(EbFakeChat *self, EbChatPostKind kind);
/** eb_fake_chat_count: posts of @kind. */
guint eb_fake_chat_count(EbFakeChat *self, EbChatPostKind kind);
/** eb_fake_chat_last: (transfer none) (nullable) */
EbChatPost *eb_fake_chat_last(EbFakeChat *self, EbChatPostKind kind);
/** eb_fake_chat_show_before: an earlier process has shown a question as @message; its id is learnt when it is taken up. */
void eb_fake_chat_show_before(EbFakeChat *self, const char *message);
/** eb_fake_chat_open_asks: questions that wait for an answer. */
guint eb_fake_chat_open_asks(EbFakeChat *self);
/** eb_fake_chat_ask: (transfer none): the one shown @index-th; eb_fake_chat_press: TRUE when it was taken. */
EbFakeAsk *eb_fake_chat_ask(EbFakeChat *self, guint index);
gboolean eb_fake_chat_press(EbFakeChat *self, guint index, const char *choice, const char *by);
/** eb_fake_chat_release: answers what was held and holds no more. */
void eb_fake_chat_release(EbFakeChat *self);
void eb_fake_chat_forget(EbFakeChat *self);

G_END_DECLS
