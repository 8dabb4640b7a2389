/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/chat/eb-roles.h"

G_BEGIN_DECLS

/** EbCommandId: what a person can order; the order of the table. */
typedef enum {
    EB_COMMAND_HELP = 0,
    EB_COMMAND_STATUS,
    EB_COMMAND_STOP,
    EB_COMMAND_INTERRUPT,
    EB_COMMAND_STEER,
    EB_COMMAND_THEN,
    EB_COMMAND_RETRY,
    EB_COMMAND_QUEUE,
    EB_COMMAND_COMPACT,
    EB_COMMAND_MODEL,
    EB_COMMAND_AGENT,
    EB_COMMAND_ALLOW,
    EB_COMMAND_DENY,
    EB_COMMAND_GUESTS,
    EB_COMMAND_ALLOW_HOST,
    EB_COMMAND_DENY_HOST,
    EB_COMMAND_HOSTS,
    EB_COMMAND_LS,
    EB_COMMAND_CAT,
    EB_COMMAND_FILE,
    EB_COMMAND_PWD,
    EB_COMMAND_ASIDE,
    EB_COMMAND_N,
} EbCommandId;

/** EbCommandWhere: where it may be given. */
typedef enum {
    EB_COMMAND_IN_THREAD = 1 << 0,
    EB_COMMAND_IN_CHANNEL = 1 << 1,
    EB_COMMAND_ANYWHERE = EB_COMMAND_IN_THREAD | EB_COMMAND_IN_CHANNEL,
} EbCommandWhere;

/** EbCommandNeeds: what must be there. */
typedef enum {
    EB_COMMAND_NEEDS_NOTHING = 0,
    EB_COMMAND_NEEDS_SESSION = 1, /* one that runs or sleeps */
    EB_COMMAND_NEEDS_LIVE = 2,    /* one that runs */
} EbCommandNeeds;

/** EB_COMMAND_MAX_OPTIONS: of one command. */
#define EB_COMMAND_MAX_OPTIONS 2

/** EbCommandSpec: everything there is to know of a command: parser, roles, help, docs and slash form are made of it. */
typedef struct {
    EbCommandId id;
    const char *name; /* "stop"; "!!" for the aside, which is written !!! */
    const char *summary;
    const EbChatOption *options; /* as text: in this order, the last one takes the rest of the line */
    gsize n_options;
    EbRole who; /* the least role that may give it */
    EbCommandWhere where;
    EbCommandNeeds needs;
    const char *example;
    const char *more; /* (nullable): further words for help and docs */
} EbCommandSpec;

/** eb_command_table: (transfer none) (array length=n) */
const EbCommandSpec *eb_command_table(gsize *n);
const EbCommandSpec *eb_command_get(EbCommandId id);
/** eb_command_find: (nullable): @name: any case, need not be NUL-terminated */
const EbCommandSpec *eb_command_find(const char *name, gsize length);
/** eb_command_list_for_chat: (transfer none) (array length=n): for eb_chat_transport_attach(). */
const EbChatCommand *eb_command_list_for_chat(gsize *n);

/** eb_command_usage: (transfer full): "!allow PERSON" */
char *eb_command_usage(const EbCommandSpec *spec);
/** eb_command_help_all: (transfer full): what @role may give at @where, one line each. */
char *eb_command_help_all(EbRole role, EbCommandWhere where);
/** eb_command_help_one: (transfer full) */
char *eb_command_help_one(const EbCommandSpec *spec);
/** eb_command_to_markdown: (transfer full): docs/commands.md */
char *eb_command_to_markdown(void);

G_END_DECLS
