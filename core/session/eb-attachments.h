/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-session-parts.h"

G_BEGIN_DECLS

/** EB_ATTACHMENTS_MAX: files of one message that are taken; each further one is refused by name. */
#define EB_ATTACHMENTS_MAX 4
/** EB_ATTACHMENTS_MAX_BYTES: of one file, as it is declared and as it is. */
#define EB_ATTACHMENTS_MAX_BYTES (5 * 1024 * 1024)
/** EB_ATTACHMENTS_MAX_TEXT: bytes of a pasted text that becomes the prompt itself; a longer one is a file. */
#define EB_ATTACHMENTS_MAX_TEXT (256 * 1024)
/** EB_ATTACHMENTS_FOLDER: where they are put in a project. */
#define EB_ATTACHMENTS_FOLDER "attachments"

/** EbAttachments: what became of the files of one message. All of it is still to be masked. */
typedef struct {
    char *text;          /* (nullable): a pasted text that is the prompt, as the message had none */
    char *lines;         /* (nullable): for the agent: which files are where, which are missing and why */
    JsonArray *blocks;   /* (nullable): ACP image blocks, in the order of the files */
    GPtrArray *refusals; /* (element-type utf8): a sentence for each file that was not taken, for the person */
} EbAttachments;
void eb_attachments_free(EbAttachments *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbAttachments, eb_attachments_free)

/**
 * eb_attachments_take_async: fetches the files of @message through @transport, one after the other, and puts them into
 * @project, which must be there. What happens to one file never keeps the others back.
 */
void eb_attachments_take_async(EbSessionParts *parts, const char *project, EbChatTransport *transport,
                               EbChatMessage *message, GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data);
/** eb_attachments_take_finish: (transfer full) (nullable): NULL only when cancelled */
EbAttachments *eb_attachments_take_finish(GAsyncResult *result, GError **error);

/**
 * eb_attachments_image_type: (transfer none) (nullable): the media type of @bytes when they begin like a PNG, JPEG, GIF or
 * WebP picture: what a model would refuse otherwise, whatever the file is called.
 */
const char *eb_attachments_image_type(GBytes *bytes);

G_END_DECLS
