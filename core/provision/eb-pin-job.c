/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-pin-job.h"

#include "core/config/eb-pin-digest.h"
#include "core/provision/eb-debian.h"
#include "core/provision/eb-machine.h"
#include "core/provision/eb-pin-progress.h"

#include <string.h>
#include <sys/stat.h>

typedef struct {
    char *tree;
    char *cache_dir;
    char *name; /* (nullable) */
    EbPinProgressRelay relay;
} Job;

static void
job_free(gpointer data)
{
    Job *job = data;

    g_free(job->tree);
    g_free(job->cache_dir);
    g_free(job->name);
    eb_pin_progress_relay_clear(&job->relay);
    g_free(job);
}

static void
outcome_free(gpointer data)
{
    EbPinOutcome *outcome = data;

    g_free(outcome->name);
    g_free(outcome->package);
    g_free(outcome->version);
    g_free(outcome->digest);
    g_free(outcome->detail);
    g_clear_error(&outcome->error);
    g_free(outcome);
}

const char *
eb_pin_state_name(EbPinState state)
{
    static const char *const names[] = {"ok", "missing", "fetched", "bad"};
    return names[state];
}

static EbPinOutcome *
outcome_new(const EbPin *pin)
{
    EbPinOutcome *outcome = g_new0(EbPinOutcome, 1);

    outcome->kind = pin->kind;
    outcome->name = g_strdup(pin->name);
    outcome->package = g_strdup(pin->package);
    outcome->version = g_strdup(pin->version);
    outcome->digest = g_strdup(pin->digest);
    return outcome;
}

/* @error: (transfer full) */
static void
set_bad(EbPinOutcome *outcome, GError *error)
{
    outcome->state = EB_PIN_STATE_BAD;
    outcome->detail = g_strdup(error->message);
    outcome->error = error;
}

/* Packages of @pin that this machine takes, or NULL with @error. */
static GPtrArray *
list_packages(const EbPin *pin, const char *tree, const EbMachine *machine, GError **error)
{
    g_autofree char *guest_dir = g_build_filename(tree, "guest", NULL);

    if (!eb_pins_verify_lock(pin, guest_dir, error))
        return NULL;
    g_autoptr(GBytes) lock = eb_pins_read_lock(pin, guest_dir, error);
    return lock != NULL ? eb_pins_list_packages(pin, lock, machine->cpu, machine->avx2, error) : NULL;
}

static gboolean
verify_npm(const EbPin *pin, const Job *job, EbPinCache *cache, EbPinOutcome *outcome, GError **error)
{
    EbMachine machine;
    guint n_present = 0;

    if (!eb_machine_find(&machine, error))
        return FALSE;
    g_autoptr(GPtrArray) packages = list_packages(pin, job->tree, &machine, error);
    if (packages == NULL)
        return FALSE;
    for (guint i = 0; cache != NULL && i < packages->len; i++) {
        EbPinExpected expected = eb_pin_package_expected(g_ptr_array_index(packages, i));
        gboolean present = FALSE;
        if (!eb_pin_cache_check(cache, &expected, &present, error))
            return FALSE;
        n_present += present ? 1 : 0;
    }
    outcome->state = n_present == packages->len ? EB_PIN_STATE_OK : EB_PIN_STATE_MISSING;
    outcome->detail = g_strdup_printf("%u of %u packages in the cache", n_present, packages->len);
    return TRUE;
}

static gboolean
verify_deb(const EbPin *pin, EbPinOutcome *outcome, GError **error)
{
    g_autofree char *installed = eb_debian_installed(pin->package);

    outcome->state = installed != NULL ? EB_PIN_STATE_OK : EB_PIN_STATE_MISSING;
    if (installed != NULL && !eb_debian_is_at_least(installed, pin->version)) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "pins.deb", "%s %s is installed, %s or later is needed", pin->package,
                     installed, pin->version);
        return FALSE;
    }
    outcome->detail = installed != NULL ? g_strdup_printf("%s is installed", installed) : g_strdup("is not installed");
    return TRUE;
}

/* An archive, or a file of this machine: the cached copy is what is used. */
static gboolean
verify_cached(const EbPin *pin, EbPinCache *cache, EbPinOutcome *outcome, GError **error)
{
    EbPinExpected expected = eb_pin_expected(pin);
    gboolean present = FALSE;

    if (cache != NULL && !eb_pin_cache_check(cache, &expected, &present, error))
        return FALSE;
    outcome->state = present ? EB_PIN_STATE_OK : EB_PIN_STATE_MISSING;
    outcome->detail = g_strdup(present ? "in the cache" : "not in the cache");
    return TRUE;
}

static gboolean
verify_pin(const EbPin *pin, const Job *job, EbPinCache *cache, EbPinOutcome *outcome, GError **error)
{
    switch (pin->kind) {
    case EB_PIN_NPM:
        return verify_npm(pin, job, cache, outcome, error);
    case EB_PIN_DEB:
        return verify_deb(pin, outcome, error);
    case EB_PIN_ARCHIVE:
    case EB_PIN_FILE:
    default:
        return verify_cached(pin, cache, outcome, error);
    }
}

static EbPins *
load(const char *tree, GError **error)
{
    g_autofree char *path = g_build_filename(tree, "pins.toml", NULL);
    return eb_pins_load(path, error);
}

/* NULL without @error: there is none yet. */
static EbPinCache *
open_present(const char *dir, GError **error)
{
    GError *problem = NULL;
    EbPinCache *cache = eb_pin_cache_open(dir, FALSE, &problem);

    if (g_error_matches(problem, EB_ERROR, EB_ERROR_NOT_FOUND))
        g_clear_error(&problem);
    if (problem != NULL)
        g_propagate_error(error, problem);
    return cache;
}

static gboolean
is_cancelled(GTask *task)
{
    if (!g_cancellable_is_cancelled(g_task_get_cancellable(task)))
        return FALSE;
    g_task_return_error(task, eb_error_new(EB_ERROR_CANCELLED, "pins.cancelled", "cancelled"));
    return TRUE;
}

static void
verify_thread(GTask *task, gpointer source, gpointer task_data, GCancellable *cancellable)
{
    Job *job = task_data;
    GError *error = NULL;
    g_autoptr(EbPins) pins = load(job->tree, &error);
    g_autoptr(EbPinCache) cache = pins != NULL ? open_present(job->cache_dir, &error) : NULL;
    g_autoptr(GPtrArray) outcomes = g_ptr_array_new_with_free_func(outcome_free);

    if (error != NULL) {
        g_task_return_error(task, error);
        return;
    }
    GPtrArray *all = eb_pins_get_all(pins);
    for (guint i = 0; i < all->len; i++) {
        const EbPin *pin = g_ptr_array_index(all, i);
        EbPinOutcome *outcome = outcome_new(pin);
        g_ptr_array_add(outcomes, outcome);
        if (is_cancelled(task))
            return;
        if (!verify_pin(pin, job, cache, outcome, &error))
            set_bad(outcome, g_steal_pointer(&error));
    }
    g_task_return_pointer(task, g_steal_pointer(&outcomes), (GDestroyNotify)g_ptr_array_unref);
}

static void
fetch_one(EbPinFetch *fetch, const EbPin *pin, EbPinOutcome *outcome)
{
    EbPinFetched fetched = {0};
    GError *error = NULL;

    if (!eb_pin_fetch_pin(fetch, pin, &fetched, &error)) {
        set_bad(outcome, error);
        return;
    }
    outcome->state = fetched.fetched > 0 ? EB_PIN_STATE_FETCHED : EB_PIN_STATE_OK;
    g_autofree char *size = g_format_size_full(fetched.bytes, G_FORMAT_SIZE_IEC_UNITS);
    outcome->detail = pin->kind == EB_PIN_DEB ? g_strdup("apt has it, and checks it when it installs")
                      : fetched.fetched > 0
                          ? g_strdup_printf("%u of %u fetched, %s", fetched.fetched, fetched.files, size)
                          : g_strdup("all in the cache");
}

static void
fetch_thread(GTask *task, gpointer source, gpointer task_data, GCancellable *cancellable)
{
    Job *job = task_data;
    GError *error = NULL;
    g_autoptr(EbPins) pins = load(job->tree, &error);
    const EbPin *only = pins != NULL && job->name != NULL ? eb_pins_find(pins, job->name, &error) : NULL;
    g_autoptr(EbPinCache) cache = error == NULL ? eb_pin_cache_open(job->cache_dir, TRUE, &error) : NULL;
    g_autoptr(GPtrArray) outcomes = g_ptr_array_new_with_free_func(outcome_free);

    if (error != NULL) {
        g_task_return_error(task, error);
        return;
    }
    g_autoptr(EbPinFetch) fetch = eb_pin_fetch_new(cache, job->tree, &EB_HTTP_LIMITS_FILE, cancellable);
    eb_pin_fetch_set_progress(fetch, eb_pin_progress_relay_tell, &job->relay);
    GPtrArray *all = eb_pins_get_all(pins);
    for (guint i = 0; i < all->len; i++) {
        const EbPin *pin = g_ptr_array_index(all, i);
        if (only != NULL && pin != only)
            continue;
        EbPinOutcome *outcome = outcome_new(pin);
        g_ptr_array_add(outcomes, outcome);
        fetch_one(fetch, pin, outcome);
        if (is_cancelled(task))
            return;
    }
    g_task_return_pointer(task, g_steal_pointer(&outcomes), (GDestroyNotify)g_ptr_array_unref);
}

static Job *
job_new(const char *tree, const char *cache_dir, EbPinProgress progress, gpointer progress_data)
{
    Job *job = g_new0(Job, 1);

    job->tree = g_strdup(tree);
    job->cache_dir = g_strdup(cache_dir);
    eb_pin_progress_relay_init(&job->relay, progress, progress_data);
    return job;
}

void
eb_pin_verify_async(const char *tree, const char *cache_dir, GCancellable *cancellable, GAsyncReadyCallback callback,
                    gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(NULL, cancellable, callback, user_data);

    g_task_set_source_tag(task, eb_pin_job_finish);
    g_task_set_task_data(task, job_new(tree, cache_dir, NULL, NULL), job_free);
    g_task_run_in_thread(task, verify_thread);
}

void
eb_pin_fetch_async(const char *tree, const char *cache_dir, const char *name, EbPinProgress progress,
                   gpointer progress_data, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(NULL, cancellable, callback, user_data);
    Job *job = job_new(tree, cache_dir, progress, progress_data);

    job->name = g_strdup(name);
    g_task_set_source_tag(task, eb_pin_job_finish);
    g_task_set_task_data(task, job, job_free);
    g_task_run_in_thread(task, fetch_thread);
}

GPtrArray *
eb_pin_job_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_pin_job_finish), NULL);
    GPtrArray *outcomes = g_task_propagate_pointer(G_TASK(result), error);

    if (outcomes == NULL)
        eb_error_convert(error, "pins.cancelled", NULL);
    return outcomes;
}

/* Every package for every machine: a cache may be shared, and a lock file that cannot be read keeps all. */
static gboolean
add_wanted(const EbPin *pin, const char *tree, GHashTable *wanted, GError **error)
{
    static const EbMachine machines[] = {{"x64", TRUE}, {"x64", FALSE}, {"arm64", TRUE}};

    if (pin->kind == EB_PIN_ARCHIVE || pin->kind == EB_PIN_FILE)
        g_hash_table_add(wanted, eb_pin_digest_file_name(pin->digest));
    for (guint i = 0; pin->kind == EB_PIN_NPM && i < G_N_ELEMENTS(machines); i++) {
        g_autoptr(GPtrArray) packages = list_packages(pin, tree, &machines[i], error);
        if (packages == NULL)
            return FALSE;
        for (guint j = 0; j < packages->len; j++) {
            const EbPinPackage *package = g_ptr_array_index(packages, j);
            if (eb_pin_digest_is_valid(package->integrity))
                g_hash_table_add(wanted, eb_pin_digest_file_name(package->integrity));
        }
    }
    return TRUE;
}

gboolean
eb_pin_sweep_cache(const char *tree, const char *cache_dir, gboolean dry_run, EbPinCacheCount *count, GError **error)
{
    g_autoptr(EbPins) pins = load(tree, error);
    g_autoptr(GHashTable) wanted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GError *problem = NULL;

    *count = (EbPinCacheCount){0};
    if (pins == NULL)
        return FALSE;
    GPtrArray *all = eb_pins_get_all(pins);
    for (guint i = 0; i < all->len; i++)
        if (!add_wanted(g_ptr_array_index(all, i), tree, wanted, error))
            return FALSE;
    g_autoptr(EbPinCache) cache = open_present(cache_dir, &problem);
    if (problem != NULL) {
        g_propagate_error(error, problem);
        return FALSE;
    }
    return cache == NULL || eb_pin_cache_sweep(cache, wanted, dry_run, count, error);
}
