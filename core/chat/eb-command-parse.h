/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/chat/eb-command-table.h"

G_BEGIN_DECLS

/** EbCommand: a command as somebody gave it. */
typedef struct {
    const EbCommandSpec *spec;
    char *values[EB_COMMAND_MAX_OPTIONS]; /* (nullable): by the options of @spec; of persons the bare id */
} EbCommand;
void eb_command_free(EbCommand *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbCommand, eb_command_free)

/** EbCommandParse: what a text is. */
typedef enum {
    EB_COMMAND_PARSE_NONE = 0,    /* no command: it does not begin with "!" */
    EB_COMMAND_PARSE_UNKNOWN = 1, /* begins with "!" and is none of ours: left alone */
    EB_COMMAND_PARSE_OK = 2,
    EB_COMMAND_PARSE_INVALID = 3, /* one of ours, given wrongly: the error says what to write */
} EbCommandParse;

/** eb_command_parse_text: @command: (out) (transfer full): set for _OK alone; @error: for _INVALID. */
EbCommandParse eb_command_parse_text(const char *text, EbCommand **command, GError **error);
/**
 * eb_command_parse_action: the same of the extra of an "action".
 * @extra: (nullable): {"command": NAME, "options": {NAME: TEXT}}
 */
EbCommandParse eb_command_parse_action(JsonObject *extra, EbCommand **command, GError **error);

/** eb_command_parse_person: (transfer full) (nullable): the id in "<@id>", "<@!id>" or "id"; 5 to 25 digits. */
char *eb_command_parse_person(const char *text);

G_END_DECLS
