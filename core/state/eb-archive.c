/* SPDX-License-Identifier: MIT */
/* The pure half: names, headers, manifest. */
#include "core/state/eb-archive.h"

#include <stdio.h>
#include <string.h>

#define CONFIG_PREFIX "etc/"
#define TRY_PREFIX "try/"
#define TRY_SUFFIX "/state.db"

/* Where the fields of a ustar header are. */
enum {
    AT_MODE = 100,
    AT_UID = 108,
    AT_GID = 116,
    AT_SIZE = 124,
    AT_MTIME = 136,
    AT_SUM = 148,
    AT_TYPE = 156,
    AT_LINK = 157,
    AT_MAGIC = 257,
    AT_OWNER = 265,
    AT_PREFIX = 345,
};

static gboolean
is_word(const char *text, gsize length, const char *more)
{
    for (gsize i = 0; i < length; i++)
        if (!g_ascii_isalnum(text[i]) && strchr(more, text[i]) == NULL)
            return FALSE;
    return length > 0;
}

static gboolean
is_config_name(const char *name)
{
    if (strcmp(name, "errand-box.toml") == 0)
        return TRUE;
    if (!g_str_has_prefix(name, "conf.d/") || !g_str_has_suffix(name, ".toml"))
        return FALSE;
    name += strlen("conf.d/");
    return *name != '.' && is_word(name, strlen(name), "._-");
}

gboolean
eb_archive_check_name(const char *name)
{
    static const char *const fixed[] = {EB_ARCHIVE_MARKER, EB_ARCHIVE_MANIFEST, EB_ARCHIVE_DIGEST, "state.db"};

    if (strlen(name) > EB_ARCHIVE_MAX_NAME)
        return FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(fixed); i++)
        if (strcmp(name, fixed[i]) == 0)
            return TRUE;
    if (g_str_has_prefix(name, CONFIG_PREFIX))
        return is_config_name(name + strlen(CONFIG_PREFIX));
    if (!g_str_has_prefix(name, TRY_PREFIX) || !g_str_has_suffix(name, TRY_SUFFIX) ||
        strlen(name) <= strlen(TRY_PREFIX) + strlen(TRY_SUFFIX))
        return FALSE;
    return is_word(name + strlen(TRY_PREFIX), strlen(name) - strlen(TRY_PREFIX) - strlen(TRY_SUFFIX), "-");
}

static guint
sum_of(const guint8 *block)
{
    guint sum = 0;

    for (guint i = 0; i < EB_ARCHIVE_BLOCK; i++)
        sum += i >= AT_SUM && i < AT_SUM + 8 ? ' ' : block[i];
    return sum;
}

/* @digits octal digits and a NUL or a space: what we write, and nothing that other tars make of it. */
static gboolean
parse_octal(const guint8 *field, guint digits, guint64 *value)
{
    *value = 0;
    for (guint i = 0; i < digits; i++) {
        if (field[i] < '0' || field[i] > '7')
            return FALSE;
        *value = *value * 8 + (field[i] - '0');
    }
    return field[digits] == '\0' || field[digits] == ' ';
}

static gboolean
is_zero(const guint8 *bytes, gsize length)
{
    for (gsize i = 0; i < length; i++)
        if (bytes[i] != 0)
            return FALSE;
    return TRUE;
}

static gboolean
foreign(const char *what, GError **error)
{
    eb_set_error(error, EB_ERROR_INVALID, "backup.foreign", "this is no backup of errand-box, or it is damaged: %s",
                 what);
    return FALSE;
}

gboolean
eb_archive_parse_header(const guint8 *block, EbArchiveEntry *entry, gboolean *end, GError **error)
{
    guint64 sum = 0, size = 0;

    memset(entry, 0, sizeof *entry);
    *end = is_zero(block, EB_ARCHIVE_BLOCK);
    if (*end)
        return TRUE;
    if (memcmp(block + AT_MAGIC,
               "ustar\0"
               "00",
               8) != 0 ||
        !parse_octal(block + AT_SUM, 6, &sum) || sum != sum_of(block))
        return foreign("a header is not one of a tar", error);
    if (block[AT_TYPE] != '0' || !is_zero(block + AT_LINK, AT_MAGIC - AT_LINK))
        return foreign("it contains something that is no regular file", error);
    if (!is_zero(block + AT_PREFIX, EB_ARCHIVE_BLOCK - AT_PREFIX))
        return foreign("it contains a name that we do not make", error);
    memcpy(entry->name, block, EB_ARCHIVE_MAX_NAME);
    if (!is_zero(block + strlen(entry->name), EB_ARCHIVE_MAX_NAME - strlen(entry->name)) ||
        !eb_archive_check_name(entry->name))
        return foreign("it contains a name that we do not make", error);
    if (!parse_octal(block + AT_SIZE, 11, &size))
        return foreign("a size is malformed", error);
    entry->size = size;
    return TRUE;
}

void
eb_archive_format_header(guint8 *block, const EbArchiveEntry *entry, gint64 mtime)
{
    char *text = (char *)block;

    memset(block, 0, EB_ARCHIVE_BLOCK);
    memcpy(block, entry->name, strlen(entry->name));
    g_snprintf(text + AT_MODE, 8, "%07o", 0600);
    g_snprintf(text + AT_UID, 8, "%07o", 0);
    g_snprintf(text + AT_GID, 8, "%07o", 0);
    g_snprintf(text + AT_SIZE, 12, "%011" G_GINT64_MODIFIER "o", entry->size);
    g_snprintf(text + AT_MTIME, 12, "%011" G_GINT64_MODIFIER "o", (guint64)CLAMP(mtime, 0, 077777777777));
    block[AT_TYPE] = '0';
    memcpy(block + AT_MAGIC,
           "ustar\0"
           "00",
           8);
    memcpy(block + AT_OWNER, "errand-box", strlen("errand-box"));
    g_snprintf(text + AT_SUM, 8, "%06o", sum_of(block));
    block[AT_SUM + 7] = ' ';
}

/* --- manifest --- */

void
eb_archive_file_free(EbArchiveFile *self)
{
    if (self == NULL)
        return;
    g_free(self->name);
    g_free(self->sha256);
    g_free(self);
}

EbArchiveManifest *
eb_archive_manifest_new(void)
{
    EbArchiveManifest *self = g_new0(EbArchiveManifest, 1);

    self->files = g_ptr_array_new_with_free_func((GDestroyNotify)eb_archive_file_free);
    return self;
}

void
eb_archive_manifest_free(EbArchiveManifest *self)
{
    if (self == NULL)
        return;
    g_free(self->version);
    g_free(self->created);
    g_ptr_array_unref(self->files);
    g_free(self);
}

void
eb_archive_manifest_add(EbArchiveManifest *self, const char *name, guint64 size, const char *sha256)
{
    EbArchiveFile *file = g_new0(EbArchiveFile, 1);

    file->name = g_strdup(name);
    file->size = size;
    file->sha256 = g_strdup(sha256);
    g_ptr_array_add(self->files, file);
}

char *
eb_archive_manifest_write(const EbArchiveManifest *self)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    JsonObject *object = json_object_new();
    JsonArray *files = json_array_new();

    for (guint i = 0; i < self->files->len; i++) {
        const EbArchiveFile *file = self->files->pdata[i];
        JsonObject *row = json_object_new();
        json_object_set_string_member(row, "name", file->name);
        json_object_set_int_member(row, "size", (gint64)file->size);
        json_object_set_string_member(row, "sha256", file->sha256);
        json_array_add_object_element(files, row);
    }
    json_object_set_int_member(object, "format", EB_ARCHIVE_FORMAT);
    json_object_set_string_member(object, "version", self->version);
    json_object_set_int_member(object, "schema", self->schema);
    json_object_set_string_member(object, "created", self->created);
    json_object_set_int_member(object, "sessions", self->sessions);
    json_object_set_array_member(object, "files", files);
    json_node_take_object(node, object);
    return eb_json_write(node, NULL);
}

/* What is told of a backup is told to an operator's terminal, so it is made of nothing else than what we write. */
static gboolean
is_plain(const char *text)
{
    return text != NULL && strlen(text) <= EB_ARCHIVE_MAX_NAME && is_word(text, strlen(text), "+-.:~");
}

static gboolean
is_digest(const char *text)
{
    return text != NULL && strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static gboolean
read_files(EbArchiveManifest *self, JsonArray *files)
{
    guint n = files != NULL ? json_array_get_length(files) : 0;

    for (guint i = 0; i < n; i++) {
        JsonObject *row = eb_json_array_object(files, i);
        const char *name = eb_json_get_string(row, "name");
        const char *sha256 = eb_json_get_string(row, "sha256");
        gint64 size = eb_json_get_int(row, "size", -1);
        if (name == NULL || !eb_archive_check_name(name) || !is_digest(sha256) || size < 0)
            return FALSE;
        eb_archive_manifest_add(self, name, (guint64)size, sha256);
    }
    return n > 0 && n <= EB_ARCHIVE_MAX_ENTRIES;
}

EbArchiveManifest *
eb_archive_manifest_parse(const char *text, gsize length, GError **error)
{
    static const EbJsonLimits limits = {EB_ARCHIVE_MAX_MANIFEST, 8};
    g_autoptr(JsonNode) node = eb_json_parse(text, length, &limits, error);
    JsonObject *object = eb_json_node_object(node);
    g_autoptr(EbArchiveManifest) self = eb_archive_manifest_new();

    if (node == NULL) {
        g_prefix_error(error, "%s: ", EB_ARCHIVE_MANIFEST);
        return NULL;
    }
    gint64 format = eb_json_get_int(object, "format", 0);
    if (format > EB_ARCHIVE_FORMAT) {
        eb_set_error(error, EB_ERROR_CONFIG, "backup.newer",
                     "the backup was made by a newer version (format %" G_GINT64_FORMAT ", this program knows %d): "
                     "restore it with that version",
                     format, EB_ARCHIVE_FORMAT);
        return NULL;
    }
    self->version = g_strdup(eb_json_get_string(object, "version"));
    self->created = g_strdup(eb_json_get_string(object, "created"));
    self->schema = eb_json_get_int(object, "schema", -1);
    self->sessions = eb_json_get_int(object, "sessions", -1);
    if (format != EB_ARCHIVE_FORMAT || !is_plain(self->version) || !is_plain(self->created) || self->schema < 0 ||
        self->sessions < 0 || !read_files(self, eb_json_get_array(object, "files"))) {
        foreign("its manifest is not one of ours", error);
        return NULL;
    }
    return g_steal_pointer(&self);
}

gboolean
eb_archive_manifest_check(const EbArchiveManifest *self, const EbArchiveManifest *read, GError **error)
{
    for (guint i = 0; i < MAX(self->files->len, read->files->len); i++) {
        const EbArchiveFile *said = i < self->files->len ? self->files->pdata[i] : NULL;
        const EbArchiveFile *found = i < read->files->len ? read->files->pdata[i] : NULL;
        if (said != NULL && found != NULL && strcmp(said->name, found->name) == 0 && said->size == found->size &&
            strcmp(said->sha256, found->sha256) == 0)
            continue;
        eb_set_error(error, EB_ERROR_INTEGRITY, "backup.altered",
                     "%s in the backup is not what its manifest says: sha256 %s, expected %s (take another copy)",
                     found != NULL ? found->name : said->name, found != NULL ? found->sha256 : "(missing)",
                     said != NULL ? said->sha256 : "(not in the manifest)");
        return FALSE;
    }
    return TRUE;
}
