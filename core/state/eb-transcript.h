/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/state/eb-store.h"

G_BEGIN_DECLS

/** EB_TRANSCRIPT_MAX_EVENTS: kept of one session, the newest. */
#define EB_TRANSCRIPT_MAX_EVENTS 4000
/** EB_TRANSCRIPT_MAX_BODY: bytes of one event's JSON; a longer text is cut and says so. */
#define EB_TRANSCRIPT_MAX_BODY (32 * 1024)
/** EB_TRANSCRIPT_MAX_PENDING: events of one session not yet written; further ones are counted and dropped. */
#define EB_TRANSCRIPT_MAX_PENDING 512

/**
 * EbTranscript: what was said and done in one session, written in batches. Everything given to it is masked already.
 */
#define EB_TYPE_TRANSCRIPT (eb_transcript_get_type())
G_DECLARE_FINAL_TYPE(EbTranscript, eb_transcript, EB, TRANSCRIPT, GObject)

EbTranscript *eb_transcript_new(EbStore *store, const char *session);
/** eb_transcript_add: @kind: "prompt" or a kind of post; @text: (nullable); @data: (nullable) (transfer none) */
void eb_transcript_add(EbTranscript *self, guint turn, const char *kind, const char *text, JsonObject *data);
/** eb_transcript_flush: hands everything to the store now. */
void eb_transcript_flush(EbTranscript *self);

/**
 * eb_transcript_withdraw: a person took @message_id back: the prompt that has it in data.message keeps its place, its words
 * go. A failure is logged.
 */
void eb_transcript_withdraw(EbStore *store, const char *session, const char *message_id);

/** eb_transcript_read_async: all events of @session, oldest first. */
void eb_transcript_read_async(EbStore *store, const char *session, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data);
/** eb_transcript_read_finish: (transfer full) (nullable) (element-type JsonNode) */
GPtrArray *eb_transcript_read_finish(EbStore *store, GAsyncResult *result, GError **error);

G_END_DECLS
