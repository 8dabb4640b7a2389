/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_REDACT_MIN_BYTES: shorter secrets are not looked for: they would shred ordinary text. */
#define EB_REDACT_MIN_BYTES 8
/** EB_REDACT_MAX_SECRETS: of one set, with the configured ones; further ones are refused by eb_redact_set_add(). */
#define EB_REDACT_MAX_SECRETS 128
/** EB_REDACT_MAX_CONFIGURED: of the process. */
#define EB_REDACT_MAX_CONFIGURED 64

/**
 * EbRedactSet: the secrets to mask, each in the shapes an agent would show it by accident: as it is, backwards, line by
 * line when it has several, base64 (both alphabets, any alignment), hex, percent-encoded, JSON-escaped and UTF-16; also when a
 * program broke it over lines, with or without an indent. Damage control: an agent that wants to can find another
 * shape; what protects a key is that no guest has it.
 */
typedef struct _EbRedactSet EbRedactSet;
EbRedactSet *eb_redact_set_new(void);
/** eb_redact_set_copy: (transfer full): with the same secrets; @self: (nullable) */
EbRedactSet *eb_redact_set_copy(const EbRedactSet *self);
EbRedactSet *eb_redact_set_ref(EbRedactSet *self);
void eb_redact_set_unref(EbRedactSet *self);
/** eb_redact_set_add: (transfer none); twice is once. FALSE when too short or too many. */
gboolean eb_redact_set_add(EbRedactSet *self, EbSecret *secret);
/** eb_redact_set_mask: (transfer full): @text with "[label]" for every secret, and for half of one or more at its end,
 *  where somebody may have cut it; @length: -1 when NUL-terminated. */
char *eb_redact_set_mask(EbRedactSet *self, const char *text, gssize length);
/** eb_redact_set_mask_bytes: (transfer full): the same of what may be anything; @bytes itself when there is none in it. */
GBytes *eb_redact_set_mask_bytes(EbRedactSet *self, GBytes *bytes);
/**
 * eb_redact_set_watch: as eb_redact_set_add(), and @seen is called whenever the secret was masked, in whatever shape; one a set.
 * Not for copies of it. @seen: (nullable): NULL ends that
 */
gboolean eb_redact_set_watch(EbRedactSet *self, EbSecret *secret, void (*seen)(gpointer user_data), gpointer user_data);
/** eb_redact_set_find: is a secret in @bytes, whole and in any of its shapes? */
gboolean eb_redact_set_find(EbRedactSet *self, const char *bytes, gsize length);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbRedactSet, eb_redact_set_unref)

/**
 * eb_redact_add_configured: (transfer none): a secret of the service's own configuration: from now on every set has it,
 * also those that exist. Any thread. FALSE when too short or too many.
 */
gboolean eb_redact_add_configured(EbSecret *secret);

/**
 * EbRedactor: the same for a stream that comes in pieces: what may be the beginning of a secret is held back until more
 * is known. One for each stream; pieces are valid UTF-8 and so are the results.
 */
typedef struct _EbRedactor EbRedactor;
EbRedactor *eb_redactor_new(EbRedactSet *set);
void eb_redactor_free(EbRedactor *self);
/** eb_redactor_feed: (transfer full): what may be shown now, maybe "". */
char *eb_redactor_feed(EbRedactor *self, const char *text);
/** eb_redactor_flush: (transfer full): the rest; half a secret or more is masked as if it were whole. */
char *eb_redactor_flush(EbRedactor *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbRedactor, eb_redactor_free)

G_END_DECLS
