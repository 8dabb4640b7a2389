/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-pin-fetch.h"

#include "core/config/eb-minisign.h"
#include "core/provision/eb-debian.h"
#include "core/provision/eb-machine.h"
#include "core/provision/eb-npm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK 65536

struct _EbPinFetch {
    EbPinCache *cache; /* (not owned) */
    char *tree;
    EbHttpLimits limits;
    GCancellable *cancellable; /* (owned) (nullable) */
    EbPinProgress progress;    /* (nullable) */
    gpointer progress_data;
    EbHttpGet *http;     /* (owned) (nullable): for archives; made on first use, in the thread that uses it */
    EbHttpGet *npm_http; /* (owned) (nullable): for packages: npm may have a route of its own */
};

EbPinFetch *
eb_pin_fetch_new(EbPinCache *cache, const char *tree, const EbHttpLimits *limits, GCancellable *cancellable)
{
    EbPinFetch *self = g_new0(EbPinFetch, 1);

    self->cache = cache;
    self->tree = g_strdup(tree);
    self->limits = *limits;
    self->cancellable = cancellable != NULL ? g_object_ref(cancellable) : NULL;
    return self;
}

void
eb_pin_fetch_set_progress(EbPinFetch *self, EbPinProgress progress, gpointer user_data)
{
    self->progress = progress;
    self->progress_data = user_data;
}

void
eb_pin_fetch_free(EbPinFetch *self)
{
    g_clear_pointer(&self->http, eb_http_get_free);
    g_clear_pointer(&self->npm_http, eb_http_get_free);
    g_clear_object(&self->cancellable);
    g_free(self->tree);
    g_free(self);
}

EbPinExpected
eb_pin_package_expected(const EbPinPackage *package)
{
    return (EbPinExpected){.what = package->name, .digest = package->integrity, .max_size = EB_PIN_MAX_PACKAGE};
}

EbPinExpected
eb_pin_expected(const EbPin *pin)
{
    return (EbPinExpected){
        .what = pin->name, .digest = pin->digest, .max_size = pin->max_size, .minisign = pin->minisign};
}

char *
eb_pin_file_path(const EbPin *pin, const char *tree)
{
    return pin->path[0] == '/' ? g_strdup(pin->path) : g_build_filename(tree, pin->path, NULL);
}

static EbHttpGet *
get_http(EbPinFetch *self)
{
    if (self->http == NULL)
        self->http = eb_http_get_new(NULL, &self->limits, self->cancellable, NULL);
    return self->http;
}

/* TRUE when it is there and fine. One that is not what it should be is dropped: it is fetched again. */
static gboolean
is_cached(EbPinFetch *self, const EbPinExpected *expected)
{
    g_autoptr(GError) problem = NULL;
    gboolean present = FALSE;
    gboolean fine = eb_pin_cache_check(self->cache, expected, &present, &problem);

    if (fine && present)
        return TRUE;
    if (!fine)
        g_message("the cached file is not used: %s", problem->message);
    eb_pin_cache_drop(self->cache, expected->digest);
    return FALSE;
}

/* (transfer full) (nullable): what came from @url, nothing checked yet; tried again where that may help */
static EbPinStaged *
stage_url(EbPinFetch *self, EbHttpGet *http, const char *url, const EbPinExpected *expected, GError **error)
{
    guint tries = 0;

    for (;;) {
        g_autoptr(EbPinStaged) staged = eb_pin_cache_stage(self->cache, expected, error);
        GError *problem = NULL;
        if (staged == NULL)
            return NULL;
        if (eb_http_get_stream(http, url, expected->max_size, eb_pin_staged_write, staged, &problem))
            return g_steal_pointer(&staged);
        if (!eb_http_get_may_retry(http, problem, &tries)) {
            g_propagate_error(error, problem);
            return NULL;
        }
        g_clear_error(&problem);
    }
}

static void
tell(EbPinFetch *self, const char *name, const char *version)
{
    if (self->progress == NULL)
        return;
    g_autofree char *what = g_strdup_printf("%s %s", name, version != NULL ? version : "");
    self->progress(g_strchomp(what), self->progress_data);
}

/* (transfer full): scopes that @packages are of (array zero-terminated=1) */
static char **
list_scopes(GPtrArray *packages)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GStrvBuilder) scopes = g_strv_builder_new();

    for (guint i = 0; i < packages->len; i++) {
        const EbPinPackage *package = g_ptr_array_index(packages, i);
        const char *slash = strchr(package->name, '/');
        g_autofree char *scope = slash != NULL ? g_strndup(package->name, (gsize)(slash - package->name)) : NULL;
        if (scope != NULL && g_hash_table_add(seen, g_strdup(scope)))
            g_strv_builder_add(scopes, scope);
    }
    return g_strv_builder_end(scopes);
}

static gboolean
fetch_package(EbPinFetch *self, const EbNpmRegistry *registry, const EbPinPackage *package, guint64 *bytes,
              GError **error)
{
    EbPinExpected expected = eb_pin_package_expected(package);
    g_autofree char *url = eb_npm_registry_archive_url(registry, package->name, package->version);

    tell(self, package->name, package->version);
    g_autoptr(EbPinStaged) staged = stage_url(self, self->npm_http, url, &expected, error);
    if (staged == NULL || !eb_pin_staged_commit(staged, NULL, error))
        return FALSE;
    *bytes += eb_pin_staged_size(staged);
    return TRUE;
}

gboolean
eb_pin_fetch_packages(EbPinFetch *self, GPtrArray *packages, EbPinFetched *fetched, GError **error)
{
    g_autoptr(GPtrArray) missing = g_ptr_array_new();
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < packages->len; i++) {
        EbPinPackage *package = g_ptr_array_index(packages, i);
        EbPinExpected expected = eb_pin_package_expected(package);
        if (!g_hash_table_add(seen, package->integrity)) /* one package may stand in several places */
            continue;
        fetched->files++;
        if (!is_cached(self, &expected))
            g_ptr_array_add(missing, package);
    }
    if (missing->len == 0)
        return TRUE;
    g_auto(GStrv) scopes = list_scopes(missing);
    g_autoptr(EbNpmRegistry) registry = eb_npm_registry_read((const char *const *)scopes, self->cancellable, error);
    if (registry == NULL)
        return FALSE;
    const EbHttpRoute route = {.ca_file = registry->ca_file, .proxy = registry->proxy, .no_proxy = registry->no_proxy};
    if (self->npm_http == NULL)
        self->npm_http = eb_http_get_new(&route, &self->limits, self->cancellable, error);
    for (guint i = 0; self->npm_http != NULL && i < missing->len; i++) {
        if (!fetch_package(self, registry, g_ptr_array_index(missing, i), &fetched->bytes, error))
            return FALSE;
        fetched->fetched++;
    }
    return self->npm_http != NULL;
}

static gboolean
fetch_npm(EbPinFetch *self, const EbPin *pin, EbPinFetched *fetched, GError **error)
{
    g_autofree char *guest_dir = g_build_filename(self->tree, "guest", NULL);
    EbMachine machine;

    if (!eb_machine_find(&machine, error))
        return FALSE;
    g_autoptr(GBytes) lock = eb_pins_read_lock(pin, guest_dir, error);
    g_autoptr(GPtrArray) packages =
        lock != NULL ? eb_pins_list_packages(pin, lock, machine.cpu, machine.avx2, error) : NULL;
    return packages != NULL && eb_pin_fetch_packages(self, packages, fetched, error);
}

/* (transfer full) (nullable): the file of @version from the first place that has it, and its signature */
static EbPinStaged *
stage_archive(EbPinFetch *self, const EbPin *pin, const char *version, const EbPinExpected *expected,
              GBytes **signature, GError **error)
{
    GError *problem = NULL;

    for (char **place = pin->urls; *place != NULL; place++) {
        g_autofree char *url = eb_pin_expand_url(*place, version);
        g_autofree char *own = pin->signature != NULL ? eb_pin_expand_url(pin->signature, version)
                                                      : g_strconcat(url, EB_PIN_SIGNATURE_SUFFIX, NULL);
        g_autoptr(GBytes) text = NULL;
        g_clear_error(&problem);
        if (pin->minisign != NULL)
            text = eb_http_get_bytes(get_http(self), own, EB_MINISIGN_MAX_BYTES, &problem);
        EbPinStaged *staged = problem == NULL ? stage_url(self, get_http(self), url, expected, &problem) : NULL;
        if (staged != NULL) {
            *signature = g_steal_pointer(&text);
            return staged;
        }
        if (g_error_matches(problem, EB_ERROR, EB_ERROR_CANCELLED))
            break;
        if (place[1] != NULL)
            g_message("%s: the next place is tried: %s", pin->name, problem->message);
    }
    g_propagate_error(error, problem);
    return NULL;
}

static gboolean
fetch_archive(EbPinFetch *self, const EbPin *pin, EbPinFetched *fetched, GError **error)
{
    EbPinExpected expected = eb_pin_expected(pin);
    g_autoptr(GBytes) signature = NULL;

    fetched->files++;
    if (is_cached(self, &expected))
        return TRUE;
    tell(self, pin->name, pin->version);
    g_autoptr(EbPinStaged) staged = stage_archive(self, pin, pin->version, &expected, &signature, error);
    if (staged == NULL || !eb_pin_staged_commit(staged, signature, error))
        return FALSE;
    fetched->fetched++;
    fetched->bytes += eb_pin_staged_size(staged);
    return TRUE;
}

char *
eb_pin_fetch_learn(EbPinFetch *self, const EbPin *pin, const char *version, GError **error)
{
    EbPinExpected expected = eb_pin_expected(pin);
    g_autoptr(GBytes) signature = NULL;

    tell(self, pin->name, version);
    g_autoptr(EbPinStaged) staged = stage_archive(self, pin, version, &expected, &signature, error);
    return staged != NULL ? eb_pin_staged_learn(staged, signature, error) : NULL;
}

GBytes *
eb_pin_fetch_text(EbPinFetch *self, const char *url, gsize max_bytes, GError **error)
{
    return eb_http_get_bytes(get_http(self), url, max_bytes, error);
}

static gboolean
copy_file(EbPinFetch *self, int fd, const char *path, EbPinStaged *staged, GError **error)
{
    g_autofree guint8 *chunk = g_malloc(CHUNK);

    for (;;) {
        gssize n = read(fd, chunk, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            eb_set_error(error, EB_ERROR_FAILED, "pins.file", "%s: %s", path, g_strerror(errno));
        if (n <= 0)
            return n == 0;
        if (!eb_pin_staged_write(chunk, (gsize)n, staged, error))
            return FALSE;
        if (g_cancellable_is_cancelled(self->cancellable)) {
            eb_set_error(error, EB_ERROR_CANCELLED, "pins.cancelled", "fetching was cancelled");
            return FALSE;
        }
    }
}

static gboolean
fetch_file(EbPinFetch *self, const EbPin *pin, EbPinFetched *fetched, GError **error)
{
    EbPinExpected expected = eb_pin_expected(pin);
    g_autofree char *path = eb_pin_file_path(pin, self->tree);
    struct stat info;

    fetched->files++;
    if (is_cached(self, &expected))
        return TRUE;
    tell(self, pin->name, pin->version);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        eb_set_error(error, fd < 0 && errno == ENOENT ? EB_ERROR_NOT_FOUND : EB_ERROR_FAILED, "pins.file", "%s: %s",
                     path, fd < 0 ? g_strerror(errno) : "is no regular file");
        if (fd >= 0)
            close(fd);
        return FALSE;
    }
    g_autoptr(EbPinStaged) staged = eb_pin_cache_stage(self->cache, &expected, error);
    gboolean done =
        staged != NULL && copy_file(self, fd, path, staged, error) && eb_pin_staged_commit(staged, NULL, error);
    close(fd);
    if (!done)
        return FALSE;
    fetched->fetched++;
    fetched->bytes += eb_pin_staged_size(staged);
    return TRUE;
}

/* apt fetches, and verifies, when something is installed; here only: does it have what is needed? */
static gboolean
check_deb(const EbPin *pin, EbPinFetched *fetched, GError **error)
{
    g_autofree char *candidate = eb_debian_candidate(pin->package, error);

    fetched->files++;
    if (candidate == NULL)
        return FALSE;
    if (eb_debian_is_at_least(candidate, pin->version))
        return TRUE;
    eb_set_error(error, EB_ERROR_NOT_FOUND, "pins.deb", "apt would install %s %s, %s or later is needed", pin->package,
                 candidate, pin->version);
    return FALSE;
}

gboolean
eb_pin_fetch_pin(EbPinFetch *self, const EbPin *pin, EbPinFetched *fetched, GError **error)
{
    switch (pin->kind) {
    case EB_PIN_NPM:
        return fetch_npm(self, pin, fetched, error);
    case EB_PIN_DEB:
        return check_deb(pin, fetched, error);
    case EB_PIN_ARCHIVE:
        return fetch_archive(self, pin, fetched, error);
    case EB_PIN_FILE:
    default:
        return fetch_file(self, pin, fetched, error);
    }
}
