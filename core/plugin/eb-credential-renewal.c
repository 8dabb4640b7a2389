/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-plugin"
#include "core/plugin/eb-credential-renewal.h"

#include "core/base/eb-redactor.h"

struct _EbRenewals {
    GObject parent_instance;
    GHashTable *renewers; /* (utf8 -> Renewer), at most EB_RENEWAL_MAX */
};

G_DEFINE_FINAL_TYPE(EbRenewals, eb_renewals, G_TYPE_OBJECT)

/* Of one name. The record outlives renewals, so that a late answer finds it. */
typedef struct {
    gatomicrefcount refs;
    char *name;
    EbCredentialRenew renew; /* NULL once taken back */
    gpointer user_data;
    GDestroyNotify destroy;
    EbCredential *held;   /* (owned) (nullable): what no store took */
    GPtrArray *waiting;   /* (element-type Waiter), at most EB_RENEWAL_MAX_WAITING */
    gboolean under_way;   /* also when those that waited have given up */
    gboolean late;        /* it is, and who joins does not wait for it */
    gint64 pause_until;   /* monotonic */
    EbCredential *old;    /* (owned) (nullable): of the renewal under way */
    GPtrArray *stores;    /* (element-type EbCredentialStore) (nullable): likewise */
    guint next;           /* the store to try */
    EbCredential *fresh;  /* (owned) (nullable): got, and not stored yet */
    GCancellable *cancel; /* (owned) (nullable) */
    GSource *deadline;    /* (nullable) */
} Renewer;

typedef struct {
    GTask *task;
    GSource *cancelled; /* (nullable) */
    GPtrArray *in;      /* (unowned): the list it waits in */
} Waiter;

static void
waiter_free(gpointer data)
{
    Waiter *self = data;

    if (self->cancelled != NULL) {
        g_source_destroy(self->cancelled);
        g_source_unref(self->cancelled);
    }
    g_object_unref(self->task);
    g_free(self);
}

static gboolean
on_waiter_cancelled(GCancellable *cancellable, gpointer user_data)
{
    Waiter *self = user_data;
    g_autoptr(GTask) task = g_object_ref(self->task);

    g_ptr_array_remove(self->in, self); /* the renewal goes on: others need it, or will */
    g_task_return_error(task, eb_error_new(EB_ERROR_CANCELLED, NULL, "the lookup was cancelled"));
    return G_SOURCE_REMOVE;
}

static Waiter *
waiter_new(GTask *task, GPtrArray *in)
{
    Waiter *self = g_new0(Waiter, 1);
    GCancellable *cancellable = g_task_get_cancellable(task);

    self->task = g_object_ref(task);
    self->in = in;
    if (cancellable != NULL) {
        self->cancelled = g_cancellable_source_new(cancellable);
        g_source_set_callback(self->cancelled, G_SOURCE_FUNC(on_waiter_cancelled), self, NULL);
        g_source_attach(self->cancelled, g_main_context_get_thread_default());
    }
    return self;
}

static EbCredential *
copy_credential(const EbCredential *credential)
{
    EbCredential *copy = eb_credential_new(credential->secret, credential->expires_unix, credential->source);

    copy->changed_unix = credential->changed_unix;
    return copy;
}

static void
clear_deadline(Renewer *self)
{
    if (self->deadline == NULL)
        return;
    g_source_destroy(self->deadline);
    g_clear_pointer(&self->deadline, g_source_unref);
}

static void
drop_renew(Renewer *self)
{
    if (self->destroy != NULL)
        self->destroy(self->user_data);
    self->renew = NULL;
    self->user_data = NULL;
    self->destroy = NULL;
}

static void
renewer_unref(gpointer data)
{
    Renewer *self = data;

    if (!g_atomic_ref_count_dec(&self->refs))
        return;
    clear_deadline(self);
    drop_renew(self);
    g_clear_pointer(&self->held, eb_credential_free);
    g_clear_pointer(&self->old, eb_credential_free);
    g_clear_pointer(&self->fresh, eb_credential_free);
    g_clear_pointer(&self->stores, g_ptr_array_unref);
    g_clear_object(&self->cancel);
    g_ptr_array_unref(self->waiting);
    g_free(self->name);
    g_free(self);
}

static Renewer *
renewer_ref(Renewer *self)
{
    g_atomic_ref_count_inc(&self->refs);
    return self;
}

static void
eb_renewals_finalize(GObject *object)
{
    g_hash_table_unref(EB_RENEWALS(object)->renewers);
    G_OBJECT_CLASS(eb_renewals_parent_class)->finalize(object);
}

static void
eb_renewals_class_init(EbRenewalsClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_renewals_finalize;
}

static void
eb_renewals_init(EbRenewals *self)
{
    self->renewers = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, renewer_unref);
}

EbRenewals *
eb_renewals_new(void)
{
    return g_object_new(EB_TYPE_RENEWALS, NULL);
}

gboolean
eb_renewal_is_due(gint64 expires, gint64 now)
{
    return expires != 0 && expires - EB_RENEWAL_EARLY_S <= now;
}

gboolean
eb_renewal_is_over(gint64 expires, gint64 now)
{
    return expires != 0 && expires <= now;
}

gboolean
eb_renewals_set(EbRenewals *self, const char *name, EbCredentialRenew renew, gpointer user_data, GDestroyNotify destroy)
{
    g_return_val_if_fail(EB_IS_RENEWALS(self) && name != NULL, FALSE);
    Renewer *renewer = g_hash_table_lookup(self->renewers, name);

    if (renewer == NULL && renew != NULL && g_hash_table_size(self->renewers) >= EB_RENEWAL_MAX)
        return FALSE;
    if (renewer == NULL) {
        renewer = g_new0(Renewer, 1);
        g_atomic_ref_count_init(&renewer->refs);
        renewer->name = g_strdup(name);
        renewer->waiting = g_ptr_array_new_with_free_func(waiter_free);
        g_hash_table_insert(self->renewers, renewer->name, renewer);
    }
    drop_renew(renewer);
    renewer->renew = renew;
    renewer->user_data = user_data;
    renewer->destroy = destroy;
    return TRUE;
}

gboolean
eb_renewals_knows(EbRenewals *self, const char *name)
{
    const Renewer *renewer = g_hash_table_lookup(self->renewers, name);

    return renewer != NULL && renewer->renew != NULL;
}

const EbCredential *
eb_renewals_peek(EbRenewals *self, const char *name)
{
    const Renewer *renewer = g_hash_table_lookup(self->renewers, name);

    return renewer != NULL ? renewer->held : NULL;
}

/* --- those that wait --- */

static void
answer(GTask *waiter, EbSecret *secret)
{
    g_task_return_pointer(waiter, eb_secret_ref(secret), (GDestroyNotify)eb_secret_unref);
}

/* @credential: (nullable): NULL answers with @error, or with the old one where that still works. */
static void
answer_all(Renewer *self, const EbCredential *credential, const GError *error)
{
    g_autoptr(GPtrArray) waiting = g_steal_pointer(&self->waiting);
    gint64 now = g_get_real_time() / G_USEC_PER_SEC;

    self->waiting = g_ptr_array_new_with_free_func(waiter_free);
    if (credential == NULL && self->old != NULL && !eb_renewal_is_over(self->old->expires_unix, now))
        credential = self->old;
    for (guint i = 0; i < waiting->len; i++) {
        GTask *task = ((Waiter *)waiting->pdata[i])->task;
        if (credential != NULL)
            answer(task, credential->secret);
        else
            g_task_return_error(task, g_error_copy(error));
    }
}

static void
end(Renewer *self)
{
    clear_deadline(self);
    g_clear_object(&self->cancel);
    g_clear_pointer(&self->old, eb_credential_free);
    g_clear_pointer(&self->fresh, eb_credential_free);
    g_clear_pointer(&self->stores, g_ptr_array_unref);
    self->under_way = FALSE;
    self->late = FALSE;
}

/* --- the new value is stored --- */

static void store_next(Renewer *self);

static void
on_stored(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Renewer *self = user_data;
    g_autoptr(GError) error = NULL;

    if (eb_credential_store_put_credential_finish(EB_CREDENTIAL_STORE(source), result, &error)) {
        g_clear_pointer(&self->held, eb_credential_free);
        answer_all(self, self->fresh, NULL);
        end(self);
    } else {
        if (!g_error_matches(error, EB_ERROR, EB_ERROR_NOT_SUPPORTED))
            eb_warning("the renewed credential %s is not stored: %s", self->name, error->message);
        store_next(self);
    }
    renewer_unref(self);
}

static void
store_next(Renewer *self)
{
    if (self->next < self->stores->len) {
        eb_credential_store_put_credential_async(self->stores->pdata[self->next++], self->name, self->fresh, NULL,
                                                 on_stored, renewer_ref(self));
        return;
    }
    /* The old one may be used up, so that this is all there is. */
    g_clear_pointer(&self->held, eb_credential_free);
    self->held = g_steal_pointer(&self->fresh);
    answer_all(self, self->held, NULL);
    end(self);
}

static void
on_renewed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Renewer *self = user_data;
    GError *error = NULL;

    self->fresh = g_task_propagate_pointer(G_TASK(result), &error);
    clear_deadline(self);
    if (self->fresh != NULL) {
        eb_log_mask_add(self->fresh->secret);
        eb_redact_add_configured(self->fresh->secret);
        store_next(self);
    } else {
        eb_error_convert(&error, "credential.renewal", NULL);
        g_prefix_error(&error, "credential \"%s\" is not renewed: ", self->name);
        eb_warning("%s", error->message);
        self->pause_until = g_get_monotonic_time() + EB_RENEWAL_PAUSE_S * G_USEC_PER_SEC;
        answer_all(self, NULL, error);
        end(self);
        g_error_free(error);
    }
    renewer_unref(self);
}

static gboolean
on_late(gpointer user_data)
{
    Renewer *self = user_data;
    g_autoptr(GError) error =
        eb_error_new(EB_ERROR_TIMEOUT, "credential.renewal-late", "credential \"%s\" was not renewed within %d s",
                     self->name, EB_RENEWAL_DEADLINE_MS / 1000);

    clear_deadline(self);
    self->late = TRUE;
    answer_all(self, NULL, error);
    g_cancellable_cancel(self->cancel);
    return G_SOURCE_REMOVE;
}

static void
begin(Renewer *self, const EbCredential *old, GPtrArray *stores)
{
    self->under_way = TRUE;
    self->old = old != NULL ? copy_credential(old) : NULL;
    self->stores = g_ptr_array_ref(stores);
    self->next = 0;
    self->cancel = g_cancellable_new();
    self->deadline = g_timeout_source_new(EB_RENEWAL_DEADLINE_MS);
    g_source_set_callback(self->deadline, on_late, self, NULL);
    g_source_attach(self->deadline, g_main_context_get_thread_default());
    GTask *task = g_task_new(NULL, self->cancel, on_renewed, renewer_ref(self));
    /* Cancelled, it may still have got a value, which is not thrown away. */
    g_task_set_check_cancellable(task, FALSE);
    self->renew(self->name, old != NULL ? old->secret : NULL, task, self->user_data);
}

void
eb_renewals_join(EbRenewals *self, const char *name, const EbCredential *old, GPtrArray *stores, GTask *waiter)
{
    g_autoptr(GTask) task = waiter;
    Renewer *renewer = g_hash_table_lookup(self->renewers, name);
    gint64 now = g_get_real_time() / G_USEC_PER_SEC;

    g_return_if_fail(renewer != NULL && renewer->renew != NULL);
    if (renewer->waiting->len >= EB_RENEWAL_MAX_WAITING) {
        g_task_return_error(task, eb_error_new(EB_ERROR_QUOTA, "credential.renewal-queue",
                                               "%d lookups wait for credential \"%s\" to be renewed already",
                                               EB_RENEWAL_MAX_WAITING, name));
        return;
    }
    if (renewer->late || (!renewer->under_way && g_get_monotonic_time() < renewer->pause_until)) {
        if (old != NULL && !eb_renewal_is_over(old->expires_unix, now))
            answer(task, old->secret);
        else
            g_task_return_error(task, eb_error_new(EB_ERROR_UNAVAILABLE, "credential.renewal-failed",
                                                   "credential \"%s\" could not be renewed; tried again soon", name));
        return;
    }
    g_ptr_array_add(renewer->waiting, waiter_new(task, renewer->waiting));
    if (!renewer->under_way)
        begin(renewer, old, stores);
}
