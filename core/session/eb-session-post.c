/* SPDX-License-Identifier: MIT */
/* What a session says in its thread. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-session-private.h"

#include "core/render/eb-done-line.h"

/* The transcript keeps a text the agent says in one go as one event. */
static void
keep(EbSession *self, const EbChatPost *post)
{
    if (post->kind == EB_CHAT_POST_TEXT) {
        if (self->said->len < EB_TRANSCRIPT_MAX_BODY)
            g_string_append(self->said, post->text != NULL ? post->text : "");
        if (!post->final)
            return;
        eb_transcript_add(self->transcript, self->record->turns, "text", self->said->str, NULL);
        g_string_truncate(self->said, 0);
        return;
    }
    if (post->kind == EB_CHAT_POST_THOUGHT || post->kind == EB_CHAT_POST_BUSY)
        return;
    eb_transcript_add(self->transcript, self->record->turns, eb_chat_post_kind_to_string(post->kind), post->text,
                      post->data);
}

void
eb_session_post(EbSession *self, EbChatPost *post)
{
    keep(self, post);
    eb_coalescer_push(self->coalescer, post);
}

void
eb_session_post_text(EbSession *self, EbChatPostKind kind, const char *text)
{
    EbRedactSet *secrets = self->guest != NULL ? self->guest->secrets : self->parts->secrets;
    g_autofree char *masked = eb_redact_set_mask(secrets, text, -1);
    EbChatPost *post = eb_chat_post_new(self->record->thread, kind, masked);
    post->final = TRUE;
    eb_session_post(self, post);
}

static int
exit_code_of(const GError *error)
{
    switch (error->code) {
    case EB_ERROR_CONFIG:
    case EB_ERROR_INVALID:
    case EB_ERROR_UNAUTHENTICATED:
    case EB_ERROR_NOT_FOUND:
        return 2;
    case EB_ERROR_DEGRADED:
        return 3;
    case EB_ERROR_LOCKED:
        return 4;
    default:
        return 1;
    }
}

static void
describe_error(JsonObject *data, const GError *error)
{
    json_object_set_int_member(data, "code", error->code);
    if (eb_error_get_reason(error) != NULL)
        json_object_set_string_member(data, "reason", eb_error_get_reason(error));
    json_object_set_int_member(data, "exit", exit_code_of(error));
}

void
eb_session_post_error(EbSession *self, const GError *error)
{
    EbRedactSet *secrets = self->guest != NULL ? self->guest->secrets : self->parts->secrets;
    g_autofree char *masked = eb_redact_set_mask(secrets, error->message, -1);
    EbChatPost *post = eb_chat_post_new(self->record->thread, EB_CHAT_POST_ERROR, masked);
    post->final = TRUE;
    post->data = json_object_new();
    describe_error(post->data, error);
    eb_session_post(self, post);
}

void
eb_session_post_position(EbSession *self, const char *what, guint position)
{
    g_autofree char *text = g_strdup_printf("waiting for a free %s, position %u", what, position);
    EbChatPost *post = eb_chat_post_new(self->record->thread, EB_CHAT_POST_NOTICE, text);
    post->key = g_strdup_printf("waiting-%s", what);
    post->data = json_object_new();
    json_object_set_int_member(post->data, "position", position);
    eb_session_post(self, post);
}

static guint64
span_ms(gint64 begin_us, gint64 end_us)
{
    return begin_us > 0 && end_us > begin_us ? (guint64)(end_us - begin_us) / 1000 : 0;
}

static void
copy_count(JsonObject *tokens, const char *member, JsonObject *usage, const char *field)
{
    gint64 count = eb_json_get_int(usage, field, -1);
    if (count >= 0)
        json_object_set_int_member(tokens, member, count);
}

/* What the turn cost: agents tell tokens of the turn in their answer, and context and money of the session meanwhile. */
static void
describe_usage(EbSession *self, JsonObject *data, JsonObject *usage)
{
    if (usage != NULL) {
        JsonObject *tokens = json_object_new();
        copy_count(tokens, "input", usage, "inputTokens");
        copy_count(tokens, "output", usage, "outputTokens");
        copy_count(tokens, "cached", usage, "cachedReadTokens");
        copy_count(tokens, "total", usage, "totalTokens");
        json_object_set_object_member(data, "tokens", tokens);
    }
    if (self->context_used >= 0) {
        JsonObject *context = json_object_new();
        json_object_set_int_member(context, "used", self->context_used);
        if (self->context_size > 0)
            json_object_set_int_member(context, "size", self->context_size);
        json_object_set_object_member(data, "context", context);
    }
    if (self->cost >= 0) {
        json_object_set_double_member(data, "cost", MAX(self->cost - MAX(self->cost_before, 0), 0));
        if (self->currency != NULL)
            json_object_set_string_member(data, "currency", self->currency);
    }
}

static JsonObject *
describe_times(EbSession *self, const EbTurnEnd *end)
{
    EbGuest *guest = self->guest;
    JsonObject *ms = json_object_new();
    guint64 guest_ms = guest != NULL ? span_ms(guest->begun_us, guest->guest_us) : 0;
    guint64 agent_ms = guest != NULL ? span_ms(guest->guest_us, guest->ready_us) : 0;
    json_object_set_int_member(ms, "guest", (gint64)guest_ms);
    json_object_set_int_member(ms, "agent", (gint64)agent_ms);
    json_object_set_int_member(ms, "turn", (gint64)end->turn_ms);
    if (end->wait_ms >= 0)
        json_object_set_int_member(ms, "wait", end->wait_ms);
    return ms;
}

void
eb_session_post_end(EbSession *self, const EbTurnEnd *end)
{
    EbRedactSet *secrets = self->guest != NULL ? self->guest->secrets : self->parts->secrets;
    g_autofree char *shown = eb_log_escape(end->stop_reason, -1, 80);
    EbChatPost *post = eb_chat_post_new(self->record->thread, EB_CHAT_POST_END, NULL);
    post->final = TRUE;
    post->data = json_object_new();
    json_object_set_string_member(post->data, "stop_reason", shown);
    if (end->state != NULL)
        json_object_set_string_member(post->data, "state", end->state);
    if (self->record->model != NULL) {
        g_autofree char *model = eb_redact_set_mask(secrets, self->record->model, -1);
        json_object_set_string_member(post->data, "model", model);
    }
    json_object_set_object_member(post->data, "ms", describe_times(self, end));
    describe_usage(self, post->data, end->usage);
    const char *who =
        end->prompt != NULL && end->prompt->author_id != NULL ? end->prompt->author_id : self->record->owner;
    if (who != NULL) {
        json_object_set_string_member(post->data, "who", who);
        post->notify = g_strdup(who);
    }
    if (end->error != NULL) {
        g_autofree char *masked = eb_redact_set_mask(secrets, end->error->message, -1);
        json_object_set_string_member(post->data, "error", masked);
        describe_error(post->data, end->error);
    }
    g_free(post->text);
    post->text = eb_done_line(post->data);
    eb_session_post(self, post);
}

void
eb_session_post_busy(EbSession *self, gboolean busy)
{
    if (self->busy == busy)
        return;
    self->busy = busy;
    if ((eb_chat_transport_get_caps(self->transport, NULL) & EB_CHAT_CAP_BUSY) == 0)
        return;
    EbChatPost *post = eb_chat_post_new(self->record->thread, EB_CHAT_POST_BUSY, "");
    post->final = TRUE;
    post->data = json_object_new();
    json_object_set_boolean_member(post->data, "busy", busy);
    eb_session_post(self, post);
}

void
eb_session_notice(EbSession *self, const char *text)
{
    eb_session_post_text(self, EB_CHAT_POST_NOTICE, text);
}

void
eb_session_post_guest(EbSession *self, EbGuest *guest, const char *state)
{
    EbChatPost *post = eb_chat_post_new(self->record->thread, EB_CHAT_POST_GUEST, "");
    post->key = g_strdup("guest");
    post->data = json_object_new();
    json_object_set_string_member(post->data, "project", self->record->project);
    json_object_set_string_member(post->data, "state", state);
    json_object_set_string_member(post->data, "instance", guest->instance);
    json_object_set_string_member(post->data, "origin", guest->origin);
    gint64 until_us = guest->guest_us > 0 ? guest->guest_us : g_get_monotonic_time();
    json_object_set_int_member(post->data, "ms", (gint64)span_ms(guest->begun_us, until_us));
    eb_session_post(self, post);
}

void
eb_session_post_ready(EbSession *self, gboolean fresh)
{
    EbGuest *guest = self->guest;
    EbChatPost *post = eb_chat_post_new(self->record->thread, EB_CHAT_POST_READY, "");
    post->data = json_object_new();
    json_object_set_string_member(post->data, "agent", guest->agent_name);
    json_object_set_string_member(post->data, "version", guest->agent_version);
    json_object_set_string_member(post->data, "session", self->record->id);
    json_object_set_string_member(post->data, "project", self->record->project);
    json_object_set_boolean_member(post->data, "continued", !fresh);
    if (guest->model != NULL)
        json_object_set_string_member(post->data, "model", guest->model);
    json_object_set_int_member(post->data, "ms", (gint64)span_ms(guest->guest_us, guest->ready_us));
    eb_session_post(self, post);
}
