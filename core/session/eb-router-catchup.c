/* SPDX-License-Identifier: MIT */
/*
 * What was missed, in order and once.
 *
 * A place (the channel, a thread) that is read back is closed meanwhile: its live messages wait, so that what was said
 * before them comes before them, and its watermark stands still. Nothing that waits is in the journal yet, so a kill leaves
 * the watermark before all of it and the next run reads it back again.
 */
#define G_LOG_DOMAIN "eb-session"
#include "core/base/eb-source.h"
#include "core/session/eb-router-private.h"

/* One read; the transport may be waiting for its turn at the service. */
#define READ_DEADLINE_MS 120000
/* Doubled each time. */
#define RETRY_MS 1000
#define MAX_TRIES 3
/* After so many failures live messages go on, and what was missed is asked for once in a while. */
#define GIVE_UP_RETRY_MS 60000

typedef enum { PLACE_QUEUED, PLACE_BUSY, PLACE_WAITING, PLACE_GIVEN_UP } EbPlaceState;

typedef struct {
    EbCatchup *catchup; /* not owned */
    char *thread;       /* "" = the channel */
    EbPlaceState state;
    GQueue waiting;     /* (element-type EbChatMessage), at most EB_CATCHUP_MAX_WAITING */
    gboolean overflown; /* more came than may wait */
    gboolean again;     /* the connection came back while it was read */
    gboolean more;      /* there is another page */
    char *seen;         /* (nullable): the newest told of while it is closed */
    guint read;
    guint tries;
    gint64 begun_us;
    GCancellable *cancellable; /* of what is under way */
    GSource *timer;            /* deadline or retry */
} EbPlace;

struct _EbCatchup {
    EbRouter *router;       /* not owned */
    GHashTable *watermarks; /* utf8 thread or "" -> utf8 message, at most EB_JOURNAL_MAX_WATERMARKS */
    GHashTable *places;     /* utf8 thread or "" -> EbPlace: those that are closed or were given up */
    GQueue queue;           /* (element-type EbPlace) (not owned): PLACE_QUEUED */
    guint busy;             /* places in PLACE_BUSY, at most EB_CATCHUP_PARALLEL */
    gboolean begun;         /* the journal was read */
};

static void pump(EbCatchup *self);

static void
place_free(gpointer data)
{
    EbPlace *place = data;
    eb_clear_source(&place->timer);
    if (place->state == PLACE_BUSY)
        g_cancellable_cancel(place->cancellable);
    g_clear_object(&place->cancellable);
    g_queue_clear_full(&place->waiting, (GDestroyNotify)eb_chat_message_unref);
    g_free(place->seen);
    g_free(place->thread);
    g_free(place);
}

static const char *
thread_of(const EbPlace *place)
{
    return *place->thread != '\0' ? place->thread : NULL;
}

static EbPlace *
find_place(EbCatchup *self, const char *thread)
{
    return g_hash_table_lookup(self->places, thread != NULL ? thread : "");
}

static EbPlace *
close_place(EbCatchup *self, const char *thread)
{
    EbPlace *place = find_place(self, thread);
    if (place == NULL) {
        place = g_new0(EbPlace, 1);
        place->catchup = self;
        place->thread = g_strdup(thread != NULL ? thread : "");
        place->begun_us = g_get_monotonic_time();
        g_queue_init(&place->waiting);
        g_hash_table_replace(self->places, place->thread, place);
    } else if (place->state != PLACE_GIVEN_UP) {
        place->again = place->state != PLACE_QUEUED;
        return place;
    }
    eb_clear_source(&place->timer);
    place->state = PLACE_QUEUED;
    place->tries = place->read = 0;
    g_queue_push_tail(&self->queue, place);
    return place;
}

static void
set_watermark(EbCatchup *self, const char *thread, const char *message_id)
{
    EbRouter *router = self->router;
    const char *key = thread != NULL ? thread : "";
    if (g_strcmp0(g_hash_table_lookup(self->watermarks, key), message_id) == 0)
        return;
    if (!g_hash_table_contains(self->watermarks, key) &&
        g_hash_table_size(self->watermarks) >= EB_JOURNAL_MAX_WATERMARKS)
        return;
    g_hash_table_replace(self->watermarks, g_strdup(key), g_strdup(message_id));
    /* The store keeps the order of calls: what is before the mark is in the journal before it. */
    eb_journal_set_watermark(router->manager->parts->store, router->name, thread, message_id);
}

/* --- live --- */

/* Before the journal was read every place is closed: nobody knows yet what is missing. */
static EbPlace *
find_or_close_early(EbCatchup *self, const char *thread)
{
    EbPlace *place = find_place(self, thread);
    if (place == NULL && !self->begun && g_hash_table_size(self->places) < EB_CATCHUP_MAX_THREADS)
        place = close_place(self, thread);
    return place;
}

gboolean
eb_catchup_hold(EbCatchup *self, EbChatMessage *message)
{
    EbPlace *place = find_or_close_early(self, message->thread);
    if (place == NULL || place->state == PLACE_GIVEN_UP)
        return FALSE;
    if (place->waiting.length < EB_CATCHUP_MAX_WAITING)
        g_queue_push_tail(&place->waiting, eb_chat_message_ref(message));
    else
        place->overflown = TRUE; /* not lost: it is behind the watermark */
    return TRUE;
}

void
eb_catchup_seen(EbCatchup *self, const char *thread, const char *message_id)
{
    EbPlace *place = find_or_close_early(self, thread);
    if (place != NULL) {
        g_free(place->seen);
        place->seen = g_strdup(message_id);
    } else if (self->begun) {
        set_watermark(self, thread, message_id);
    }
}

void
eb_catchup_thread_opened(EbCatchup *self, const char *thread, const char *message_id)
{
    if (g_hash_table_contains(self->watermarks, thread))
        return;
    set_watermark(self, thread, message_id);
    /* What people wrote there before we knew of it: the answer may have taken its time, or a run have died over it. */
    close_place(self, thread);
    pump(self);
}

void
eb_catchup_forget(EbCatchup *self, const char *thread)
{
    EbPlace *place = find_place(self, thread);
    if (place != NULL) {
        if (place->state == PLACE_BUSY)
            self->busy--;
        g_queue_remove(&self->queue, place);
        g_hash_table_remove(self->places, place->thread);
    }
    if (g_hash_table_remove(self->watermarks, thread))
        eb_journal_forget_watermark(self->router->manager->parts->store, self->router->name, thread);
    pump(self);
}

gboolean
eb_catchup_change_waiting(EbCatchup *self, const char *thread, const char *message_id, const char *text)
{
    EbPlace *place = find_place(self, thread);
    for (GList *link = place != NULL ? place->waiting.head : NULL; link != NULL; link = link->next) {
        EbChatMessage *message = link->data;
        if (g_strcmp0(message->id, message_id) != 0)
            continue;
        if (text != NULL) {
            g_free(message->text);
            message->text = g_strdup(text);
        } else {
            g_queue_delete_link(&place->waiting, link);
            eb_chat_message_unref(message);
        }
        return TRUE;
    }
    return FALSE;
}

/* --- the end of one place --- */

static void
release_waiting(EbCatchup *self, EbPlace *place)
{
    EbChatMessage *message;
    while ((message = g_queue_pop_head(&place->waiting)) != NULL) {
        eb_router_take(self->router, message);
        eb_chat_message_unref(message);
    }
}

static void
open_place(EbCatchup *self, EbPlace *place)
{
    release_waiting(self, place);
    if (place->seen != NULL)
        set_watermark(self, thread_of(place), place->seen);
    g_hash_table_remove(self->places, place->thread);
}

static gboolean
on_retry(gpointer data)
{
    EbPlace *place = data;
    EbCatchup *self = place->catchup;
    g_clear_pointer(&place->timer, g_source_unref);
    place->state = PLACE_QUEUED;
    g_queue_push_tail(&self->queue, place);
    pump(self);
    return G_SOURCE_REMOVE;
}

static void
arm(EbPlace *place, guint ms, GSourceFunc function)
{
    eb_clear_source(&place->timer);
    place->timer = g_timeout_source_new(ms);
    g_source_set_callback(place->timer, function, place, NULL);
    g_source_attach(place->timer, g_main_context_get_thread_default());
}

static void
read_failed(EbCatchup *self, EbPlace *place, const GError *error)
{
    gboolean gone =
        g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND) || g_error_matches(error, EB_ERROR, EB_ERROR_DENIED);
    if (gone && thread_of(place) != NULL) {
        g_autofree char *thread = g_strdup(place->thread);
        eb_router_lose_thread(self->router, thread, "lost");
        return;
    }
    if (g_error_matches(error, EB_ERROR, EB_ERROR_NOT_SUPPORTED)) {
        open_place(self, place);
        return;
    }
    guint delay_ms = 0;
    eb_error_get_retry(error, &delay_ms);
    if (++place->tries < MAX_TRIES) {
        place->state = PLACE_WAITING;
        arm(place, CLAMP(delay_ms, (guint)RETRY_MS << (place->tries - 1), GIVE_UP_RETRY_MS), on_retry);
        return;
    }
    eb_warning("what was said while nobody listened cannot be read back: %s", error->message);
    eb_session_manager_note_error(self->router->manager, error->message);
    place->state = PLACE_GIVEN_UP;
    release_waiting(self, place);
    arm(place, GIVE_UP_RETRY_MS, on_retry);
}

static void
tell_cap(EbCatchup *self, EbPlace *place)
{
    g_autofree char *text = g_strdup_printf(
        "more than %d messages were written here while I was away; I read the first %u of them, the later "
        "ones I did not: say again what still matters",
        EB_CATCHUP_MAX_READ, place->read);
    eb_router_tell(self->router, thread_of(place), EB_CHAT_POST_NOTICE, text, NULL);
}

/* --- reading --- */

static gboolean
on_deadline(gpointer data)
{
    EbPlace *place = data;
    g_clear_pointer(&place->timer, g_source_unref);
    g_cancellable_cancel(place->cancellable);
    return G_SOURCE_REMOVE;
}

/* What is under way for a place that may be gone meanwhile. */
typedef struct {
    EbRouter *router;
    char *thread;
    GCancellable *cancellable;
    gboolean first; /* a place that was never read: only its end is looked for */
} EbStep;

static EbStep *
step_new(EbCatchup *self, EbPlace *place)
{
    EbStep *step = g_new0(EbStep, 1);
    g_clear_object(&place->cancellable);
    place->cancellable = g_cancellable_new();
    step->router = g_object_ref(self->router);
    step->thread = g_strdup(place->thread);
    step->cancellable = g_object_ref(place->cancellable);
    return step;
}

static void
step_free(EbStep *step)
{
    g_object_unref(step->router);
    g_object_unref(step->cancellable);
    g_free(step->thread);
    g_free(step);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbStep, step_free)

/* NULL: it is over for that place. */
static EbPlace *
step_place(EbStep *step)
{
    EbCatchup *self = step->router->manager != NULL ? step->router->catchup : NULL;
    EbPlace *place = self != NULL ? find_place(self, step->thread) : NULL;
    return place != NULL && place->cancellable == step->cancellable ? place : NULL;
}

static void go_on(EbCatchup *self, EbPlace *place);

static void
on_batch_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbStep) step = user_data;
    g_autoptr(GError) error = NULL;
    if (!eb_journal_set_watermark_finish(EB_STORE(source), result, &error))
        eb_warning("the journal could not be written: %s", error->message);
    EbPlace *place = step_place(step);
    if (place != NULL)
        go_on(place->catchup, place);
}

/* Goes on when all that was taken stands in the journal. */
static void
wait_written(EbCatchup *self, EbPlace *place, const char *last_id)
{
    EbRouter *router = self->router;
    g_hash_table_replace(self->watermarks, g_strdup(place->thread), g_strdup(last_id));
    eb_journal_set_watermark_async(router->manager->parts->store, router->name, thread_of(place), last_id,
                                   on_batch_written, step_new(self, place));
}

static void
take_waiting(EbCatchup *self, EbPlace *place)
{
    g_autofree char *last_id = NULL;
    for (guint i = 0; i < EB_CATCHUP_PAGE && !g_queue_is_empty(&place->waiting); i++) {
        g_autoptr(EbChatMessage) message = g_queue_pop_head(&place->waiting);
        eb_router_take(self->router, message);
        g_free(last_id);
        last_id = g_strdup(message->id);
    }
    wait_written(self, place, last_id);
}

static void
go_on(EbCatchup *self, EbPlace *place)
{
    if (place->more || place->again || place->overflown) {
        /* What did not find room to wait is read, and what waits in front of it with it. */
        if (place->overflown)
            g_queue_clear_full(&place->waiting, (GDestroyNotify)eb_chat_message_unref);
        place->more = place->again = place->overflown = FALSE;
        place->state = PLACE_QUEUED;
        self->busy--;
        g_queue_push_head(&self->queue, place);
    } else if (!g_queue_is_empty(&place->waiting)) {
        take_waiting(self, place);
        return;
    } else {
        self->busy--;
        open_place(self, place);
    }
    pump(self);
}

static void
take_page(EbCatchup *self, EbPlace *place, GPtrArray *messages, gboolean first)
{
    EbChatMessage *last = messages->len > 0 ? messages->pdata[messages->len - 1] : NULL;
    place->tries = 0;
    if (first) {
        /* What people said before we were here is not meant for us. */
        wait_written(self, place, last != NULL ? last->id : "");
        return;
    }
    for (guint i = 0; i < messages->len; i++) {
        EbChatMessage *message = messages->pdata[i];
        message->replayed = TRUE;
        if (message->id != NULL && message->author_id != NULL && strlen(message->id) <= EB_ROUTER_MAX_ID_BYTES)
            eb_router_take(self->router, message);
    }
    place->read += messages->len;
    place->more = messages->len >= EB_CATCHUP_PAGE && place->read < EB_CATCHUP_MAX_READ;
    if (messages->len >= EB_CATCHUP_PAGE && !place->more)
        tell_cap(self, place);
    if (last != NULL)
        wait_written(self, place, last->id);
    else
        go_on(self, place);
}

static void
on_read(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbStep) step = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) messages = eb_chat_transport_read_back_finish(EB_CHAT_TRANSPORT(source), result, &error);
    EbPlace *place = step_place(step);
    if (place == NULL)
        return;
    EbCatchup *self = place->catchup;
    eb_clear_source(&place->timer);
    if (messages != NULL) {
        take_page(self, place, messages, step->first);
        return;
    }
    self->busy--;
    place->state = PLACE_WAITING;
    read_failed(self, place, error);
    pump(self);
}

static void
read_place(EbCatchup *self, EbPlace *place)
{
    EbRouter *router = self->router;
    const char *after = g_hash_table_lookup(self->watermarks, place->thread);
    EbStep *step = step_new(self, place);
    step->first = after == NULL;
    place->state = PLACE_BUSY;
    self->busy++;
    arm(place, READ_DEADLINE_MS, on_deadline);
    eb_chat_transport_read_back_async(router->transport, thread_of(place),
                                      after != NULL && *after != '\0' ? after : NULL,
                                      after == NULL ? 1 : EB_CATCHUP_PAGE, place->cancellable, on_read, step);
}

static void
pump(EbCatchup *self)
{
    while (self->begun && self->busy < EB_CATCHUP_PARALLEL) {
        EbPlace *place = g_queue_pop_head(&self->queue);
        if (place == NULL)
            return;
        read_place(self, place);
    }
}

/* --- all of them --- */

static int
by_activity(gconstpointer a, gconstpointer b)
{
    const EbSessionRecord *left = *(EbSessionRecord *const *)a, *right = *(EbSessionRecord *const *)b;
    return left->last_activity_ms < right->last_activity_ms   ? 1
           : left->last_activity_ms > right->last_activity_ms ? -1
                                                              : 0;
}

static void
close_places(EbCatchup *self)
{
    EbRouter *router = self->router;
    EbSessionManager *manager = router->manager;
    g_autoptr(GPtrArray) records = g_ptr_array_new();
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, manager->records);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        EbSessionRecord *record = value;
        gboolean live = g_hash_table_contains(manager->sessions, record->id);
        gboolean stopped = g_strcmp0(record->end_reason, eb_session_end_to_string(EB_SESSION_END_STOPPED)) == 0;
        if (g_strcmp0(record->transport, router->name) == 0 && record->thread != NULL && (live || !stopped))
            g_ptr_array_add(records, record);
    }
    g_ptr_array_sort(records, by_activity);
    close_place(self, NULL);
    for (guint i = 0; i < MIN(records->len, EB_CATCHUP_MAX_THREADS); i++)
        close_place(self, ((EbSessionRecord *)records->pdata[i])->thread);
}

static void
on_watermarks(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbRouter) router = EB_ROUTER(user_data);
    g_autoptr(GError) error = NULL;
    g_autoptr(GHashTable) known = eb_journal_watermarks_finish(EB_STORE(source), result, &error);
    EbCatchup *self = router->manager != NULL ? router->catchup : NULL;
    if (self == NULL)
        return;
    if (known == NULL)
        eb_warning("the journal could not be read: %s", error->message);
    GHashTableIter iter;
    gpointer key, value;
    if (known != NULL)
        g_hash_table_iter_init(&iter, known);
    while (known != NULL && g_hash_table_iter_next(&iter, &key, &value))
        if (!g_hash_table_contains(self->watermarks, key))
            g_hash_table_replace(self->watermarks, g_strdup(key), g_strdup(value));
    self->begun = TRUE;
    close_places(self);
    pump(self);
}

void
eb_catchup_begin(EbCatchup *self)
{
    EbRouter *router = self->router;
    eb_journal_watermarks_async(router->manager->parts->store, router->name, NULL, on_watermarks, g_object_ref(router));
}

void
eb_catchup_connected(EbCatchup *self)
{
    if (!self->begun)
        return; /* it is about to read everything anyway */
    close_places(self);
    pump(self);
}

EbCatchup *
eb_catchup_new(EbRouter *router)
{
    EbCatchup *self = g_new0(EbCatchup, 1);
    self->router = router;
    self->watermarks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->places = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, place_free);
    g_queue_init(&self->queue);
    return self;
}

void
eb_catchup_free(EbCatchup *self)
{
    g_queue_clear(&self->queue);
    g_hash_table_unref(self->places);
    g_hash_table_unref(self->watermarks);
    g_free(self);
}
