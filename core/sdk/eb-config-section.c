/* SPDX-License-Identifier: MIT */
#include "eb-config-section.h"

#include <string.h>

#include "eb-error.h"

typedef struct {
    GVariant *value; /* (owned) */
    char *file;      /* (owned) */
    guint line;
} Entry;

struct _EbConfigSection {
    GObject parent_instance;
    char *path;           /* (owned) */
    GHashTable *entries;  /* (element-type utf8 Entry) (owned) */
    GHashTable *children; /* (element-type utf8 EbConfigSection) (owned) */
    GHashTable *asked;    /* (element-type utf8) (owned): keys and sub-tables a getter was called for */
};

G_DEFINE_FINAL_TYPE(EbConfigSection, eb_config_section, G_TYPE_OBJECT)

static void
entry_free(gpointer data)
{
    Entry *entry = data;

    g_variant_unref(entry->value);
    g_free(entry->file);
    g_free(entry);
}

static void
eb_config_section_finalize(GObject *object)
{
    EbConfigSection *self = EB_CONFIG_SECTION(object);

    g_free(self->path);
    g_hash_table_unref(self->entries);
    g_hash_table_unref(self->children);
    g_hash_table_unref(self->asked);
    G_OBJECT_CLASS(eb_config_section_parent_class)->finalize(object);
}

static void
eb_config_section_class_init(EbConfigSectionClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_config_section_finalize;
}

static void
eb_config_section_init(EbConfigSection *self)
{
    self->entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, entry_free);
    self->children = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_object_unref);
    self->asked = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

EbConfigSection *
eb_config_section_new(const char *path)
{
    EbConfigSection *self = g_object_new(EB_TYPE_CONFIG_SECTION, NULL);

    self->path = g_strdup(path != NULL ? path : "");
    return self;
}

void
eb_config_section_set(EbConfigSection *self, const char *key, GVariant *value, const char *file, guint line)
{
    Entry *entry;

    g_return_if_fail(EB_IS_CONFIG_SECTION(self) && key != NULL && value != NULL);
    entry = g_new0(Entry, 1);
    entry->value = g_variant_ref_sink(value);
    entry->file = g_strdup(file);
    entry->line = line;
    g_hash_table_insert(self->entries, g_strdup(key), entry);
}

void
eb_config_section_add_child(EbConfigSection *self, const char *name, EbConfigSection *child)
{
    g_return_if_fail(EB_IS_CONFIG_SECTION(self) && name != NULL && EB_IS_CONFIG_SECTION(child));
    /* Inserted, here as there, and never replaced with its name: names that were given out stay what they are. */
    g_hash_table_insert(self->children, g_strdup(name), g_object_ref(child));
}

const char *
eb_config_section_get_path(EbConfigSection *self)
{
    g_return_val_if_fail(EB_IS_CONFIG_SECTION(self), NULL);
    return self->path;
}

static Entry *
ask(EbConfigSection *self, const char *key)
{
    if (!g_hash_table_contains(self->asked, key))
        g_hash_table_add(self->asked, g_strdup(key));
    return g_hash_table_lookup(self->entries, key);
}

gboolean
eb_config_section_has(EbConfigSection *self, const char *key)
{
    g_return_val_if_fail(EB_IS_CONFIG_SECTION(self) && key != NULL, FALSE);
    return ask(self, key) != NULL;
}

static char *
entry_where(const Entry *entry)
{
    if (entry->file == NULL)
        return g_strdup("default");
    return entry->line > 0 ? g_strdup_printf("%s:%u", entry->file, entry->line) : g_strdup(entry->file);
}

/* The first key of the table in its file, or of a table in it: a table has no line of its own. */
static const Entry *
first_entry(EbConfigSection *self)
{
    const Entry *first = NULL;
    GHashTableIter iter;
    gpointer value;

    if (g_hash_table_size(self->entries) == 0) {
        g_hash_table_iter_init(&iter, self->children);
        while (g_hash_table_iter_next(&iter, NULL, &value)) {
            const Entry *entry = first_entry(value);
            if (entry != NULL && (first == NULL || entry->line < first->line))
                first = entry;
        }
        return first;
    }

    g_hash_table_iter_init(&iter, self->entries);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Entry *entry = value;

        if (entry->file != NULL && (first == NULL || entry->line < first->line))
            first = entry;
    }
    return first;
}

char *
eb_config_section_where(EbConfigSection *self, const char *key)
{
    const Entry *entry;

    g_return_val_if_fail(EB_IS_CONFIG_SECTION(self), NULL);
    entry = key != NULL ? g_hash_table_lookup(self->entries, key) : NULL;
    if (entry == NULL)
        entry = first_entry(self);
    return entry != NULL ? entry_where(entry) : g_strdup("default");
}

static int
compare_strings(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static GPtrArray *
sorted_keys(GHashTable *table)
{
    GPtrArray *keys = g_ptr_array_new();
    GHashTableIter iter;
    gpointer key;

    g_hash_table_iter_init(&iter, table);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        g_ptr_array_add(keys, key);
    g_ptr_array_sort(keys, compare_strings);
    return keys;
}

GPtrArray *
eb_config_section_get_keys(EbConfigSection *self)
{
    g_return_val_if_fail(EB_IS_CONFIG_SECTION(self), NULL);
    return sorted_keys(self->entries);
}

GPtrArray *
eb_config_section_get_children(EbConfigSection *self)
{
    g_return_val_if_fail(EB_IS_CONFIG_SECTION(self), NULL);
    return sorted_keys(self->children);
}

EbConfigSection *
eb_config_section_get_child(EbConfigSection *self, const char *name)
{
    g_return_val_if_fail(EB_IS_CONFIG_SECTION(self) && name != NULL, NULL);
    ask(self, name);
    return g_hash_table_lookup(self->children, name);
}

GVariant *
eb_config_section_get_value(EbConfigSection *self, const char *key)
{
    Entry *entry;

    g_return_val_if_fail(EB_IS_CONFIG_SECTION(self) && key != NULL, NULL);
    entry = ask(self, key);
    return entry != NULL ? entry->value : NULL;
}

static gboolean G_GNUC_PRINTF(4, 5)
    key_error(EbConfigSection *self, const char *key, GError **error, const char *format, ...)
{
    g_autofree char *where = eb_config_section_where(self, key);
    g_autofree char *what = NULL;
    va_list args;

    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    eb_set_error(error, EB_ERROR_CONFIG, "config.value", "%s: %s%s%s %s", where, self->path,
                 self->path[0] != '\0' ? "." : "", key, what);
    return FALSE;
}

static const char *
type_name(GVariant *value)
{
    const char *type = g_variant_get_type_string(value);

    switch (type[0]) {
    case 's':
        return "a string";
    case 'x':
        return "an integer";
    case 'b':
        return "true or false";
    case 'd':
        return "a fraction";
    case 'a':
        return type[1] == 's' ? "a list of strings" : type[1] == 'x' ? "a list of integers" : "a list";
    default:
        return "another type";
    }
}

/* The value of @key when it has @type; NULL without error when absent. */
static GVariant *
typed_value(EbConfigSection *self, const char *key, const char *type, const char *wanted, GError **error)
{
    GVariant *value = eb_config_section_get_value(self, key);

    if (value == NULL || g_variant_is_of_type(value, G_VARIANT_TYPE(type)))
        return value;
    key_error(self, key, error, "is %s and must be %s", type_name(value), wanted);
    return NULL;
}

char *
eb_config_section_get_string(EbConfigSection *self, const char *key, const char *fallback, GError **error)
{
    g_autoptr(GError) local = NULL;
    GVariant *value;

    g_return_val_if_fail(EB_IS_CONFIG_SECTION(self) && key != NULL, NULL);
    value = typed_value(self, key, "s", "a string", &local);
    if (local != NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return NULL;
    }
    return value != NULL ? g_variant_dup_string(value, NULL) : g_strdup(fallback);
}

gboolean
eb_config_section_get_int(EbConfigSection *self, const char *key, gint64 fallback, gint64 min, gint64 max,
                          gint64 *result, GError **error)
{
    g_autoptr(GError) local = NULL;
    GVariant *value;
    gint64 number;

    g_return_val_if_fail(EB_IS_CONFIG_SECTION(self) && key != NULL && result != NULL, FALSE);
    value = typed_value(self, key, "x", "an integer", &local);
    if (local != NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    number = value != NULL ? g_variant_get_int64(value) : fallback;
    if (value != NULL && (number < min || number > max))
        return key_error(self, key, error,
                         "is %" G_GINT64_FORMAT " and must be %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, number, min,
                         max);
    *result = number;
    return TRUE;
}

gboolean
eb_config_section_get_bool(EbConfigSection *self, const char *key, gboolean fallback, gboolean *result, GError **error)
{
    g_autoptr(GError) local = NULL;
    GVariant *value;

    g_return_val_if_fail(EB_IS_CONFIG_SECTION(self) && key != NULL && result != NULL, FALSE);
    value = typed_value(self, key, "b", "true or false", &local);
    if (local != NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    *result = value != NULL ? g_variant_get_boolean(value) : fallback;
    return TRUE;
}

char **
eb_config_section_get_strings(EbConfigSection *self, const char *key, GError **error)
{
    g_autoptr(GError) local = NULL;
    GVariant *value;

    g_return_val_if_fail(EB_IS_CONFIG_SECTION(self) && key != NULL, NULL);
    value = eb_config_section_get_value(self, key);
    /* An empty list has no type of its own in TOML. */
    if (value == NULL || (g_variant_is_container(value) && g_variant_n_children(value) == 0))
        return g_new0(char *, 1);
    value = typed_value(self, key, "as", "a list of strings", &local);
    if (local != NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return NULL;
    }
    return g_variant_dup_strv(value, NULL);
}

gboolean
eb_config_section_get_size(EbConfigSection *self, const char *key, guint64 fallback, guint64 min, guint64 max,
                           guint64 *result, GError **error)
{
    g_autoptr(GError) local = NULL;
    GVariant *value;
    guint64 bytes = 0;

    g_return_val_if_fail(EB_IS_CONFIG_SECTION(self) && key != NULL && result != NULL, FALSE);
    value = eb_config_section_get_value(self, key);
    if (value == NULL) {
        *result = fallback;
        return TRUE;
    }
    if (g_variant_is_of_type(value, G_VARIANT_TYPE_INT64)) {
        if (g_variant_get_int64(value) < 0)
            return key_error(self, key, error, "is negative");
        bytes = (guint64)g_variant_get_int64(value);
    } else if (!g_variant_is_of_type(value, G_VARIANT_TYPE_STRING)) {
        return key_error(self, key, error, "is %s and must be a size such as \"512MiB\"", type_name(value));
    } else if (!eb_config_parse_size(g_variant_get_string(value, NULL), &bytes, &local)) {
        return key_error(self, key, error, "is wrong: %s", local->message);
    }
    if (bytes < min || bytes > max) {
        g_autofree char *low = g_format_size_full(min, G_FORMAT_SIZE_IEC_UNITS);
        g_autofree char *high = g_format_size_full(max, G_FORMAT_SIZE_IEC_UNITS);

        return key_error(self, key, error, "is %" G_GUINT64_FORMAT " bytes and must be %s to %s", bytes, low, high);
    }
    *result = bytes;
    return TRUE;
}

gboolean
eb_config_section_get_duration(EbConfigSection *self, const char *key, guint64 fallback_ms, guint64 min_ms,
                               guint64 max_ms, guint64 *result_ms, GError **error)
{
    g_autoptr(GError) local = NULL;
    GVariant *value;
    guint64 ms = 0;

    g_return_val_if_fail(EB_IS_CONFIG_SECTION(self) && key != NULL && result_ms != NULL, FALSE);
    value = eb_config_section_get_value(self, key);
    if (value == NULL) {
        *result_ms = fallback_ms;
        return TRUE;
    }
    if (!g_variant_is_of_type(value, G_VARIANT_TYPE_STRING))
        return key_error(self, key, error, "is %s and must be a duration such as \"30s\"", type_name(value));
    if (!eb_config_parse_duration(g_variant_get_string(value, NULL), &ms, &local))
        return key_error(self, key, error, "is wrong: %s", local->message);
    if (ms < min_ms || ms > max_ms)
        return key_error(self, key, error,
                         "is %" G_GUINT64_FORMAT "ms and must be %" G_GUINT64_FORMAT "ms to %" G_GUINT64_FORMAT "ms",
                         ms, min_ms, max_ms);
    *result_ms = ms;
    return TRUE;
}

/* [a-z][a-z0-9-]{0,62} */
static gboolean
is_credential_name(const char *name)
{
    gsize length = strlen(name);

    return length >= 1 && length <= 63 && g_ascii_islower(name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

char *
eb_config_section_get_secret_name(EbConfigSection *self, const char *key, GError **error)
{
    g_autoptr(GError) local = NULL;
    GVariant *value;
    const char *text;

    g_return_val_if_fail(EB_IS_CONFIG_SECTION(self) && key != NULL, NULL);
    value = typed_value(self, key, "s", "a reference \"cred:NAME\"", &local);
    if (local != NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return NULL;
    }
    if (value == NULL)
        return NULL;
    text = g_variant_get_string(value, NULL);
    /* The text is not shown: it may be the secret somebody pasted. */
    if (!g_str_has_prefix(text, "cred:")) {
        key_error(self, key, error,
                  "must be a reference \"cred:NAME\", not the secret itself (errand-box creds set NAME)");
        return NULL;
    }
    if (!is_credential_name(text + strlen("cred:"))) {
        key_error(self, key, error, "has a bad credential name (small letters, digits and dashes)");
        return NULL;
    }
    return g_strdup(text + strlen("cred:"));
}

static void
note_unknown(EbConfigSection *self, const char *name, GPtrArray *known, GString *problems)
{
    g_autofree char *where = eb_config_section_where(self, name);
    const char *nearest = eb_config_nearest(name, (const char *const *)known->pdata);

    g_string_append_printf(problems, "%s%s: unknown key %s%s%s", problems->len > 0 ? "; " : "", where, self->path,
                           self->path[0] != '\0' ? "." : "", name);
    if (nearest != NULL)
        g_string_append_printf(problems, " (did you mean %s?)", nearest);
}

gboolean
eb_config_section_check_unknown(EbConfigSection *self, GError **error)
{
    g_autoptr(GPtrArray) known = NULL;
    g_autoptr(GPtrArray) keys = NULL;
    g_autoptr(GPtrArray) children = NULL;
    g_autoptr(GString) problems = g_string_new(NULL);

    g_return_val_if_fail(EB_IS_CONFIG_SECTION(self), FALSE);
    known = sorted_keys(self->asked);
    g_ptr_array_add(known, NULL);
    keys = sorted_keys(self->entries);
    for (guint i = 0; i < keys->len; i++) {
        if (!g_hash_table_contains(self->asked, g_ptr_array_index(keys, i)))
            note_unknown(self, g_ptr_array_index(keys, i), known, problems);
    }
    children = sorted_keys(self->children);
    for (guint i = 0; i < children->len; i++) {
        const char *name = g_ptr_array_index(children, i);

        if (!g_hash_table_contains(self->asked, name))
            note_unknown(self, name, known, problems);
    }
    if (problems->len == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_CONFIG, "config.unknown-key", "%s", problems->str);
    return FALSE;
}
