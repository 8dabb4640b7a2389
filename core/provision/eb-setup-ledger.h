/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbSetupLedger: what setup made on this host and what stood there before, so that it can be taken back, and nothing
 * else. An entry is written before its change: an interrupt leaves an entry of something that may not exist, never
 * something that no entry knows of.
 */
typedef struct _EbSetupLedger EbSetupLedger;

/** EbLedgerEntry: one change. (kind, name) is unique in a ledger. */
typedef struct {
    char *step;   /* id of the step that made it */
    char *kind;   /* what it is, a word: "file", "directory", "user", "unit" ... */
    char *name;   /* which one: a path, a name */
    char *before; /* (nullable): what stood there before; NULL = nothing. Never a secret. */
    char *made;   /* (nullable): what setup put there, to tell it from what others put there later. Never a secret. */
} EbLedgerEntry;

/** EB_SETUP_LEDGER_MAX_BYTES, _MAX_ENTRIES, _MAX_STRING: bounds of a ledger, a whole setup takes a tenth of them. */
#define EB_SETUP_LEDGER_MAX_BYTES (1024 * 1024)
#define EB_SETUP_LEDGER_MAX_ENTRIES 1000
#define EB_SETUP_LEDGER_MAX_STRING (64 * 1024)

/* --- in memory --- */

EbSetupLedger *eb_setup_ledger_new(void);
void eb_setup_ledger_free(EbSetupLedger *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbSetupLedger, eb_setup_ledger_free)

/** eb_setup_ledger_parse: (transfer full) (nullable): EB_ERROR_INTEGRITY "ledger.text": not what setup writes. */
EbSetupLedger *eb_setup_ledger_parse(const char *text, gsize length, GError **error);
/** eb_setup_ledger_to_text: (transfer full): one entry a line, for people too. */
char *eb_setup_ledger_to_text(EbSetupLedger *self);

/**
 * eb_setup_ledger_add: puts an entry at the end. When (kind, name) is there already its @before stays, which is older
 * and so nearer to the host as it was, and @made is replaced.
 *
 * @changed: (out) (optional): the ledger differs now
 *
 * Returns: FALSE with EB_ERROR_QUOTA "ledger.full".
 */
gboolean eb_setup_ledger_add(EbSetupLedger *self, const char *step, const char *kind, const char *name,
                             const char *before, const char *made, gboolean *changed, GError **error);
/** eb_setup_ledger_find: (nullable) (transfer none) */
const EbLedgerEntry *eb_setup_ledger_find(EbSetupLedger *self, const char *kind, const char *name);
/** eb_setup_ledger_list: (transfer container) (element-type EbLedgerEntry): of @step (NULL: all), newest first. */
GPtrArray *eb_setup_ledger_list(EbSetupLedger *self, const char *step);
/** eb_setup_ledger_remove: FALSE when there was none. */
gboolean eb_setup_ledger_remove(EbSetupLedger *self, const char *kind, const char *name);
guint eb_setup_ledger_get_length(EbSetupLedger *self);

/* --- on disk --- */

/**
 * eb_setup_ledger_load: (transfer full) (nullable): the ledger in @dir; a missing one is empty.
 *
 * Directory and file must belong to the user who asks (root, for setup) and be writable by no other: what is in there
 * is acted on. EB_ERROR_INTEGRITY "ledger.owner" otherwise; EB_ERROR_DENIED when this user may not look.
 */
EbSetupLedger *eb_setup_ledger_load(const char *dir, GError **error);
/**
 * eb_setup_ledger_save: replaces the file in @dir as a whole and waits until it is on disk; makes @dir (0700) when
 * missing. An empty ledger is removed, and @dir with it.
 */
gboolean eb_setup_ledger_save(EbSetupLedger *self, const char *dir, GError **error);

G_END_DECLS
