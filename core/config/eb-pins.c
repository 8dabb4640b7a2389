/* SPDX-License-Identifier: MIT */
#include "core/config/eb-pins.h"
#include "core/config/eb-minisign.h"
#include "core/config/eb-pin-digest.h"
#include "core/config/eb-toml.h"

#include <string.h>

#define MAX_URL 2048
#define MAX_PATTERN 256
#define MAX_VERSION 128
#define MAX_NAME 63
#define VERSION_MARK "{version}"

static const char *const KINDS[] = {"npm", "deb", "archive", "file"};

struct _EbPins {
    GPtrArray *pins; /* (element-type EbPin) (owned) */
};

static void
pin_free(gpointer data)
{
    EbPin *pin = data;

    g_free(pin->name);
    g_free(pin->version);
    g_free(pin->digest);
    g_free(pin->series);
    g_free(pin->package);
    g_free(pin->lock);
    g_free(pin->lock_sha256);
    g_strfreev(pin->commands);
    g_strfreev(pin->commands_baseline);
    g_strfreev(pin->avx2);
    g_strfreev(pin->baseline);
    g_strfreev(pin->urls);
    g_free(pin->minisign);
    g_free(pin->signature);
    g_free(pin->latest);
    g_free(pin->latest_pattern);
    g_free(pin->path);
    g_free(pin);
}

void
eb_pins_free(EbPins *self)
{
    g_ptr_array_unref(self->pins);
    g_free(self);
}

const char *
eb_pin_kind_name(EbPinKind kind)
{
    return KINDS[kind];
}

gboolean
eb_pin_version_is_valid(const char *version)
{
    gsize length = strlen(version);

    return length > 0 && length < MAX_VERSION && g_ascii_isalnum(version[0]) && strstr(version, "..") == NULL &&
           strspn(version, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-~_:") == length;
}

char *
eb_pin_check_url(const char *url)
{
    g_autoptr(GUri) uri = g_uri_parse(url, G_URI_FLAGS_HAS_PASSWORD | G_URI_FLAGS_ENCODED, NULL);
    const char *host = uri != NULL ? g_uri_get_host(uri) : NULL;

    if (host == NULL || *host == '\0' || strlen(url) > MAX_URL)
        return g_strdup("not a URL");
    if (g_uri_get_userinfo(uri) != NULL)
        return g_strdup("a URL with a user or password");
    if (g_uri_get_fragment(uri) != NULL)
        return g_strdup("a URL with \"#\"");
    if (strcmp(g_uri_get_scheme(uri), "https") == 0)
        return NULL;
    g_autoptr(GInetAddress) address = g_inet_address_new_from_string(host);
    if (strcmp(g_uri_get_scheme(uri), "http") == 0 && address != NULL && g_inet_address_get_is_loopback(address))
        return NULL;
    return g_strdup("https:// is needed (http:// at a literal loopback address alone)");
}

char *
eb_pin_expand_url(const char *url, const char *version)
{
    g_auto(GStrv) parts = g_strsplit(url, VERSION_MARK, -1);
    g_autofree char *escaped = g_uri_escape_string(version, "+~:", FALSE);
    return g_strjoinv(escaped, parts);
}

/* Below a directory of ours and nothing else. */
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

static gboolean G_GNUC_PRINTF(4, 5)
    refuse(EbConfigSection *section, const char *key, GError **error, const char *format, ...)
{
    g_autofree char *where = eb_config_section_where(section, key);
    va_list arguments;

    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    eb_set_error(error, EB_ERROR_CONFIG, "pins.entry", "%s: [%s]: %s",
                 strcmp(where, "default") == 0 ? "pins.toml" : where, eb_config_section_get_path(section), text);
    return FALSE;
}

/* A needed or optional text; FALSE on a wrong type, and when a needed one is missing or empty. */
static gboolean
read_text(EbConfigSection *section, const char *key, gboolean needed, char **value, GError **error)
{
    GError *problem = NULL;

    *value = eb_config_section_get_string(section, key, NULL, &problem);
    if (problem != NULL) {
        g_propagate_error(error, problem);
        return FALSE;
    }
    if (*value != NULL && **value == '\0')
        return refuse(section, key, error, "%s is empty", key);
    return *value != NULL || !needed || refuse(section, key, error, "%s is needed", key);
}

static gboolean
check_commands(EbConfigSection *section, const char *key, char **commands, GError **error)
{
    for (char **command = commands; *command != NULL; command++) {
        const char *equals = strchr(*command, '=');
        if (equals == NULL || equals == *command || memchr(*command, '/', (gsize)(equals - *command)) != NULL ||
            !is_plain_path(equals + 1))
            return refuse(section, key, error, "%s: \"%s\" is not NAME=PATH", key, *command);
    }
    return TRUE;
}

static gboolean
read_npm(EbConfigSection *section, EbPin *pin, GError **error)
{
    const struct {
        const char *key;
        char ***value;
    } lists[] = {{"commands", &pin->commands},
                 {"commands_baseline", &pin->commands_baseline},
                 {"avx2", &pin->avx2},
                 {"baseline", &pin->baseline}};

    if (!read_text(section, "package", TRUE, &pin->package, error) ||
        !read_text(section, "version", TRUE, &pin->version, error) ||
        !read_text(section, "integrity", TRUE, &pin->digest, error) ||
        !read_text(section, "lock", TRUE, &pin->lock, error) ||
        !read_text(section, "lock_sha256", TRUE, &pin->lock_sha256, error) ||
        !read_text(section, "series", FALSE, &pin->series, error))
        return FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++) {
        *lists[i].value = eb_config_section_get_strings(section, lists[i].key, error);
        if (*lists[i].value == NULL)
            return FALSE;
    }
    if (!eb_pin_package_name_is_valid(pin->package))
        return refuse(section, "package", error, "\"%s\" is no name of an npm package", pin->package);
    if (!g_str_has_prefix(pin->digest, "sha512-") || !eb_pin_digest_is_valid(pin->digest))
        return refuse(section, "integrity", error, "integrity must be sha512-BASE64");
    if (strlen(pin->lock_sha256) != 64 || !eb_pin_digest_is_valid(pin->lock_sha256))
        return refuse(section, "lock_sha256", error, "lock_sha256 must be 64 hex digits");
    if (!is_plain_path(pin->lock))
        return refuse(section, "lock", error, "lock must be a plain relative path");
    return check_commands(section, "commands", pin->commands, error) &&
           check_commands(section, "commands_baseline", pin->commands_baseline, error);
}

/* Debian's own alphabet: it becomes an argument of apt. */
static gboolean
is_deb_name(const char *name)
{
    return strlen(name) >= 2 && strlen(name) <= 128 && g_ascii_isalnum(name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == strlen(name);
}

static gboolean
read_deb(EbConfigSection *section, EbPin *pin, GError **error)
{
    if (!read_text(section, "package", FALSE, &pin->package, error) ||
        !read_text(section, "at_least", TRUE, &pin->version, error) ||
        !eb_config_section_get_bool(section, "track", FALSE, &pin->track, error))
        return FALSE;
    if (pin->package == NULL)
        pin->package = g_strdup(pin->name);
    return is_deb_name(pin->package) ||
           refuse(section, "package", error, "\"%s\" is no name of a Debian package", pin->package);
}

/* Exactly one of the two, in hex. */
static gboolean
read_digest(EbConfigSection *section, EbPin *pin, GError **error)
{
    g_autofree char *sha256 = NULL;
    g_autofree char *sha512 = NULL;

    if (!read_text(section, "sha256", FALSE, &sha256, error) || !read_text(section, "sha512", FALSE, &sha512, error))
        return FALSE;
    if ((sha256 == NULL) == (sha512 == NULL))
        return refuse(section, "sha256", error, "one of sha256 and sha512 is needed");
    const char *key = sha256 != NULL ? "sha256" : "sha512";
    pin->digest = sha256 != NULL ? g_steal_pointer(&sha256) : g_steal_pointer(&sha512);
    if (strlen(pin->digest) != (strcmp(key, "sha256") == 0 ? 64 : 128) || !eb_pin_digest_is_valid(pin->digest))
        return refuse(section, key, error, "%s must be %d lower-case hex digits", key,
                      strcmp(key, "sha256") == 0 ? 64 : 128);
    if (!eb_config_section_has(section, "max_size"))
        return refuse(section, "max_size", error, "max_size is needed");
    return eb_config_section_get_size(section, "max_size", 1, 1, EB_PINS_MAX_ARCHIVE, &pin->max_size, error);
}

static gboolean
check_url(EbConfigSection *section, const char *key, const EbPin *pin, const char *url, GError **error)
{
    g_autofree char *expanded = eb_pin_expand_url(url, pin->version);
    g_autofree char *wrong = eb_pin_check_url(expanded);
    g_autofree char *shown = wrong != NULL ? eb_log_escape(url, -1, MAX_URL) : NULL;

    return wrong == NULL || refuse(section, key, error, "%s: \"%s\": %s", key, shown, wrong);
}

static gboolean
check_latest(EbConfigSection *section, const EbPin *pin, GError **error)
{
    g_autoptr(GRegex) regex = NULL;
    GError *problem = NULL;

    if ((pin->latest == NULL) != (pin->latest_pattern == NULL))
        return refuse(section, "latest", error, "latest and latest_pattern belong together");
    if (pin->latest == NULL)
        return TRUE;
    if (strlen(pin->latest_pattern) <= MAX_PATTERN)
        regex = g_regex_new(pin->latest_pattern, 0, 0, &problem);
    if (regex != NULL && g_regex_get_capture_count(regex) == 1)
        return check_url(section, "latest", pin, pin->latest, error);
    refuse(section, "latest_pattern", error, "latest_pattern must be a regular expression with one group%s%s",
           problem != NULL ? ": " : "", problem != NULL ? problem->message : "");
    g_clear_error(&problem);
    return FALSE;
}

static gboolean
read_archive(EbConfigSection *section, EbPin *pin, GError **error)
{
    if (!read_text(section, "version", TRUE, &pin->version, error) || !read_digest(section, pin, error) ||
        !read_text(section, "minisign", FALSE, &pin->minisign, error) ||
        !read_text(section, "signature", FALSE, &pin->signature, error) ||
        !read_text(section, "series", FALSE, &pin->series, error) ||
        !read_text(section, "latest", FALSE, &pin->latest, error) ||
        !read_text(section, "latest_pattern", FALSE, &pin->latest_pattern, error))
        return FALSE;
    pin->urls = eb_config_section_get_strings(section, "urls", error);
    if (pin->urls == NULL)
        return FALSE;
    guint n_urls = g_strv_length(pin->urls);
    if (n_urls == 0 || n_urls > EB_PINS_MAX_URLS)
        return refuse(section, "urls", error, "urls needs 1 to %d places", EB_PINS_MAX_URLS);
    for (char **url = pin->urls; *url != NULL; url++)
        if (!check_url(section, "urls", pin, *url, error))
            return FALSE;
    if (pin->signature != NULL && pin->minisign == NULL)
        return refuse(section, "signature", error, "signature is of use with minisign = \"RW...\" alone");
    if (pin->signature != NULL && !check_url(section, "signature", pin, pin->signature, error))
        return FALSE;
    EbMinisignKey key;
    GError *problem = NULL;
    if (pin->minisign != NULL && !eb_minisign_key_parse(pin->minisign, &key, &problem)) {
        refuse(section, "minisign", error, "minisign: %s", problem->message);
        g_error_free(problem);
        return FALSE;
    }
    return check_latest(section, pin, error);
}

static gboolean
read_file(EbConfigSection *section, EbPin *pin, GError **error)
{
    if (!read_text(section, "version", FALSE, &pin->version, error) ||
        !read_text(section, "path", TRUE, &pin->path, error) || !read_digest(section, pin, error))
        return FALSE;
    return is_plain_path(pin->path[0] == '/' ? pin->path + 1 : pin->path) ||
           refuse(section, "path", error, "path must be written without \"..\", \".\" and doubled slashes");
}

static gboolean
read_pin(EbConfigSection *section, EbPin *pin, GError **error)
{
    static gboolean (*const readers[])(EbConfigSection *, EbPin *, GError **) = {read_npm, read_deb, read_archive,
                                                                                 read_file};

    static const char *const keys[][14] = {
        {"package", "version", "integrity", "lock", "lock_sha256", "series", "commands", "commands_baseline", "avx2",
         "baseline"},
        {"package", "at_least", "track"},
        {"version", "urls", "sha256", "sha512", "max_size", "minisign", "signature", "series", "latest",
         "latest_pattern"},
        {"version", "path", "sha256", "sha512", "max_size"},
    };

    /* A misspelt key is what is said, not that the right one is missing: asking makes a key a known one. */
    for (guint i = 0; keys[pin->kind][i] != NULL; i++)
        (void)eb_config_section_has(section, keys[pin->kind][i]);
    if (!eb_config_section_check_unknown(section, error) || !readers[pin->kind](section, pin, error))
        return FALSE;
    if (pin->version != NULL && !eb_pin_version_is_valid(pin->version))
        return refuse(section, "version", error, "\"%s\" is no version", pin->version);
    return pin->series == NULL || eb_pin_version_is_valid(pin->series) ||
           refuse(section, "series", error, "\"%s\" is no beginning of a version", pin->series);
}

static gboolean
is_pin_name(const char *name)
{
    return strlen(name) <= MAX_NAME && g_ascii_isalnum(name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._") == strlen(name);
}

static EbPin *
find(EbPins *self, const char *name)
{
    for (guint i = 0; i < self->pins->len; i++) {
        EbPin *pin = g_ptr_array_index(self->pins, i);
        if (strcmp(pin->name, name) == 0)
            return pin;
    }
    return NULL;
}

static gboolean
read_kind(EbPins *self, EbPinKind kind, EbConfigSection *table, GError **error)
{
    g_autoptr(GPtrArray) names = eb_config_section_get_children(table);

    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        EbConfigSection *section = eb_config_section_get_child(table, name);
        if (self->pins->len == EB_PINS_MAX)
            return refuse(section, "", error, "more than %d entries", EB_PINS_MAX);
        if (!is_pin_name(name))
            return refuse(section, "", error, "\"%s\" is no name of an entry", name);
        const EbPin *other = find(self, name);
        if (other != NULL)
            return refuse(section, "", error, "there is a [%s.%s] already: a name stands for one thing",
                          eb_pin_kind_name(other->kind), name);
        EbPin *pin = g_new0(EbPin, 1);
        g_ptr_array_add(self->pins, pin);
        pin->kind = kind;
        pin->name = g_strdup(name);
        if (!read_pin(section, pin, error))
            return FALSE;
    }
    return eb_config_section_check_unknown(table, error);
}

static int
compare_pins(gconstpointer a, gconstpointer b)
{
    const EbPin *const *left = a;
    const EbPin *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

EbPins *
eb_pins_parse(const char *text, gsize length, const char *name, GError **error)
{
    g_autoptr(EbConfigSection) root = eb_toml_parse(text, length, name, error);
    g_autoptr(EbPins) self = g_new0(EbPins, 1);

    self->pins = g_ptr_array_new_with_free_func(pin_free);
    if (root == NULL)
        return NULL;
    for (guint kind = 0; kind < G_N_ELEMENTS(KINDS); kind++) {
        EbConfigSection *table = eb_config_section_get_child(root, KINDS[kind]);
        if (table != NULL && !read_kind(self, kind, table, error))
            return NULL;
    }
    if (!eb_config_section_check_unknown(root, error))
        return NULL;
    g_ptr_array_sort(self->pins, compare_pins);
    return g_steal_pointer(&self);
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
    return eb_pins_parse(text, length, path, error);
}

static void
set_unknown(EbPins *self, const char *what, gboolean npm_only, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);

    for (guint i = 0; i < self->pins->len; i++) {
        const EbPin *pin = g_ptr_array_index(self->pins, i);
        if (!npm_only || pin->kind == EB_PIN_NPM)
            g_string_append_printf(known, "%s%s", known->len > 0 ? ", " : "", pin->name);
    }
    eb_set_error(error, EB_ERROR_NOT_FOUND, "pins.unknown", "pins.toml has no %s (it has %s)", what,
                 known->len > 0 ? known->str : "nothing");
}

const EbPin *
eb_pins_get(EbPins *self, const char *name, GError **error)
{
    const EbPin *pin = find(self, name);

    if (pin != NULL && pin->kind == EB_PIN_NPM)
        return pin;
    g_autofree char *what = g_strdup_printf("[npm.%s]", name);
    set_unknown(self, what, TRUE, error);
    return NULL;
}

const EbPin *
eb_pins_find(EbPins *self, const char *name, GError **error)
{
    const EbPin *pin = find(self, name);

    for (guint kind = 0; kind < G_N_ELEMENTS(KINDS) && pin == NULL; kind++) {
        gsize length = strlen(KINDS[kind]);
        if (strncmp(name, KINDS[kind], length) == 0 && name[length] == '.')
            pin = find(self, name + length + 1);
        if (pin != NULL && pin->kind != kind)
            pin = NULL;
    }
    if (pin == NULL)
        set_unknown(self, name, FALSE, error);
    return pin;
}

GPtrArray *
eb_pins_get_all(EbPins *self)
{
    return self->pins;
}

gboolean
eb_pins_check_bytes(const char *what, GBytes *bytes, const char *digest, GError **error)
{
    g_autoptr(GChecksum) sum = eb_pin_digest_new_sum(what, digest, error);

    if (sum == NULL)
        return FALSE;
    g_checksum_update(sum, g_bytes_get_data(bytes, NULL), (gssize)g_bytes_get_size(bytes));
    return eb_pin_digest_check(what, digest, sum, error);
}
