/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-store-contract.h"

#include <string.h>

#define NAME "eb-contract-one"
#define N_PARALLEL 16

/* The first problem of a case is kept; the case goes on to its end, so that nothing is left behind. */
typedef struct {
    EbContractOpen open;
    gpointer user_data;
    EbCredentialStore *store;
    gboolean read_only;
    GString *problem;
    const char *skipped;
    GThread *thread;
    guint changes, foreign_changes;
} Contract;

G_GNUC_PRINTF(2, 3)
static void
blame(Contract *self, const char *format, ...)
{
    va_list args;

    if (self->problem->len > 0)
        return;
    va_start(args, format);
    g_string_vprintf(self->problem, format, args);
    va_end(args);
}

/* --- one call, waited for --- */

typedef struct {
    GAsyncResult *result; /* (owned) (nullable) */
    guint calls;
    gboolean several; /* others were begun after it, so that it may have ended by now */
    gboolean late;
    GThread *thread;
} Wait;

static void
on_ready(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Wait *wait = user_data;

    wait->calls++;
    wait->thread = g_thread_self();
    g_set_object(&wait->result, result);
}

static gboolean
on_late(gpointer user_data)
{
    *(gboolean *)user_data = TRUE;
    return G_SOURCE_REMOVE;
}

/* FALSE when it never comes. A wait that is late stays allocated: the call may still end into it. */
static gboolean
finished(Contract *self, Wait *wait, const char *what)
{
    guint early = wait->several ? 0 : wait->calls;
    g_autoptr(GSource) timer = g_timeout_source_new(EB_CONTRACT_DEADLINE_MS);

    g_source_set_callback(timer, on_late, &wait->late, NULL);
    g_source_attach(timer, NULL);
    while (wait->calls == 0 && !wait->late)
        g_main_context_iteration(NULL, TRUE);
    g_source_destroy(timer);
    for (guint i = 0; i < 8; i++)
        g_main_context_iteration(NULL, FALSE);
    if (early > 0)
        blame(self, "%s calls back before it returns", what);
    if (wait->calls > 1)
        blame(self, "%s calls back %u times", what, wait->calls);
    if (wait->calls > 0 && wait->thread != self->thread)
        blame(self, "%s calls back in another thread", what);
    if (wait->calls == 0)
        blame(self, "%s does not end within %d s", what, EB_CONTRACT_DEADLINE_MS / 1000);
    return wait->calls > 0;
}

static Wait *
wait_new(void)
{
    return g_new0(Wait, 1);
}

static void
wait_free(Wait *wait)
{
    if (wait->calls == 0)
        return; /* leaked on purpose, see finished() */
    g_clear_object(&wait->result);
    g_free(wait);
}

static EbSecret *
secret_of(const char *bytes, gsize length)
{
    char *copy = g_memdup2(bytes, length);
    EbSecret *secret = eb_secret_new_take("contract", copy, length, NULL);

    g_free(copy);
    return secret;
}

static EbCredential *
look_up(Contract *self, EbCredentialStore *store, const char *name, GCancellable *cancellable, GError **error)
{
    Wait *wait = wait_new();
    EbCredential *found = NULL;

    eb_credential_store_lookup_async(store, name, cancellable, on_ready, wait);
    if (finished(self, wait, "lookup"))
        found = eb_credential_store_lookup_finish(store, wait->result, error);
    wait_free(wait);
    return found;
}

static gboolean
put(Contract *self, const char *name, const char *bytes, gsize length, gint64 expires, GError **error)
{
    g_autoptr(EbSecret) secret = secret_of(bytes, length);
    g_autoptr(EbCredential) credential = eb_credential_new(secret, expires, NULL);
    Wait *wait = wait_new();
    gboolean good = FALSE;

    if (expires != 0)
        eb_credential_store_put_credential_async(self->store, name, credential, NULL, on_ready, wait);
    else
        eb_credential_store_put_async(self->store, name, secret, NULL, on_ready, wait);
    if (finished(self, wait, "put"))
        good = expires != 0 ? eb_credential_store_put_credential_finish(self->store, wait->result, error)
                            : eb_credential_store_put_finish(self->store, wait->result, error);
    wait_free(wait);
    return good;
}

static gboolean
drop(Contract *self, const char *name, GError **error)
{
    Wait *wait = wait_new();
    gboolean good = FALSE;

    eb_credential_store_remove_async(self->store, name, NULL, on_ready, wait);
    if (finished(self, wait, "remove"))
        good = eb_credential_store_remove_finish(self->store, wait->result, error);
    wait_free(wait);
    return good;
}

static char **
list(Contract *self, GError **error)
{
    Wait *wait = wait_new();
    char **names = NULL;

    eb_credential_store_list_async(self->store, NULL, on_ready, wait);
    if (finished(self, wait, "list"))
        names = eb_credential_store_list_finish(self->store, wait->result, error);
    wait_free(wait);
    return names;
}

/* --- what is asked of the answers --- */

static void
expect_value(Contract *self, EbCredentialStore *store, const char *name, const char *bytes, gsize length)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbCredential) found = look_up(self, store, name, NULL, &error);

    if (found == NULL)
        blame(self, "%s was put and is not found: %s", name, error != NULL ? error->message : "no answer");
    else if (!eb_secret_equal_bytes(found->secret, bytes, length))
        blame(self, "%s comes back with another value than was put", name);
    else if (found->source == NULL || (length >= 8 && memmem(found->source, strlen(found->source), bytes, length)))
        blame(self, "the source of %s tells its value", name);
}

static void
expect_absent(Contract *self, EbCredentialStore *store, const char *name)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbCredential) found = look_up(self, store, name, NULL, &error);

    if (found != NULL)
        blame(self, "%s was never put, or was removed, and is found", name);
    else if (!g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND))
        blame(self, "absence is not EB_ERROR_NOT_FOUND but: %s", error != NULL ? error->message : "no answer");
}

/* FALSE: the store is read-only, so that the case does not apply. */
static gboolean
writes(Contract *self)
{
    if (self->read_only)
        self->skipped = "the store is read-only";
    return !self->read_only;
}

static void
put_well(Contract *self, const char *name, const char *value)
{
    g_autoptr(GError) error = NULL;

    if (!put(self, name, value, strlen(value), 0, &error))
        blame(self, "%s cannot be put: %s", name, error != NULL ? error->message : "no answer");
}

/* --- the cases --- */

static void
case_describe(Contract *self)
{
    g_autofree char *text = eb_credential_store_describe(self->store);

    if (text == NULL || *text == '\0' || strchr(text, '\n') != NULL || !g_utf8_validate(text, -1, NULL))
        blame(self, "describe gives no line of text");
}

static void
case_absent(Contract *self)
{
    expect_absent(self, self->store, "eb-contract-never-put");
}

static void
case_names(Contract *self)
{
    static const char *const bad[] = {"", "Upper", "with space", "../../etc/passwd", "a/b", "new\nline", "9first"};

    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(EbCredential) found = look_up(self, self->store, bad[i], NULL, &error);
        if (found != NULL)
            blame(self, "something that is no name gives a value (case %u)", i);
        else if (error == NULL || error->domain != EB_ERROR)
            blame(self, "something that is no name gives no EB_ERROR (case %u)", i);
    }
}

/* Also finds out whether it can be written at all. */
static void
case_put(Contract *self)
{
    g_autoptr(GError) error = NULL;

    if (!put(self, NAME, "first value", 11, 0, &error)) {
        self->read_only = g_error_matches(error, EB_ERROR, EB_ERROR_NOT_SUPPORTED);
        if (!self->read_only)
            blame(self, "put fails, and not with EB_ERROR_NOT_SUPPORTED: %s",
                  error != NULL ? error->message : "no answer");
        writes(self);
        return;
    }
    expect_value(self, self->store, NAME, "first value", 11);
    put_well(self, NAME, "second value");
    expect_value(self, self->store, NAME, "second value", 12);
}

static void
case_list(Contract *self)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = list(self, &error);

    if (names == NULL) {
        blame(self, "list fails: %s", error != NULL ? error->message : "no answer");
        return;
    }
    if (!self->read_only && !g_strv_contains((const char *const *)names, NAME))
        blame(self, "what was put is not listed");
    for (char **name = names; *name != NULL; name++) {
        g_autoptr(GError) local = NULL;
        g_autoptr(EbCredential) found = look_up(self, self->store, *name, NULL, &local);
        if (found == NULL && g_error_matches(local, EB_ERROR, EB_ERROR_NOT_FOUND))
            blame(self, "%s is listed and not found", *name);
    }
}

/* Kept as it is, or refused; nothing between. */
static void
case_shapes(Contract *self)
{
#define VALUE(text)                                                                                                    \
    {                                                                                                                  \
        text, sizeof text - 1                                                                                          \
    }
    static const struct {
        const char *bytes;
        gsize length;
    } values[] = {
        VALUE("x"),
        VALUE(" blank at both ends "),
        VALUE("\"quoted\""),
        VALUE("'single' # no comment"),
        VALUE("https://user:word@host.test/path?query=1&b=%20"),
        VALUE("9f1b6c1e-5b1c-4bb7-8a46-2f6f0c9d4e11"),
        VALUE("-----BEGIN KEY-----\nbGluZSBvbmU=\n-----END KEY-----\n"),
        VALUE("\xc3\xa9\xe2\x82\xac $HOME `id` \\n"),
        VALUE("be\0hind"),
        VALUE("\xff\xfe bytes"),
    };
#undef VALUE
    g_autofree char *large = g_malloc(EB_SECRET_MAX_BYTES);

    if (!writes(self))
        return;
    memset(large, 'k', EB_SECRET_MAX_BYTES);
    for (guint i = 0; i <= G_N_ELEMENTS(values); i++) {
        const char *bytes = i < G_N_ELEMENTS(values) ? values[i].bytes : large;
        gsize length = i < G_N_ELEMENTS(values) ? values[i].length : EB_SECRET_MAX_BYTES;
        g_autoptr(GError) error = NULL;
        if (put(self, NAME, bytes, length, 0, &error))
            expect_value(self, self->store, NAME, bytes, length);
        else if (error == NULL || error->domain != EB_ERROR)
            blame(self, "a value of shape %u is refused without an EB_ERROR", i);
        else if (length >= 8 && memmem(error->message, strlen(error->message), bytes, length) != NULL)
            blame(self, "the error for a value of shape %u tells the value", i);
    }
}

static void
case_expiry(Contract *self)
{
    gint64 expires = g_get_real_time() / G_USEC_PER_SEC + 3600;
    g_autoptr(GError) error = NULL;

    if (!writes(self))
        return;
    if (!put(self, NAME, "ends soon", 9, expires, &error)) {
        if (g_error_matches(error, EB_ERROR, EB_ERROR_NOT_SUPPORTED))
            self->skipped = "the store keeps no expiry";
        else
            blame(self, "an expiry is refused, and not with EB_ERROR_NOT_SUPPORTED: %s",
                  error != NULL ? error->message : "no answer");
        return;
    }
    g_autoptr(EbCredential) found = look_up(self, self->store, NAME, NULL, NULL);
    if (found == NULL || found->expires_unix != expires)
        blame(self, "an expiry that was taken does not come back");
    put_well(self, NAME, "ends never");
    g_autoptr(EbCredential) again = look_up(self, self->store, NAME, NULL, NULL);
    if (again == NULL || again->expires_unix != 0)
        blame(self, "the expiry of the value before stays with the new one");
}

static void
case_durable(Contract *self)
{
    g_autoptr(GError) error = NULL;

    if (!writes(self))
        return;
    g_autoptr(EbCredentialStore) other = self->open(self->user_data, &error);
    if (other == NULL) {
        blame(self, "it does not open a second time: %s", error != NULL ? error->message : "no reason given");
        return;
    }
    put_well(self, NAME, "seen by the other");
    expect_value(self, other, NAME, "seen by the other", 17);
}

static void
case_parallel(Contract *self)
{
    Wait *waits[N_PARALLEL];

    if (!writes(self))
        return;
    for (guint i = 0; i < N_PARALLEL; i++) {
        g_autofree char *name = g_strdup_printf("eb-contract-%u", i);
        g_autofree char *value = g_strdup_printf("value number %u", i);
        g_autoptr(EbSecret) secret = secret_of(value, strlen(value));
        waits[i] = wait_new();
        waits[i]->several = TRUE;
        eb_credential_store_put_async(self->store, name, secret, NULL, on_ready, waits[i]);
    }
    for (guint i = 0; i < N_PARALLEL; i++) {
        g_autoptr(GError) error = NULL;
        if (finished(self, waits[i], "one of several puts") &&
            !eb_credential_store_put_finish(self->store, waits[i]->result, &error))
            blame(self, "one of several puts fails: %s", error->message);
        wait_free(waits[i]);
    }
    for (guint i = 0; i < N_PARALLEL; i++) {
        g_autofree char *name = g_strdup_printf("eb-contract-%u", i);
        g_autofree char *value = g_strdup_printf("value number %u", i);
        expect_value(self, self->store, name, value, strlen(value));
        drop(self, name, NULL);
    }
}

static void
case_cancel(Contract *self)
{
    g_autoptr(GCancellable) before = g_cancellable_new();
    g_autoptr(GCancellable) under_way = g_cancellable_new();
    g_autoptr(GError) error = NULL;

    g_cancellable_cancel(before);
    g_autoptr(EbCredential) none = look_up(self, self->store, NAME, before, &error);
    if (none != NULL || !(g_error_matches(error, EB_ERROR, EB_ERROR_CANCELLED) ||
                          g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)))
        blame(self, "a lookup that was cancelled before it began is not EB_ERROR_CANCELLED");
    Wait *wait = wait_new();
    eb_credential_store_lookup_async(self->store, NAME, under_way, on_ready, wait);
    g_cancellable_cancel(under_way);
    if (finished(self, wait, "a cancelled lookup")) {
        g_autoptr(EbCredential) maybe = eb_credential_store_lookup_finish(self->store, wait->result, NULL);
    }
    wait_free(wait);
    expect_absent(self, self->store, "eb-contract-never-put"); /* it works on */
}

static void
on_changed(EbCredentialStore *store, const char *name, gpointer user_data)
{
    Contract *self = user_data;

    if (g_thread_self() != self->thread)
        self->foreign_changes++;
    else if (name == NULL || strcmp(name, NAME) == 0)
        self->changes++;
}

static void
case_changed(Contract *self)
{
    if (!writes(self))
        return;
    gulong handler = g_signal_connect(self->store, "changed", G_CALLBACK(on_changed), self);
    put_well(self, NAME, "told of");
    if (self->changes == 0)
        blame(self, "\"changed\" is not emitted for a put");
    self->changes = 0;
    drop(self, NAME, NULL);
    if (self->changes == 0)
        blame(self, "\"changed\" is not emitted for a remove");
    if (self->foreign_changes > 0)
        blame(self, "\"changed\" is emitted in another thread than the main loop's");
    g_signal_handler_disconnect(self->store, handler);
}

static void
case_remove(Contract *self)
{
    g_autoptr(GError) error = NULL;

    if (!writes(self))
        return;
    put_well(self, NAME, "to be removed");
    if (!drop(self, NAME, &error))
        blame(self, "remove fails: %s", error != NULL ? error->message : "no answer");
    expect_absent(self, self->store, NAME);
    g_clear_error(&error);
    if (drop(self, NAME, &error) || !g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND))
        blame(self, "a second remove is not EB_ERROR_NOT_FOUND");
}

static const struct {
    const char *name;
    void (*run)(Contract *self);
} CASES[] = {
    {"describe", case_describe}, {"absent", case_absent}, {"names", case_names},     {"put", case_put},
    {"list", case_list},         {"shapes", case_shapes}, {"expiry", case_expiry},   {"durable", case_durable},
    {"parallel", case_parallel}, {"cancel", case_cancel}, {"changed", case_changed}, {"remove", case_remove},
};

guint
eb_store_contract_count(void)
{
    return G_N_ELEMENTS(CASES);
}

guint
eb_store_contract_run(EbContractOpen open, EbContractReport report, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    Contract self = {.open = open, .user_data = user_data, .problem = g_string_new(NULL), .thread = g_thread_self()};
    guint failures = 0;

    self.store = open(user_data, &error);
    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_string_truncate(self.problem, 0);
        self.skipped = NULL;
        if (self.store != NULL)
            CASES[i].run(&self);
        else
            blame(&self, "it does not open: %s", error != NULL ? error->message : "no reason given");
        failures += self.problem->len > 0;
        report(CASES[i].name, self.problem->len > 0 ? self.problem->str : NULL, self.skipped, user_data);
    }
    g_clear_object(&self.store);
    g_string_free(self.problem, TRUE);
    return failures;
}
