/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/*
 * The model stand-in: a small server that speaks the four dialects of model providers, strictly, and answers by a
 * script in the prompt (or by a friendly default). For the demo without a key and for tests.
 */

/** StandinTool: a tool the agent offered in its request. */
typedef struct {
    char *name;
    JsonObject *schema; /* (nullable): JSON schema of its arguments */
} StandinTool;

/** StandinRequest: what the four dialects say in common. */
typedef struct {
    char *model;
    gboolean stream;
    GPtrArray *tools;  /* (element-type StandinTool) */
    GPtrArray *users;  /* (element-type utf8): texts of the user's messages, oldest first */
    guint results;     /* tool results since the last of them */
    char *last_result; /* (nullable) */
    gsize bytes;       /* of the body, for usage figures */
} StandinRequest;

StandinRequest *standin_request_new(void);
void standin_request_free(StandinRequest *self);
/** standin_request_add_user: a message of the user: tool results before it are of an earlier prompt. */
void standin_request_add_user(StandinRequest *self, const char *text);
void standin_request_add_result(StandinRequest *self, const char *text);
void standin_request_add_tool(StandinRequest *self, const char *name, JsonObject *schema);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StandinRequest, standin_request_free)

/** StandinReply: what the model does in this round. */
typedef struct {
    char *think;      /* (nullable) */
    char *text;       /* (nullable) */
    char *tool;       /* (nullable): a call, in the agent's own terms */
    JsonObject *args; /* (nullable) */
    guint slow_ms;    /* between two pieces of the text */
    guint status;     /* 0, or an HTTP error to answer with */
    gboolean cut;     /* the connection breaks in the middle */
    guint serial;     /* makes ids unique */
} StandinReply;

void standin_reply_free(StandinReply *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StandinReply, standin_reply_free)

/** standin_script_run: (transfer full): @root: directory that relative paths of the script are below. */
StandinReply *standin_script_run(const StandinRequest *request, const char *root);
/** standin_tool_write, standin_tool_shell: fill @reply with a call of the agent's own tool; FALSE when it has none. */
gboolean standin_tool_write(const StandinRequest *request, StandinReply *reply, const char *path, const char *content);
gboolean standin_tool_shell(const StandinRequest *request, StandinReply *reply, const char *command);

/** StandinPieces: parts of a streamed body; a NULL piece is a pause of slow_ms. */
typedef GPtrArray StandinPieces;
/** standin_pieces_event: appends one server-sent event; @name: (nullable); @data: (transfer full). */
void standin_pieces_event(StandinPieces *pieces, const char *name, JsonObject *data);
void standin_pieces_pause(StandinPieces *pieces);
/** standin_split_text: (transfer full): words with what follows them when slow, else the whole. */
char **standin_split_text(const StandinReply *reply);
/** standin_json_text: (transfer full) */
char *standin_json_text(JsonObject *object);

/** StandinDialect: one way of talking to a model. */
typedef struct {
    const char *name;
    /** decode: FALSE with a message when the body is not what the real provider takes. */
    gboolean (*decode)(JsonObject *body, StandinRequest *request, GError **error);
    /** stream: the pieces of a streamed answer. */
    void (*stream)(const StandinRequest *request, const StandinReply *reply, StandinPieces *pieces);
    /** whole: (transfer full): the answer in one. */
    JsonObject *(*whole)(const StandinRequest *request, const StandinReply *reply);
    /** error_body: (transfer full) */
    JsonObject *(*error_body)(guint status, const char *message);
} StandinDialect;

extern const StandinDialect standin_openai_chat;
extern const StandinDialect standin_openai_responses;
extern const StandinDialect standin_anthropic;
extern const StandinDialect standin_gemini;

G_END_DECLS
