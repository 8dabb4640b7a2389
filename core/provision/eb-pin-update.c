/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-pin-update.h"

#include "core/config/eb-pin-edit.h"
#include "core/provision/eb-debian.h"
#include "core/provision/eb-npm-lock.h"
#include "core/provision/eb-pin-progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MAX_PAGE (1024 * 1024) /* a page that names versions */
#define MAX_MATCHES 10000

/* A file that is replaced at the end. */
typedef struct {
    char *path;
    GBytes *content;
} Pending;

/* The task's data: what was asked for, and what is known so far. */
typedef struct {
    char *tree;
    char *cache_dir;
    gboolean plan_only;
    EbPinProgressRelay relay;
    GCancellable *cancellable; /* (owned) (nullable) */

    char *real_tree; /* where the files are that the tree's are links to */
    char *text;      /* of pins.toml, as it will be */
    EbPins *pins;
    EbPinCache *cache; /* (nullable): of a plan, which stages nothing */
    EbPinFetch *fetch;
    GPtrArray *pending; /* (element-type Pending) */
} Update;

static void
pending_free(gpointer data)
{
    Pending *pending = data;

    g_free(pending->path);
    g_bytes_unref(pending->content);
    g_free(pending);
}

static void
update_free(gpointer data)
{
    Update *self = data;

    g_clear_pointer(&self->fetch, eb_pin_fetch_free);
    g_clear_pointer(&self->cache, eb_pin_cache_free);
    g_clear_pointer(&self->pins, eb_pins_free);
    g_clear_pointer(&self->pending, g_ptr_array_unref);
    g_clear_object(&self->cancellable);
    eb_pin_progress_relay_clear(&self->relay);
    g_free(self->text);
    g_free(self->real_tree);
    g_free(self->tree);
    g_free(self->cache_dir);
    g_free(self);
}

/* Replaces one value in a text that is not yet the update's. */
static gboolean
edit(char **text, const EbPin *pin, const char *key, const char *value, GError **error)
{
    char *edited = eb_pin_edit_set(*text, pin, key, value, error);

    if (edited == NULL)
        return FALSE;
    g_free(*text);
    *text = edited;
    return TRUE;
}

/* All of a pin's edits are done: from now on they are the update's. @text: (transfer full) */
static void
accept(Update *self, char *text)
{
    g_free(self->text);
    self->text = text;
}

static void
add_pending(Update *self, const char *below, GBytes *content)
{
    Pending *pending = g_new0(Pending, 1);

    pending->path = g_build_filename(self->real_tree, "guest", below, NULL);
    pending->content = g_bytes_ref(content);
    g_ptr_array_add(self->pending, pending);
}

static gboolean
update_npm(Update *self, const EbPin *pin, EbPinChange *change, GError **error)
{
    GError *problem = NULL;
    g_autofree char *version = eb_npm_find_newer(pin, "/", self->cancellable, &problem);

    if (problem != NULL) {
        g_propagate_error(error, problem);
        return FALSE;
    }
    if (version == NULL)
        return TRUE;
    change->new_version = g_steal_pointer(&version);
    if (self->plan_only)
        return TRUE;
    g_autoptr(EbNpmLock) made = eb_npm_lock_make(pin, change->new_version, self->cancellable, error);
    g_autofree char *text = g_strdup(self->text);
    if (made == NULL || !edit(&text, pin, "version", change->new_version, error) ||
        !edit(&text, pin, "integrity", made->integrity, error) ||
        !edit(&text, pin, "lock_sha256", made->lock_sha256, error))
        return FALSE;
    g_autofree char *dir = g_path_get_dirname(pin->lock);
    g_autofree char *manifest = g_build_filename(dir, "package.json", NULL);
    g_autoptr(GBytes) manifest_text = g_bytes_new(made->package_json, strlen(made->package_json));
    add_pending(self, manifest, manifest_text);
    add_pending(self, pin->lock, made->lock);
    change->new_digest = g_strdup(made->integrity);
    accept(self, g_steal_pointer(&text));
    return TRUE;
}

static gboolean
update_deb(Update *self, const EbPin *pin, EbPinChange *change, GError **error)
{
    g_autofree char *candidate = eb_debian_candidate(pin->package, error);

    if (candidate == NULL)
        return FALSE;
    if (!eb_debian_is_at_least(candidate, pin->version)) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "pins.deb", "apt would install %s %s, %s or later is needed",
                     pin->package, candidate, pin->version);
        return FALSE;
    }
    change->note = g_strdup_printf("apt would install %s", candidate);
    if (!pin->track || eb_debian_is_at_least(pin->version, candidate))
        return TRUE;
    if (!eb_pin_version_is_valid(candidate)) {
        eb_set_error(error, EB_ERROR_INVALID, "pins.deb", "apt names a version of %s that cannot be pinned",
                     pin->package);
        return FALSE;
    }
    change->new_version = g_steal_pointer(&candidate);
    g_autofree char *text = g_strdup(self->text);
    if (!self->plan_only && !edit(&text, pin, "at_least", change->new_version, error))
        return FALSE;
    accept(self, g_steal_pointer(&text));
    return TRUE;
}

/* (transfer full) (nullable): the newest version that the page of an archive names; NULL without @error: none newer */
static char *
find_on_page(Update *self, const EbPin *pin, GError **error)
{
    g_autofree char *url = eb_pin_expand_url(pin->latest, pin->version);
    g_autoptr(GBytes) page = eb_pin_fetch_text(self->fetch, url, MAX_PAGE, error);
    g_autoptr(GRegex) regex = page != NULL ? g_regex_new(pin->latest_pattern, 0, 0, error) : NULL;
    g_autoptr(GPtrArray) versions = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GMatchInfo) match = NULL;
    gsize length = 0;

    if (regex == NULL)
        return NULL;
    const char *bytes = g_bytes_get_data(page, &length);
    g_autofree char *text = g_utf8_make_valid(bytes != NULL ? bytes : "", (gssize)length);
    if (!g_regex_match_full(regex, text, -1, 0, 0, &match, error)) {
        if (error == NULL || *error == NULL)
            eb_set_error(error, EB_ERROR_NOT_FOUND, "pins.update", "%s names no version (latest_pattern finds nothing)",
                         url);
        else
            eb_error_convert(error, "pins.update", url);
        return NULL;
    }
    while (g_match_info_matches(match) && versions->len < MAX_MATCHES) {
        g_ptr_array_add(versions, g_match_info_fetch(match, 1));
        g_match_info_next(match, NULL);
    }
    return g_strdup(eb_pin_version_pick(versions, pin->version, pin->series));
}

static gboolean
update_archive(Update *self, const EbPin *pin, EbPinChange *change, GError **error)
{
    GError *problem = NULL;

    change->is_signed = pin->minisign != NULL;
    if (pin->latest == NULL) {
        change->note = g_strdup("no page that names versions is given (latest, latest_pattern)");
        return TRUE;
    }
    g_autofree char *version = find_on_page(self, pin, &problem);
    if (problem != NULL) {
        g_propagate_error(error, problem);
        return FALSE;
    }
    if (version == NULL)
        return TRUE;
    change->new_version = g_steal_pointer(&version);
    if (self->plan_only)
        return TRUE;
    g_autofree char *digest = eb_pin_fetch_learn(self->fetch, pin, change->new_version, error);
    g_autofree char *text = g_strdup(self->text);
    if (digest == NULL || !edit(&text, pin, "version", change->new_version, error) ||
        !edit(&text, pin, strlen(pin->digest) == 64 ? "sha256" : "sha512", digest, error))
        return FALSE;
    change->new_digest = g_steal_pointer(&digest);
    accept(self, g_steal_pointer(&text));
    return TRUE;
}

static EbPinChange *
look_at(Update *self, const EbPin *pin)
{
    EbPinChange *change = g_new0(EbPinChange, 1);
    gboolean done = TRUE;

    change->kind = pin->kind;
    change->name = g_strdup(pin->name);
    change->old_version = g_strdup(pin->version);
    change->old_digest = g_strdup(pin->digest);
    eb_pin_progress_relay_tell(pin->name, &self->relay);
    if (pin->kind == EB_PIN_NPM)
        done = update_npm(self, pin, change, &change->error);
    else if (pin->kind == EB_PIN_DEB)
        done = update_deb(self, pin, change, &change->error);
    else if (pin->kind == EB_PIN_ARCHIVE)
        done = update_archive(self, pin, change, &change->error);
    else
        change->note = g_strdup("a file of this machine: nobody to ask");
    change->news = !done ? EB_PIN_NEWS_FAILED : change->new_version != NULL ? EB_PIN_NEWS_NEWER : EB_PIN_NEWS_NONE;
    return change;
}

static gboolean
open_update(Update *self, GError **error)
{
    g_autofree char *path = g_build_filename(self->tree, "pins.toml", NULL);
    g_autofree char *real = realpath(path, NULL);

    if (real == NULL) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "pins.missing", "%s: %s", path, g_strerror(errno));
        return FALSE;
    }
    self->real_tree = g_path_get_dirname(real);
    if (!self->plan_only && (access(self->real_tree, W_OK) != 0 || access(real, W_OK) != 0)) {
        eb_set_error(error, EB_ERROR_DENIED, "pins.update",
                     "%s cannot be changed by this account (name a source tree: errand-box pins update --tree DIR)",
                     real);
        return FALSE;
    }
    if (!g_file_get_contents(real, &self->text, NULL, error)) {
        eb_error_convert(error, "pins.missing", NULL);
        return FALSE;
    }
    self->pins = eb_pins_parse(self->text, strlen(self->text), real, error);
    if (self->pins == NULL)
        return FALSE;
    self->cache = self->plan_only ? NULL : eb_pin_cache_open(self->cache_dir, TRUE, error);
    if (!self->plan_only && self->cache == NULL)
        return FALSE;
    self->fetch = eb_pin_fetch_new(self->cache, self->real_tree, &EB_HTTP_LIMITS_FILE, self->cancellable);
    self->pending = g_ptr_array_new_with_free_func(pending_free);
    return TRUE;
}

/* The edited text says what was found and otherwise what it said before. */
static gboolean
check_text(Update *self, GPtrArray *changes, GError **error)
{
    g_autoptr(EbPins) pins = eb_pins_parse(self->text, strlen(self->text), "pins.toml", error);

    if (pins == NULL)
        return FALSE;
    GPtrArray *all = eb_pins_get_all(pins);
    for (guint i = 0; i < changes->len; i++) {
        const EbPinChange *change = g_ptr_array_index(changes, i);
        const EbPin *pin = i < all->len ? g_ptr_array_index(all, i) : NULL;
        gboolean newer = change->news == EB_PIN_NEWS_NEWER;
        const char *version = newer ? change->new_version : change->old_version;
        const char *digest = newer && change->new_digest != NULL ? change->new_digest : change->old_digest;
        if (pin != NULL && all->len == changes->len && strcmp(pin->name, change->name) == 0 &&
            g_strcmp0(pin->version, version) == 0 && g_strcmp0(pin->digest, digest) == 0)
            continue;
        eb_set_error(error, EB_ERROR_INTEGRITY, "pins.edit",
                     "pins.toml would not say what it should of %s: it was left as it is", change->name);
        return FALSE;
    }
    return TRUE;
}

static gboolean
replace(const char *path, const char *content, gsize length, GError **error)
{
    if (g_file_set_contents_full(path, content, (gssize)length,
                                 G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE, 0644, error))
        return TRUE;
    eb_error_convert(error, "pins.update", NULL);
    return FALSE;
}

/* pins.toml last: until then it names what it named before, and the next run does all of this again. */
static gboolean
write_all(Update *self, GError **error)
{
    g_autofree char *path = g_build_filename(self->real_tree, "pins.toml", NULL);
    g_autofree char *guest_dir = g_build_filename(self->real_tree, "guest", NULL);

    for (guint i = 0; i < self->pending->len; i++) {
        const Pending *pending = g_ptr_array_index(self->pending, i);
        gsize length = 0;
        const char *content = g_bytes_get_data(pending->content, &length);
        if (!replace(pending->path, content, length, error))
            return FALSE;
    }
    if (!replace(path, self->text, strlen(self->text), error))
        return FALSE;
    g_autoptr(EbPins) written = eb_pins_load(path, error);
    return written != NULL && eb_pins_verify(written, guest_dir, error);
}

/* One update of a tree at a time. */
static int
lock_tree(Update *self, GError **error)
{
    int fd = open(self->real_tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    eb_set_error(error, errno == EWOULDBLOCK ? EB_ERROR_BUSY : EB_ERROR_FAILED, "pins.update", "%s: %s",
                 self->real_tree, errno == EWOULDBLOCK ? "another update of it is running" : g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static gboolean
run(Update *self, GPtrArray *changes, GError **error)
{
    GPtrArray *all = eb_pins_get_all(self->pins);

    for (guint i = 0; i < all->len; i++) {
        g_ptr_array_add(changes, look_at(self, g_ptr_array_index(all, i)));
        if (g_cancellable_is_cancelled(self->cancellable)) {
            eb_set_error(error, EB_ERROR_CANCELLED, "pins.cancelled", "cancelled: nothing was changed");
            return FALSE;
        }
    }
    if (self->plan_only || eb_pin_update_count(changes, EB_PIN_NEWS_NEWER) == 0)
        return TRUE;
    return check_text(self, changes, error) && write_all(self, error);
}

static void
update_thread(GTask *task, gpointer source, gpointer task_data, GCancellable *cancellable)
{
    Update *self = task_data;
    g_autoptr(GPtrArray) changes = g_ptr_array_new_with_free_func((GDestroyNotify)eb_pin_change_free);
    GError *error = NULL;

    if (!open_update(self, &error)) {
        g_task_return_error(task, error);
        return;
    }
    eb_pin_fetch_set_progress(self->fetch, eb_pin_progress_relay_tell, &self->relay);
    int lock = self->plan_only ? -1 : lock_tree(self, &error);
    if (error == NULL)
        run(self, changes, &error);
    if (lock >= 0)
        close(lock);
    if (error != NULL)
        g_task_return_error(task, error);
    else
        g_task_return_pointer(task, g_steal_pointer(&changes), (GDestroyNotify)g_ptr_array_unref);
}

void
eb_pin_update_async(const char *tree, const char *cache_dir, gboolean plan_only, EbPinProgress progress,
                    gpointer progress_data, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(NULL, cancellable, callback, user_data);
    Update *self = g_new0(Update, 1);

    self->tree = g_strdup(tree);
    self->cache_dir = g_strdup(cache_dir);
    self->plan_only = plan_only;
    eb_pin_progress_relay_init(&self->relay, progress, progress_data);
    self->cancellable = cancellable != NULL ? g_object_ref(cancellable) : NULL;
    g_task_set_source_tag(task, eb_pin_update_async);
    g_task_set_task_data(task, self, update_free);
    g_task_set_check_cancellable(task, FALSE);
    g_task_run_in_thread(task, update_thread);
}

GPtrArray *
eb_pin_update_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_pin_update_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
