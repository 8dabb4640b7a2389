/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbAgentFile: a file placed in the agent's HOME by the launcher before each start. */
typedef struct {
    char *path; /* relative to HOME, without "." and ".." */
    guint mode;
    char *content; /* template, see eb_agent_profile_expand() */
    char *dialect; /* (nullable): only when this one is spoken */
} EbAgentFile;

void eb_agent_file_free(EbAgentFile *file);

/** EbModelVia: how the model is chosen. */
typedef enum {
    EB_MODEL_VIA_ENV = 0,      /* ${model} in env or files */
    EB_MODEL_VIA_CONFIG = 1,   /* ACP config option of category "model", else session/set_model */
    EB_MODEL_VIA_ARGUMENT = 2, /* model_argument = ["-m", "${model}"] appended to the command */
} EbModelVia;

/** EbAgentProfile: how one agent is run; data/agents/NAME.toml, changed by [agent.NAME]. */
typedef struct {
    int ref_count;
    char *name;
    char *title;
    char **command;
    char *npm;               /* (nullable): pins.toml entry [npm.NAME] it is installed from */
    char **dialects;         /* preferred first: "openai", "openai-responses", "anthropic", "gemini" */
    GHashTable *env;         /* (utf8 -> utf8 template) given for every dialect */
    GHashTable *dialect_env; /* (utf8 dialect -> GHashTable of env templates) */
    GPtrArray *files;        /* (element-type EbAgentFile) */
    char **unset;            /* names that must never be present */
    char *default_model;     /* (nullable) */
    EbModelVia model_via;
    char **model_argument;
    guint64 min_memory; /* bytes; below it the start is refused */
    guint min_pids;
    guint64 start_timeout_ms;        /* initialize + session/new */
    guint64 settle_ms;               /* from a turn's end to closing stdin: its history is written behind the answer */
    guint64 eof_ms;                  /* from closing stdin to SIGTERM */
    guint64 term_ms;                 /* from SIGTERM to the end of the whole tree */
    gboolean load_after_turn_unsafe; /* gemini-cli#28775: no session/load within a minute of a turn */
} EbAgentProfile;

EbAgentProfile *eb_agent_profile_ref(EbAgentProfile *self);
void eb_agent_profile_unref(EbAgentProfile *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbAgentProfile, eb_agent_profile_unref)

/** EB_AGENT_MEMORY_FLOOR: no real agent lives in less (some hang instead of failing); profiles may only ask for more. */
#define EB_AGENT_MEMORY_FLOOR ((guint64)1024 * 1024 * 1024)

/**
 * eb_agent_profile_from_section: (transfer full) (nullable): reads a profile's table:
 *
 *   title, command, npm, dialects, unset, default_model, model_via ("env", "config", "argument"), model_argument,
 *   min_memory, min_pids, start_timeout, settle, eof, term, load_after_turn_unsafe
 *   [env]              variables for every dialect
 *   [dialect.NAME]     variables for one dialect
 *   [[file]]           path, mode (octal text, default "0600"), content, dialect
 *
 * All problems are in one EB_ERROR_CONFIG, one a line, each with file and line. Templates are checked here, so that a
 * misspelt ${name} is found when the configuration is read.
 */
EbAgentProfile *eb_agent_profile_from_section(const char *name, EbConfigSection *section, GError **error);

/** eb_agent_profile_choose_dialect: (transfer none) (nullable): first dialect a provider of @provider_kind speaks. */
const char *eb_agent_profile_choose_dialect(EbAgentProfile *self, const char *provider_kind);

/**
 * EbAgentVars: what templates may name: ${base_url} (http://127.0.0.1:PORT/provider/NAME), ${nonce}, ${model},
 * ${provider}, ${home}, ${workspace}. ${name?} is empty when there is none; "$${" is a literal "${". An unknown name is
 * an error. Templates become JSON and TOML, so a value with quotes, backslashes or control characters is refused.
 */
typedef struct {
    const char *base_url;  /* (nullable): no provider is routed */
    const char *nonce;     /* (nullable) */
    const char *model;     /* (nullable): the profile's default_model stands in for it */
    const char *provider;  /* (nullable) */
    const char *home;      /* (nullable) */
    const char *workspace; /* (nullable) */
} EbAgentVars;

/** eb_agent_profile_expand: (transfer full) (nullable): EB_ERROR_CONFIG "agent.no-value" for a name without value. */
char *eb_agent_profile_expand(const char *text, const EbAgentVars *vars, GError **error);

/**
 * eb_agent_profile_build_env: (transfer full) (nullable) (element-type utf8 utf8): for @dialect (nullable).
 *
 * A variable whose template names the base URL, nonce or provider of a session without one, or that comes out empty,
 * is left out: half a setting is worse than none. A missing model is EB_ERROR_CONFIG "agent.no-model" when a dialect
 * is spoken.
 */
GHashTable *eb_agent_profile_build_env(EbAgentProfile *self, const char *dialect, const EbAgentVars *vars,
                                       GError **error);
/** eb_agent_profile_build_files: (transfer full) (nullable) (element-type EbAgentFile): contents expanded, those of
 *  other dialects left out; the same rules as for variables. */
GPtrArray *eb_agent_profile_build_files(EbAgentProfile *self, const char *dialect, const EbAgentVars *vars,
                                        GError **error);
/** eb_agent_profile_build_command: (transfer full) (nullable) (array zero-terminated=1): with the model's argument when
 *  there is a model and it is given that way. */
char **eb_agent_profile_build_command(EbAgentProfile *self, const EbAgentVars *vars, GError **error);

G_END_DECLS
