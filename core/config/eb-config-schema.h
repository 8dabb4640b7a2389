/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/config/eb-config-file.h"

G_BEGIN_DECLS

/** EbConfigKind: what a value is; sizes and durations are texts with a unit, or a number of bytes. */
typedef enum {
    EB_KIND_TEXT = 0,
    EB_KIND_INT,
    EB_KIND_BOOL,
    EB_KIND_TEXTS,
    EB_KIND_INTS,
    EB_KIND_SIZE,     /* min and max in bytes */
    EB_KIND_DURATION, /* min and max in milliseconds */
    EB_KIND_SECRET,   /* "cred:NAME" */
} EbConfigKind;

/** EbConfigTextCheck: (transfer full) (nullable): what is wrong with @text, NULL when nothing is. */
typedef char *(*EbConfigTextCheck)(const char *text);

/** EbConfigKey: one known key. The table of them is the source of checks, defaults, `config show` and the schema. */
typedef struct {
    const char *table;    /* "session"; "provider.*": in each table below */
    const char *key;      /* name within the table */
    EbConfigKind kind;    /* type */
    const char *fallback; /* default as TOML, NULL = none; for size and duration without quotes */
    guint64 min, max;     /* for INT, INTS, SIZE, DURATION; for TEXTS: most entries */
    const char *choices;  /* (nullable): "a|b|c" for TEXT */
    EbConfigTextCheck check;
    gboolean required;
    const char *doc;
} EbConfigKey;

/** eb_config_keys: (transfer none): ends with a NULL table. */
const EbConfigKey *eb_config_keys(void);
/** eb_config_key_find: (nullable): @table as in EbConfigKey. */
const EbConfigKey *eb_config_key_find(const char *table, const char *key);

/**
 * eb_config_schema_check: every known table of @root against the keys: unknown keys with the nearest name, types,
 * ranges, choices, literal secrets. [plugin.*] and [agent.*] are checked by whom they belong to, for literal secrets
 * alone here.
 */
void eb_config_schema_check(EbConfigSection *root, EbConfigProblems *problems);

/** eb_config_key_is_secret: does a key of this name hold a secret by custom ("token", "api_key", ...)? */
gboolean eb_config_key_is_secret(const char *key);
/** eb_config_text_is_secret: does this text have the shape of a well-known kind of token? */
gboolean eb_config_text_is_secret(const char *text);
/**
 * eb_config_bot_of_token: (transfer full) (nullable): the id of the bot that a chat token is for: its first part, in
 * base64, up to a dot. No secret itself; NULL for a text that has no such part.
 */
char *eb_config_bot_of_token(const char *token);

/** eb_config_append_quoted: @text as a basic string of TOML 1.0, quotes included. */
void eb_config_append_quoted(GString *out, const char *text);

/* Text checks used by the table (core/config/eb-config-text.c). */
char *eb_config_check_account(const char *text);
char *eb_config_check_name(const char *text);
char *eb_config_check_path(const char *text);
char *eb_config_check_degraded_id(const char *text);
char *eb_config_check_egress_host(const char *text);
char *eb_config_check_base_url(const char *text);
char *eb_config_check_money(const char *text);
char *eb_config_check_currency(const char *text);
char *eb_config_check_price(const char *text);

G_END_DECLS
