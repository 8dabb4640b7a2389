/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** DcCredentials: what the stores said of what they have, as far as the doctor could ask them; never a value. */
typedef struct {
    JsonNode *list; /* (owned) (nullable): they were not asked, or none of them could be read */
    char *problem;  /* (owned) (nullable): why the list is missing, or not whole */
    gint64 now;     /* unix seconds */
} DcCredentials;

/** DC_EXPIRY_SOON: seconds before its end that a credential is spoken of. */
#define DC_EXPIRY_SOON (7 * 24 * 60 * 60)

/** dc_credentials_read: from the settings "credentials.list" and "credentials.problem". */
void dc_credentials_read(EbConfigSection *settings, DcCredentials *credentials);
void dc_credentials_clear(DcCredentials *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(DcCredentials, dc_credentials_clear)

/** dc_credentials_find: (transfer none) (nullable): the one that is used under @name. */
JsonObject *dc_credentials_find(const DcCredentials *self, const char *name);
/** dc_credential_end: unix seconds; 0 = it does not end */
gint64 dc_credential_end(JsonObject *credential);
/** dc_credential_is_over: */
gboolean dc_credential_is_over(const DcCredentials *self, JsonObject *credential);

G_END_DECLS
