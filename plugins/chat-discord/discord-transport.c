/* SPDX-License-Identifier: MIT */
#include "discord-transport-private.h"

#include "discord-post.h"
#include "discord-text.h"

#include <string.h>

#define EDIT_INTERVAL_MS 1500

static void discord_transport_iface_init(EbChatTransportInterface *iface);
G_DEFINE_FINAL_TYPE_WITH_CODE(DiscordTransport, discord_transport, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CHAT_TRANSPORT, discord_transport_iface_init))

/* --- views --- */

const char *
discord_transport_place(DiscordTransport *self, const char *thread)
{
    /* The core's names for the channel itself are none of Discord's. */
    return discord_is_snowflake(thread) ? thread : self->config->channel_id;
}

void
discord_transport_set_elsewhere(DiscordTransport *self, const char *thread, GError **error)
{
    eb_set_error(error, EB_ERROR_NOT_FOUND, "discord.thread-elsewhere",
                 "thread %s is none of channel %s, or cannot be seen", thread, self->config->channel_id);
}

static void
on_view_gone(DiscordView *view, const char *state, DiscordTransport *self)
{
    GHashTableIter iter;
    gpointer key, value;
    g_autofree char *place = NULL;

    g_hash_table_iter_init(&iter, self->views);
    while (place == NULL && g_hash_table_iter_next(&iter, &key, &value))
        if (value == view)
            place = g_strdup(key);
    if (place == NULL)
        return;
    if (strcmp(place, self->config->channel_id) == 0) {
        discord_transport_check_soon(self, 0);
        return;
    }
    if (strcmp(state, "deleted") == 0)
        discord_threads_remove(self->threads, place);
    discord_transport_note_gone(self, place, state);
}

static void
drop_idle_views(DiscordTransport *self)
{
    GHashTableIter iter;
    gpointer view;

    g_hash_table_iter_init(&iter, self->views);
    while (g_hash_table_iter_next(&iter, NULL, &view))
        if (discord_view_is_idle(view))
            g_hash_table_iter_remove(&iter);
}

static void
view_release(gpointer view)
{
    g_signal_handlers_disconnect_matched(view, G_SIGNAL_MATCH_FUNC, 0, 0, NULL, (gpointer)on_view_gone, NULL);
    g_object_unref(view);
}

DiscordView *
discord_transport_view(DiscordTransport *self, const char *thread, GError **error)
{
    const char *place = discord_transport_place(self, thread);
    DiscordView *view = g_hash_table_lookup(self->views, place);
    const char *state = g_hash_table_lookup(self->gone, place);

    if (view != NULL)
        return view;
    if (self->rest == NULL || self->failed) {
        eb_set_error(error, EB_ERROR_UNAVAILABLE, "discord.not-started", "the connection to Discord is not there");
        return NULL;
    }
    if (discord_threads_place(self->threads, place) == DISCORD_PLACE_OTHER) {
        discord_transport_set_elsewhere(self, place, error);
        return NULL;
    }
    if (state != NULL) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "discord.thread-gone", "thread %s is %s", place, state);
        return NULL;
    }
    if (g_hash_table_size(self->views) >= DISCORD_TRANSPORT_MAX_VIEWS)
        drop_idle_views(self);
    if (g_hash_table_size(self->views) >= DISCORD_TRANSPORT_MAX_VIEWS) {
        eb_set_error(error, EB_ERROR_QUOTA, "discord.threads", "%d threads are written to already",
                     DISCORD_TRANSPORT_MAX_VIEWS);
        return NULL;
    }
    view = discord_view_new(self->rest, place);
    g_signal_connect(view, "gone", G_CALLBACK(on_view_gone), self);
    g_hash_table_insert(self->views, g_strdup(place), view);
    return view;
}

/* --- the interface --- */

static EbChatCaps
get_caps(EbChatTransport *transport, EbChatLimits *limits)
{
    limits->max_text_units = DISCORD_POST_MAX_TEXT;
    limits->edit_interval_ms = EDIT_INTERVAL_MS;
    limits->prepare = discord_text_prepare;
    limits->max_file_bytes = DISCORD_POST_MAX_FILE_BYTES;
    limits->max_files = DISCORD_POST_MAX_FILES;
    limits->patient = TRUE;
    return EB_CHAT_CAP_EDIT | EB_CHAT_CAP_THREADS | EB_CHAT_CAP_REACTIONS | EB_CHAT_CAP_HISTORY | EB_CHAT_CAP_FILES |
           EB_CHAT_CAP_FETCH | EB_CHAT_CAP_COMMANDS | EB_CHAT_CAP_BUSY;
}

static gboolean
on_attached(gpointer user_data)
{
    g_autoptr(DiscordTransport) self = g_object_ref(user_data);

    discord_clear_source(&self->attach_idle);
    discord_transport_release(self);
    if (self->rest != NULL)
        discord_transport_offer_commands(self);
    return G_SOURCE_REMOVE;
}

static const EbChatPolicy *
attach(EbChatTransport *transport, const EbChatCommand *commands, gsize n_commands)
{
    DiscordTransport *self = DISCORD_TRANSPORT(transport);

    g_return_val_if_fail(self->attach_idle == NULL && !self->attached, &self->config->policy);
    self->commands = commands;
    self->n_commands = n_commands;
    /* Whoever attaches first learns who may do what, then what is going on. */
    self->attach_idle = g_idle_source_new();
    g_source_set_callback(self->attach_idle, on_attached, self, NULL);
    g_source_attach(self->attach_idle, NULL);
    return &self->config->policy;
}

static char *
finish_text(EbChatTransport *transport, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, transport), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

static gboolean
finish_truth(EbChatTransport *transport, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, transport), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

static GPtrArray *
finish_list(EbChatTransport *transport, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, transport), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

static GBytes *
finish_bytes(EbChatTransport *transport, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, transport), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
discord_transport_iface_init(EbChatTransportInterface *iface)
{
    iface->get_caps = get_caps;
    iface->attach = attach;
    iface->post_async = discord_transport_post_async;
    iface->post_finish = finish_text;
    iface->ask_async = discord_transport_ask_async;
    iface->ask_finish = discord_transport_ask_finish;
    iface->react_async = discord_transport_react_async;
    iface->react_finish = finish_truth;
    iface->open_thread_async = discord_transport_open_thread_async;
    iface->open_thread_finish = finish_text;
    iface->close_thread_async = discord_transport_close_thread_async;
    iface->close_thread_finish = finish_truth;
    iface->read_back_async = discord_transport_read_back_async;
    iface->read_back_finish = finish_list;
    iface->fetch_async = discord_transport_fetch_async;
    iface->fetch_finish = finish_bytes;
}

static void
discord_transport_dispose(GObject *object)
{
    DiscordTransport *self = DISCORD_TRANSPORT(object);
    GObject *const parts[] = {G_OBJECT(self->gateway), G_OBJECT(self->rest), G_OBJECT(self->ask),
                              G_OBJECT(self->interactions)};

    self->stopping = TRUE;
    discord_clear_source(&self->check_timer);
    discord_clear_source(&self->start_timer);
    discord_clear_source(&self->attach_idle);
    g_cancellable_cancel(self->cancellable);
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++)
        if (parts[i] != NULL)
            g_signal_handlers_disconnect_by_data(parts[i], self);
    if (self->rest != NULL)
        discord_transport_close_rest(self);
    g_hash_table_remove_all(self->views);
    G_OBJECT_CLASS(discord_transport_parent_class)->dispose(object);
}

static void
discord_transport_finalize(GObject *object)
{
    DiscordTransport *self = DISCORD_TRANSPORT(object);

    g_hash_table_unref(self->views);
    g_hash_table_unref(self->gone);
    g_hash_table_unref(self->unknown);
    g_hash_table_unref(self->last_edits);
    g_ptr_array_unref(self->opening);
    discord_transport_clear_held(self);
    g_clear_object(&self->gateway);
    g_clear_object(&self->interactions);
    g_clear_object(&self->ask);
    g_clear_object(&self->reactions);
    g_clear_object(&self->rest);
    g_clear_pointer(&self->site, discord_site_free);
    g_clear_pointer(&self->token, eb_secret_unref);
    g_clear_pointer(&self->threads, discord_threads_free);
    g_object_unref(self->cancellable);
    g_free(self->state_path);
    g_free(self->user_id);
    g_free(self->application_id);
    g_free(self->guild_id);
    g_free(self->guild_absent);
    g_free(self->down_why);
    g_free(self->amiss);
    G_OBJECT_CLASS(discord_transport_parent_class)->finalize(object);
}

static void
discord_transport_class_init(DiscordTransportClass *klass)
{
    G_OBJECT_CLASS(klass)->dispose = discord_transport_dispose;
    G_OBJECT_CLASS(klass)->finalize = discord_transport_finalize;
}

static void
discord_transport_init(DiscordTransport *self)
{
    self->views = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, view_release);
    self->gone = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->unknown = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->last_edits = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->opening = g_ptr_array_new();
    self->cancellable = g_cancellable_new();
    self->start_ms = DISCORD_TRANSPORT_START_MS;
    g_queue_init(&self->held);
}

DiscordTransport *
discord_transport_new(const DiscordConfig *config, const char *state_path)
{
    DiscordTransport *self = g_object_new(DISCORD_TYPE_TRANSPORT, NULL);

    self->config = config;
    self->state_path = g_strdup(state_path);
    self->threads = discord_threads_new(config->channel_id);
    return self;
}
