/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-plugin"

#include "core/plugin/eb-plugin-registry.h"

#include <stdlib.h>
#include <string.h>

#include "core/plugin/eb-plugin-gtype-guard.h"
#include "core/plugin/eb-plugin-loader.h"
#include "core/plugin/eb-plugin-manifest.h"
#include "core/plugin/eb-plugin-registry-private.h"

struct _EbPluginRegistry {
    GObject parent_instance;
    char *account;         /* (owned) */
    char *state_dir;       /* (owned) */
    GPtrArray *records;    /* (element-type EbPluginRecord) (owned): by name, EB_PLUGIN_REGISTRY_MAX at most */
    GPtrArray *quarantine; /* (element-type GObject) (owned): plugins that did not end; kept, since they may yet act */
    EbCredentialLookup lookup;
    gpointer lookup_data; /* (unowned) */
    gboolean dev;
    gboolean told; /* whoever loads tells of failures */
};

G_DEFINE_FINAL_TYPE(EbPluginRegistry, eb_plugin_registry, G_TYPE_OBJECT)

const char *
eb_plugin_state_to_string(EbPluginState state)
{
    static const char *const names[] = {"disabled", "loaded", "running", "stopped", "failed"};

    return (guint)state < G_N_ELEMENTS(names) ? names[state] : "failed";
}

/* --- records --- */

static EbPluginRecord *
record_new(const char *dir, const char *name)
{
    EbPluginRecord *record = g_new0(EbPluginRecord, 1);
    g_autofree char *file = g_strconcat(name, ".so", NULL);

    record->name = g_strdup(name);
    record->path = g_build_filename(dir, name, file, NULL);
    return record;
}

static void
record_drop_plugin(EbPluginRecord *record)
{
    /* A context holds what its plugin provides, a plugin often its context: this breaks the circle. */
    if (record->context != NULL)
        g_object_run_dispose(G_OBJECT(record->context));
    g_clear_object(&record->context);
    g_clear_object(&record->plugin);
}

void
eb_plugin_record_free(EbPluginRecord *record)
{
    if (record == NULL)
        return;
    record_drop_plugin(record);
    g_free(record->name);
    g_free(record->version);
    g_free(record->abi);
    g_free(record->license);
    g_free(record->path);
    g_clear_error(&record->error);
    g_strfreev(record->implements);
    g_strfreev(record->accesses);
    g_strfreev(record->requires);
    g_free(record->config_section);
    g_free(record);
}

void
eb_plugin_record_fail(EbPluginRecord *record, GError *error)
{
    g_clear_error(&record->error);
    record->error = error;
    record->state = EB_PLUGIN_STATE_FAILED;
    eb_log_event(record->told ? G_LOG_LEVEL_INFO : G_LOG_LEVEL_WARNING, G_LOG_DOMAIN, error->message, "EB_PLUGIN",
                 record->name, "EB_REASON", eb_error_get_reason(error), NULL);
}

void
eb_plugin_registry_tell_failures(EbPluginRegistry *self)
{
    g_return_if_fail(EB_IS_PLUGIN_REGISTRY(self));
    self->told = TRUE;
    for (guint i = 0; i < self->records->len; i++)
        ((EbPluginRecord *)self->records->pdata[i])->told = TRUE;
}

static void
record_take_manifest(EbPluginRecord *record, const EbPluginManifest *manifest)
{
    record->version = g_strdup(manifest->version);
    record->abi = g_strdup_printf("%u.%u", manifest->abi_major, manifest->abi_minor);
    record->license = g_strdup(manifest->license);
    record->implements = g_strdupv(manifest->implements);
    record->accesses = g_strdupv(manifest->accesses);
    record->requires = g_strdupv(manifest->requires);
    record->config_section = g_strdup(manifest->config_section);
}

static gboolean
record_is_live(const EbPluginRecord *record)
{
    return record->state == EB_PLUGIN_STATE_LOADED || record->state == EB_PLUGIN_STATE_RUNNING;
}

static int
compare_records(gconstpointer a, gconstpointer b)
{
    const EbPluginRecord *const *left = a;
    const EbPluginRecord *const *right = b;
    int order = strcmp((*left)->name, (*right)->name);

    return order != 0 ? order : strcmp((*left)->path, (*right)->path);
}

static EbPluginRecord *
find_record(EbPluginRegistry *self, const char *name)
{
    for (guint i = 0; i < self->records->len; i++) {
        EbPluginRecord *record = g_ptr_array_index(self->records, i);

        if (strcmp(record->name, name) == 0)
            return record;
    }
    return NULL;
}

/* --- the object --- */

static void
eb_plugin_registry_finalize(GObject *object)
{
    EbPluginRegistry *self = EB_PLUGIN_REGISTRY(object);

    g_ptr_array_unref(self->records);
    g_ptr_array_unref(self->quarantine);
    g_free(self->account);
    g_free(self->state_dir);
    G_OBJECT_CLASS(eb_plugin_registry_parent_class)->finalize(object);
}

static void
eb_plugin_registry_class_init(EbPluginRegistryClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_plugin_registry_finalize;
}

static void
eb_plugin_registry_init(EbPluginRegistry *self)
{
    self->records = g_ptr_array_new_with_free_func((GDestroyNotify)eb_plugin_record_free);
    self->quarantine = g_ptr_array_new_with_free_func(g_object_unref);
}

EbPluginRegistry *
eb_plugin_registry_new(const char *account, const char *state_dir, gboolean dev)
{
    EbPluginRegistry *self = g_object_new(EB_TYPE_PLUGIN_REGISTRY, NULL);

    self->account = g_strdup(account);
    self->state_dir = g_strdup(state_dir);
    self->dev = dev;
    return self;
}

void
eb_plugin_registry_set_lookup(EbPluginRegistry *self, EbCredentialLookup lookup, gpointer user_data)
{
    g_return_if_fail(EB_IS_PLUGIN_REGISTRY(self));
    self->lookup = lookup;
    self->lookup_data = user_data;
    for (guint i = 0; i < self->records->len; i++) {
        EbPluginRecord *record = g_ptr_array_index(self->records, i);

        if (record->context != NULL)
            eb_plugin_context_set_lookup(record->context, lookup, user_data);
    }
}

/* --- loading --- */

typedef struct {
    const char *const *enabled; /* (nullable) */
    const char *const *only;    /* (nullable) */
    EbSectionLookup sections;
    gpointer user_data;
    GHashTable *manifests; /* (element-type EbPluginRecord EbPluginManifest) (owned): still to be opened */
} LoadPlan;

static gboolean
is_wanted(const LoadPlan *plan, const EbPluginManifest *manifest)
{
    if (plan->enabled != NULL && !g_strv_contains(plan->enabled, manifest->name))
        return FALSE;
    if (plan->only == NULL)
        return TRUE;
    for (const char *const *item = plan->only; *item != NULL; item++) {
        g_auto(GStrv) parts = g_strsplit(*item, ":", 2);
        EbExtensionPoint point;

        if (eb_extension_point_from_string(parts[0], &point) &&
            eb_plugin_manifest_implements(manifest, point, parts[1]))
            return TRUE;
    }
    return FALSE;
}

/* Name in the manifest, folder, and no other plugin of that name. */
static gboolean
check_identity(EbPluginRegistry *self, const EbPluginRecord *record, const EbPluginManifest *manifest, GError **error)
{
    const EbPluginRecord *other = find_record(self, record->name);

    if (strcmp(manifest->name, record->name) != 0) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.name", "plugin %s: its manifest says it is %s", record->name,
                     manifest->name);
        return FALSE;
    }
    if (other != NULL) {
        eb_set_error(error, EB_ERROR_EXISTS, "plugin.duplicate-name", "plugin %s of %s is there already, from %s",
                     record->name, record->path, other->path);
        return FALSE;
    }
    return TRUE;
}

/* Reads the manifest of folder @name and adds a record, which waits in the plan when it is to be opened. */
static void
add_folder(EbPluginRegistry *self, const char *dir, const char *name, LoadPlan *plan)
{
    g_autofree char *file = g_strconcat(name, ".plugin", NULL);
    g_autofree char *path = g_build_filename(dir, name, file, NULL);
    g_autoptr(EbPluginManifest) manifest = NULL;
    g_autoptr(GError) error = NULL;
    EbPluginRecord *record = record_new(dir, name);
    record->told = self->told;

    if (!g_file_test(path, G_FILE_TEST_EXISTS | G_FILE_TEST_IS_SYMLINK) &&
        !g_file_test(record->path, G_FILE_TEST_EXISTS | G_FILE_TEST_IS_SYMLINK)) {
        eb_plugin_record_free(record); /* some other folder */
        return;
    }
    manifest = eb_plugin_loader_read_manifest(path, self->dev, &error);
    if (manifest != NULL)
        record_take_manifest(record, manifest);
    if (manifest == NULL || !check_identity(self, record, manifest, &error)) {
        /* What nobody enabled is no failure, though its error is shown. */
        if (plan->enabled == NULL || g_strv_contains(plan->enabled, name))
            eb_plugin_record_fail(record, g_steal_pointer(&error));
        else
            record->error = g_steal_pointer(&error);
    } else if (is_wanted(plan, manifest)) {
        g_hash_table_insert(plan->manifests, record, g_steal_pointer(&manifest));
    }
    g_ptr_array_add(self->records, record);
}

static void
scan_dir(EbPluginRegistry *self, const char *dir, LoadPlan *plan)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) listing = g_dir_open(dir, 0, NULL);
    const char *name;

    while (listing != NULL && (name = g_dir_read_name(listing)) != NULL) {
        if (eb_plugin_name_is_valid(name))
            g_ptr_array_add(names, g_strdup(name));
    }
    g_ptr_array_sort_with_data(names, (GCompareDataFunc)(void (*)(void))g_strcmp0, NULL);
    for (guint i = 0; i < names->len; i++) {
        if (self->records->len < EB_PLUGIN_REGISTRY_MAX)
            add_folder(self, dir, g_ptr_array_index(names, i), plan);
    }
}

/* What was provided must be declared, and belong to nobody else. */
static gboolean
check_provided(EbPluginRegistry *self, EbPluginRecord *record, const EbPluginManifest *manifest, GError **error)
{
    for (guint i = 0; i < eb_plugin_context_get_n_provided(record->context); i++) {
        EbExtensionPoint point;
        const char *name;
        const EbPluginRecord *other = NULL;
        GObject *object = eb_plugin_context_get_provided(record->context, i, &point, &name);
        const char *point_name = eb_extension_point_to_string(point);

        if (!eb_plugin_manifest_implements(manifest, point, name)) {
            eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.undeclared",
                         "plugin %s provides %s %s, which its manifest does not declare", record->name, point_name,
                         name);
            return FALSE;
        }
        if (point == EB_EXTENSION_DOCTOR_CHECK &&
            g_strcmp0(eb_doctor_check_get_info(EB_DOCTOR_CHECK(object))->id, name) != 0) {
            eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.check-id",
                         "plugin %s provides check %s, which says it is %s", record->name, name,
                         eb_doctor_check_get_info(EB_DOCTOR_CHECK(object))->id);
            return FALSE;
        }
        if (eb_plugin_registry_find(self, point, name, &other) != NULL) {
            eb_set_error(error, EB_ERROR_EXISTS, "plugin.extension-taken",
                         "plugin %s provides %s %s, which plugin %s provides already", record->name, point_name, name,
                         other->name);
            return FALSE;
        }
    }
    return TRUE;
}

/* Runs the plugin's code for the first time: create() and configure(). */
static gboolean
configure_record(EbPluginRegistry *self, EbPluginRecord *record, const EbPluginManifest *manifest,
                 const EbPluginDesc *desc, const LoadPlan *plan, GError **error)
{
    g_autoptr(EbConfigSection) section = NULL;

    record->plugin = desc->create();
    if (!EB_IS_PLUGIN(record->plugin)) {
        record->plugin = NULL;
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.create", "plugin %s: create() gave no plugin", record->name);
        return FALSE;
    }
    record->context = eb_plugin_context_new(record->name, self->account, self->state_dir);
    eb_plugin_context_set_lookup(record->context, self->lookup, self->lookup_data);
    if (plan->sections != NULL)
        section = plan->sections(record->name, plan->user_data);
    if (section == NULL)
        section = eb_config_section_new(record->config_section);
    if (!eb_plugin_configure(record->plugin, record->context, section, error)) {
        if (error != NULL && *error == NULL)
            eb_set_error(error, EB_ERROR_FAILED, "plugin.no-reason", "plugin %s failed without saying why",
                         record->name);
        return FALSE;
    }
    return check_provided(self, record, manifest, error);
}

static gboolean open_record(EbPluginRegistry *self, EbPluginRecord *record, LoadPlan *plan);

/* Required plugins are opened first; FALSE when one is not there or failed. */
static gboolean
open_required(EbPluginRegistry *self, EbPluginRecord *record, LoadPlan *plan, GError **error)
{
    for (char **name = record->requires; *name != NULL; name++) {
        EbPluginRecord *required = find_record(self, *name);

        if (required != NULL && g_hash_table_contains(plan->manifests, required))
            open_record(self, required, plan);
        if (required == NULL || !record_is_live(required)) {
            eb_set_error(error, EB_ERROR_UNAVAILABLE, "plugin.requires", "plugin %s requires plugin %s, which is %s",
                         record->name, *name,
                         required == NULL ? "not there" : eb_plugin_state_to_string(required->state));
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean
open_record(EbPluginRegistry *self, EbPluginRecord *record, LoadPlan *plan)
{
    g_autoptr(EbPluginManifest) manifest = NULL;
    g_autoptr(GError) error = NULL;
    const EbPluginDesc *desc;
    gboolean done = FALSE;

    /* Taken out first: a circle of requirements then ends at a plugin that is not loaded. */
    if (!g_hash_table_steal_extended(plan->manifests, record, NULL, (gpointer *)&manifest))
        return FALSE;
    if (open_required(self, record, plan, &error)) {
        desc = eb_plugin_loader_open(record->path, manifest, self->dev, &error);
        if (desc != NULL) {
            eb_plugin_gtype_guard_begin();
            done = configure_record(self, record, manifest, desc, plan, &error);
            eb_plugin_gtype_guard_end(record->name);
        }
    }
    if (done) {
        record->state = EB_PLUGIN_STATE_LOADED;
        return TRUE;
    }
    record_drop_plugin(record);
    eb_plugin_record_fail(record, g_steal_pointer(&error));
    return FALSE;
}

/* Enabled plugins that no folder was found for. */
static void
add_missing(EbPluginRegistry *self, const char *dir, const char *const *enabled)
{
    for (; enabled != NULL && *enabled != NULL; enabled++) {
        EbPluginRecord *record;

        if (find_record(self, *enabled) != NULL || self->records->len >= EB_PLUGIN_REGISTRY_MAX)
            continue;
        record = record_new(dir, *enabled);
        record->told = self->told;
        eb_plugin_record_fail(record, eb_error_new(EB_ERROR_NOT_FOUND, "plugin.missing",
                                                   "plugin %s is enabled and not in %s", *enabled, dir));
        g_ptr_array_add(self->records, record);
    }
}

/* A plugin that an earlier directory lacked may be in this one. */
static void
remove_missing(EbPluginRegistry *self)
{
    for (guint i = self->records->len; i > 0; i--) {
        EbPluginRecord *record = g_ptr_array_index(self->records, i - 1);

        if (record->error != NULL && g_strcmp0(eb_error_get_reason(record->error), "plugin.missing") == 0)
            g_ptr_array_remove_index(self->records, i - 1);
    }
}

void
eb_plugin_registry_load_dir(EbPluginRegistry *self, const char *dir, const char *const *enabled,
                            const char *const *only, EbSectionLookup sections, gpointer user_data)
{
    LoadPlan plan = {.enabled = enabled, .only = only, .sections = sections, .user_data = user_data};
    char *real;

    g_return_if_fail(EB_IS_PLUGIN_REGISTRY(self) && dir != NULL);
    plan.manifests = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)eb_plugin_manifest_free);
    remove_missing(self);
    real = realpath(dir, NULL);
    if (real != NULL)
        scan_dir(self, real, &plan);
    g_ptr_array_sort(self->records, compare_records);
    for (guint i = 0; i < self->records->len; i++) {
        EbPluginRecord *record = g_ptr_array_index(self->records, i);

        if (g_hash_table_contains(plan.manifests, record))
            open_record(self, record, &plan);
    }
    /* A program that opens for some points alone says nothing of the others. */
    if (only == NULL)
        add_missing(self, real != NULL ? real : dir, enabled);
    g_ptr_array_sort(self->records, compare_records);
    g_hash_table_unref(plan.manifests);
    free(real);
}

gboolean
eb_plugin_registry_check_file(const char *so_path, gboolean dev, EbPluginRecord **record, GError **error)
{
    g_autofree char *absolute = NULL;
    g_autofree char *dir = NULL;
    g_autofree char *base = NULL;
    g_autofree char *manifest_path = NULL;
    g_autoptr(EbPluginManifest) manifest = NULL;
    EbPluginRecord *found;

    g_return_val_if_fail(so_path != NULL, FALSE);
    absolute = g_canonicalize_filename(so_path, NULL);
    dir = g_path_get_dirname(absolute);
    base = g_path_get_basename(absolute);
    if (!g_str_has_suffix(base, ".so")) {
        eb_set_error(error, EB_ERROR_INVALID, "plugin.file-name", "%s does not end in .so", so_path);
        return FALSE;
    }
    base[strlen(base) - strlen(".so")] = '\0';
    manifest_path = g_strdup_printf("%s/%s.plugin", dir, base);
    manifest = eb_plugin_loader_read_manifest(manifest_path, dev, error);
    if (manifest == NULL)
        return FALSE;
    if (strcmp(manifest->name, base) != 0) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "plugin.name", "plugin %s: its manifest says it is %s", base,
                     manifest->name);
        return FALSE;
    }
    if (eb_plugin_loader_open(absolute, manifest, dev, error) == NULL)
        return FALSE;
    if (record == NULL)
        return TRUE;
    found = g_new0(EbPluginRecord, 1);
    found->name = g_strdup(manifest->name);
    found->path = g_steal_pointer(&absolute);
    found->state = EB_PLUGIN_STATE_DISABLED;
    record_take_manifest(found, manifest);
    *record = found;
    return TRUE;
}

/* --- start and stop --- */

/* Quarantined plugins leave their records, so that nothing finds them, and stay alive in case they still act. */
static void
move_to_quarantine(EbPluginRegistry *self)
{
    for (guint i = 0; i < self->records->len; i++) {
        EbPluginRecord *record = g_ptr_array_index(self->records, i);

        if (record->state != EB_PLUGIN_STATE_FAILED || record->plugin == NULL)
            continue;
        g_ptr_array_add(self->quarantine, g_object_ref(record->plugin));
        record_drop_plugin(record);
    }
}

static void
run_phase(EbPluginRegistry *self, EbPluginPhaseKind kind, guint deadline_ms, GCancellable *cancellable,
          GAsyncReadyCallback callback, gpointer user_data, gpointer tag)
{
    GTask *task = g_task_new(self, cancellable, callback, user_data);

    g_task_set_source_tag(task, tag);
    g_task_set_check_cancellable(task, FALSE);
    eb_plugin_phase_run(kind, self->records, deadline_ms, task);
}

void
eb_plugin_registry_start_async(EbPluginRegistry *self, guint deadline_ms, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_PLUGIN_REGISTRY(self));
    run_phase(self, EB_PLUGIN_PHASE_START, deadline_ms, cancellable, callback, user_data,
              eb_plugin_registry_start_async);
}

gboolean
eb_plugin_registry_start_finish(EbPluginRegistry *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    move_to_quarantine(self);
    return g_task_propagate_boolean(G_TASK(result), error);
}

void
eb_plugin_registry_stop_async(EbPluginRegistry *self, guint deadline_ms, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_PLUGIN_REGISTRY(self));
    run_phase(self, EB_PLUGIN_PHASE_STOP, deadline_ms, cancellable, callback, user_data, eb_plugin_registry_stop_async);
}

gboolean
eb_plugin_registry_stop_finish(EbPluginRegistry *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    move_to_quarantine(self);
    return g_task_propagate_boolean(G_TASK(result), error);
}

/* --- looking extensions up --- */

GPtrArray *
eb_plugin_registry_get_records(EbPluginRegistry *self)
{
    g_return_val_if_fail(EB_IS_PLUGIN_REGISTRY(self), NULL);
    return self->records;
}

GObject *
eb_plugin_registry_find(EbPluginRegistry *self, EbExtensionPoint point, const char *name, const EbPluginRecord **record)
{
    g_return_val_if_fail(EB_IS_PLUGIN_REGISTRY(self) && name != NULL, NULL);
    for (guint i = 0; i < self->records->len; i++) {
        const EbPluginRecord *candidate = g_ptr_array_index(self->records, i);

        if (!record_is_live(candidate))
            continue;
        for (guint n = 0; n < eb_plugin_context_get_n_provided(candidate->context); n++) {
            EbExtensionPoint found_point;
            const char *found_name;
            GObject *object = eb_plugin_context_get_provided(candidate->context, n, &found_point, &found_name);

            if (found_point != point || strcmp(found_name, name) != 0)
                continue;
            if (record != NULL)
                *record = candidate;
            return object;
        }
    }
    return NULL;
}

GPtrArray *
eb_plugin_registry_list(EbPluginRegistry *self, EbExtensionPoint point)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);

    g_return_val_if_fail(EB_IS_PLUGIN_REGISTRY(self), list);
    for (guint i = 0; i < self->records->len; i++) {
        const EbPluginRecord *record = g_ptr_array_index(self->records, i);

        if (!record_is_live(record))
            continue;
        for (guint n = 0; n < eb_plugin_context_get_n_provided(record->context); n++) {
            EbExtensionPoint found_point;
            const char *name;
            GObject *object = eb_plugin_context_get_provided(record->context, n, &found_point, &name);
            EbExtension *extension;

            if (found_point != point)
                continue;
            extension = g_new0(EbExtension, 1);
            extension->plugin = record->name;
            extension->name = name;
            extension->object = object;
            g_ptr_array_add(list, extension);
        }
    }
    return list;
}
