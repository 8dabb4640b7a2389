/* SPDX-License-Identifier: MIT */
#include "core/config/eb-pins.h"
#include "core/config/eb-toml.h"

#include <string.h>

#define MAX_PINS 64
#define SHA512_BYTES 64

struct _EbPins {
    GPtrArray *pins; /* (element-type EbPin) (owned) */
};

static void
pin_free(gpointer data)
{
    EbPin *pin = data;

    g_free(pin->name);
    g_free(pin->package);
    g_free(pin->version);
    g_free(pin->integrity);
    g_free(pin->lock);
    g_free(pin->lock_sha256);
    g_strfreev(pin->commands);
    g_strfreev(pin->commands_baseline);
    g_strfreev(pin->avx2);
    g_strfreev(pin->baseline);
    g_free(pin);
}

void
eb_pins_free(EbPins *self)
{
    g_ptr_array_unref(self->pins);
    g_free(self);
}

static gboolean
is_sha256(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static gboolean
is_sha512(const char *text)
{
    gsize length = 0;

    if (!g_str_has_prefix(text, "sha512-") || strlen(text) > 128)
        return FALSE;
    g_autofree guchar *raw = g_base64_decode(text + 7, &length);
    return length == SHA512_BYTES;
}

/* Below the recipe's directory and nothing else. */
static gboolean
is_plain_path(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);

    if (parts[0] == NULL)
        return FALSE;
    for (char **part = parts; *part != NULL; part++) {
        if (**part == '\0' || strcmp(*part, ".") == 0 || strcmp(*part, "..") == 0)
            return FALSE;
    }
    return TRUE;
}

static gboolean
check_commands(EbConfigSection *section, const char *key, char **commands, GError **error)
{
    for (char **command = commands; *command != NULL; command++) {
        const char *equals = strchr(*command, '=');
        if (equals == NULL || equals == *command || memchr(*command, '/', (gsize)(equals - *command)) != NULL ||
            !is_plain_path(equals + 1)) {
            g_autofree char *where = eb_config_section_where(section, key);
            eb_set_error(error, EB_ERROR_CONFIG, "pins.command", "%s: %s: \"%s\" is not NAME=PATH", where, key,
                         *command);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean
check_pin(EbConfigSection *section, const EbPin *pin, GError **error)
{
    const char *wrong = NULL;

    if (pin->package == NULL || pin->version == NULL || pin->lock == NULL)
        wrong = "package, version and lock are needed";
    else if (pin->integrity == NULL || !is_sha512(pin->integrity))
        wrong = "integrity must be sha512-BASE64";
    else if (pin->lock_sha256 == NULL || !is_sha256(pin->lock_sha256))
        wrong = "lock_sha256 must be 64 hex digits";
    else if (!is_plain_path(pin->lock))
        wrong = "lock must be a plain relative path";
    if (wrong == NULL)
        return TRUE;
    g_autofree char *where = eb_config_section_where(section, "package");
    eb_set_error(error, EB_ERROR_CONFIG, "pins.entry", "%s: [npm.%s]: %s", where, pin->name, wrong);
    return FALSE;
}

static gboolean
read_pin(EbConfigSection *section, EbPin *pin, GError **error)
{
    const struct {
        const char *key;
        char **value;
    } texts[] = {{"package", &pin->package},
                 {"version", &pin->version},
                 {"integrity", &pin->integrity},
                 {"lock_sha256", &pin->lock_sha256},
                 {"lock", &pin->lock}};
    const struct {
        const char *key;
        char ***value;
    } lists[] = {{"commands", &pin->commands},
                 {"commands_baseline", &pin->commands_baseline},
                 {"avx2", &pin->avx2},
                 {"baseline", &pin->baseline}};

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        GError *problem = NULL;
        *texts[i].value = eb_config_section_get_string(section, texts[i].key, NULL, &problem);
        if (problem != NULL) {
            g_propagate_error(error, problem);
            return FALSE;
        }
    }
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++) {
        *lists[i].value = eb_config_section_get_strings(section, lists[i].key, error);
        if (*lists[i].value == NULL)
            return FALSE;
    }
    return eb_config_section_check_unknown(section, error) && check_pin(section, pin, error) &&
           check_commands(section, "commands", pin->commands, error) &&
           check_commands(section, "commands_baseline", pin->commands_baseline, error);
}

static int
compare_pins(gconstpointer a, gconstpointer b)
{
    const EbPin *const *left = a;
    const EbPin *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

EbPins *
eb_pins_load(const char *path, GError **error)
{
    g_autofree char *text = NULL;
    gsize length = 0;

    if (!g_file_get_contents(path, &text, &length, error)) {
        eb_error_convert(error, "pins.missing", "pins cannot be read");
        return NULL;
    }
    g_autoptr(EbConfigSection) root = eb_toml_parse(text, length, path, error);
    if (root == NULL)
        return NULL;
    EbConfigSection *npm = eb_config_section_get_child(root, "npm");
    g_autoptr(GPtrArray) names = npm != NULL ? eb_config_section_get_children(npm) : g_ptr_array_new();
    if (names->len > MAX_PINS) {
        eb_set_error(error, EB_ERROR_CONFIG, "pins.entry", "%s: more than %d entries", path, MAX_PINS);
        return NULL;
    }
    g_autoptr(EbPins) self = g_new0(EbPins, 1);
    self->pins = g_ptr_array_new_with_free_func(pin_free);
    for (guint i = 0; i < names->len; i++) {
        EbPin *pin = g_new0(EbPin, 1);
        g_ptr_array_add(self->pins, pin);
        pin->name = g_strdup(g_ptr_array_index(names, i));
        if (!read_pin(eb_config_section_get_child(npm, pin->name), pin, error))
            return NULL;
    }
    if (!eb_config_section_check_unknown(root, error))
        return NULL;
    g_ptr_array_sort(self->pins, compare_pins);
    return g_steal_pointer(&self);
}

const EbPin *
eb_pins_get(EbPins *self, const char *name, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);

    for (guint i = 0; i < self->pins->len; i++) {
        const EbPin *pin = g_ptr_array_index(self->pins, i);
        if (strcmp(pin->name, name) == 0)
            return pin;
        g_string_append_printf(known, "%s%s", known->len > 0 ? ", " : "", pin->name);
    }
    eb_set_error(error, EB_ERROR_NOT_FOUND, "pins.unknown", "pins.toml has no [npm.%s] (it has %s)", name, known->str);
    return NULL;
}

GPtrArray *
eb_pins_get_all(EbPins *self)
{
    return self->pins;
}

static char *
digest_of(GBytes *bytes, gboolean sha512)
{
    guint8 raw[SHA512_BYTES];
    gsize length = sizeof raw;
    g_autoptr(GChecksum) sum = g_checksum_new(sha512 ? G_CHECKSUM_SHA512 : G_CHECKSUM_SHA256);

    g_checksum_update(sum, g_bytes_get_data(bytes, NULL), (gssize)g_bytes_get_size(bytes));
    if (!sha512)
        return g_strdup(g_checksum_get_string(sum));
    g_checksum_get_digest(sum, raw, &length);
    g_autofree char *text = g_base64_encode(raw, length);
    return g_strconcat("sha512-", text, NULL);
}

gboolean
eb_pins_check_bytes(const char *what, GBytes *bytes, const char *digest, GError **error)
{
    gboolean sha512 = is_sha512(digest);

    if (!sha512 && !is_sha256(digest)) {
        eb_set_error(error, EB_ERROR_INVALID, "pins.digest", "%s: \"%s\" is no digest", what, digest);
        return FALSE;
    }
    g_autofree char *found = digest_of(bytes, sha512);
    if (strcmp(found, digest) == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_INTEGRITY, "pins.digest", "%s is not what is pinned: expected %s, found %s", what,
                 digest, found);
    return FALSE;
}

gboolean
eb_pins_check_file(const char *path, const char *digest, GError **error)
{
    g_autoptr(GMappedFile) file = g_mapped_file_new(path, FALSE, error);

    if (file == NULL) {
        eb_error_convert(error, "pins.file", NULL);
        return FALSE;
    }
    g_autoptr(GBytes) bytes = g_mapped_file_get_bytes(file);
    g_autofree char *name = g_path_get_basename(path);
    return eb_pins_check_bytes(name, bytes, digest, error);
}

GBytes *
eb_pins_read_lock(const EbPin *pin, const char *guest_dir, GError **error)
{
    g_autofree char *path = g_build_filename(guest_dir, pin->lock, NULL);
    g_autofree char *text = NULL;
    gsize length = 0;

    if (!g_file_get_contents(path, &text, &length, error)) {
        eb_error_convert(error, "pins.lock", NULL);
        return NULL;
    }
    g_autoptr(GBytes) bytes = g_bytes_new_take(g_steal_pointer(&text), length);
    if (length > EB_PINS_MAX_BYTES) {
        eb_set_error(error, EB_ERROR_INVALID, "pins.lock", "%s is too long", path);
        return NULL;
    }
    return eb_pins_check_bytes(pin->lock, bytes, pin->lock_sha256, error) ? g_steal_pointer(&bytes) : NULL;
}

gboolean
eb_pins_verify(EbPins *self, const char *guest_dir, GError **error)
{
    for (guint i = 0; i < self->pins->len; i++) {
        const EbPin *pin = g_ptr_array_index(self->pins, i);
        gboolean found = FALSE;
        g_autoptr(GBytes) lock = eb_pins_read_lock(pin, guest_dir, error);
        g_autoptr(GPtrArray) packages = lock != NULL ? eb_pins_list_packages(pin, lock, "x64", TRUE, error) : NULL;
        if (packages == NULL)
            return FALSE;
        for (guint j = 0; j < packages->len && !found; j++) {
            const EbPinPackage *package = g_ptr_array_index(packages, j);
            found = strcmp(package->name, pin->package) == 0 && strcmp(package->version, pin->version) == 0 &&
                    strcmp(package->integrity, pin->integrity) == 0;
        }
        if (!found) {
            eb_set_error(error, EB_ERROR_INTEGRITY, "pins.lock", "%s does not have %s %s with the pinned digest",
                         pin->lock, pin->package, pin->version);
            return FALSE;
        }
    }
    return TRUE;
}
