/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_PINS_MAX_BYTES: longest file that pins name by a digest of its own (a lock file). */
#define EB_PINS_MAX_BYTES (8 * 1024 * 1024)

/** EB_PINS_MAX: entries of pins.toml, all kinds together. */
#define EB_PINS_MAX 256
/** EB_PINS_MAX_URLS: places of one archive. */
#define EB_PINS_MAX_URLS 8
/** EB_PINS_MAX_ARCHIVE: largest archive or file that may be pinned. */
#define EB_PINS_MAX_ARCHIVE (G_GUINT64_CONSTANT(4) << 30)

/** EbPinKind: where something comes from. */
typedef enum {
    EB_PIN_NPM = 0, /* packages of the npm registry, by a lock file */
    EB_PIN_DEB,     /* a Debian package, which apt verifies */
    EB_PIN_ARCHIVE, /* a file fetched by https */
    EB_PIN_FILE,    /* a file of this machine */
} EbPinKind;

/** EbPin: one [KIND.NAME] of pins.toml; what its kind does not have is NULL or 0. */
typedef struct {
    EbPinKind kind;
    char *name;    /* unique among all kinds */
    char *version; /* npm, archive: exact; deb: at least; file: (nullable), for people */
    char *digest;  /* npm: of the package itself; archive, file: of the file (see eb-pin-digest.h) */
    char *series;  /* npm, archive: (nullable): "10": updates stay below this version */

    char *package;            /* npm, deb: its name there */
    char *lock;               /* npm: lock file, below the recipe's directory */
    char *lock_sha256;        /* npm: hex digest of the lock file */
    char **commands;          /* npm: "NAME=PATH": what is linked into /usr/local/bin */
    char **commands_baseline; /* npm: the same for a processor without AVX2; empty: commands */
    char **avx2;              /* npm: packages taken only with AVX2 */
    char **baseline;          /* npm: packages taken only without */

    gboolean track; /* deb: updates raise the version to what apt would install */

    char **urls;          /* archive: "{version}" stands for the version; tried in this order */
    guint64 max_size;     /* archive, file: bytes */
    char *minisign;       /* archive: (nullable): public key */
    char *signature;      /* archive: (nullable): URL of the signature; NULL: the file's own with ".minisig" */
    char *latest;         /* archive: (nullable): URL of a text that names versions */
    char *latest_pattern; /* archive: (nullable): regular expression; its first group is a version in that text */

    char *path; /* file: absolute, or below the directory of pins.toml */
} EbPin;

/** EbPins: what pins.toml says; immutable. */
typedef struct _EbPins EbPins;

/** eb_pins_load: (transfer full) (nullable): reads @path; EB_ERROR_CONFIG names file and line. */
EbPins *eb_pins_load(const char *path, GError **error);
/** eb_pins_parse: the same for a text. @name: of the file, for messages */
EbPins *eb_pins_parse(const char *text, gsize length, const char *name, GError **error);
void eb_pins_free(EbPins *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbPins, eb_pins_free)

/** eb_pins_get: (transfer none) (nullable): a program of the image, [npm.NAME]; EB_ERROR_NOT_FOUND names the known. */
const EbPin *eb_pins_get(EbPins *self, const char *name, GError **error);
/** eb_pins_find: (transfer none) (nullable): of any kind. @name: "NAME" or "KIND.NAME" */
const EbPin *eb_pins_find(EbPins *self, const char *name, GError **error);
/** eb_pins_get_all: (transfer none) (element-type EbPin): in the order of their names. */
GPtrArray *eb_pins_get_all(EbPins *self);
/** eb_pin_kind_name: "npm", "deb", "archive", "file" */
const char *eb_pin_kind_name(EbPinKind kind);
/** eb_pin_version_is_valid: may @version be put into a URL and a command line? */
gboolean eb_pin_version_is_valid(const char *version);
/**
 * eb_pin_check_url: https, or http at a literal loopback address, with no user in it.
 *
 * Returns: (transfer full) (nullable): what is wrong with it, NULL when nothing is
 */
char *eb_pin_check_url(const char *url);
/** eb_pin_expand_url: (transfer full): @url with @version in place of "{version}". */
char *eb_pin_expand_url(const char *url, const char *version);

/** eb_pin_package_name_is_valid: npm's alphabet and no more: it goes into a command line and into file names. */
gboolean eb_pin_package_name_is_valid(const char *name);

/**
 * eb_pins_check_bytes: compares with @digest (see eb-pin-digest.h).
 * @what: names the thing in the error
 *
 * Returns: FALSE with EB_ERROR_INTEGRITY that names both digests when they differ.
 */
gboolean eb_pins_check_bytes(const char *what, GBytes *bytes, const char *digest, GError **error);

/** eb_pins_read_lock: (transfer full) (nullable): the lock file of @pin below @guest_dir, its digest checked. */
GBytes *eb_pins_read_lock(const EbPin *pin, const char *guest_dir, GError **error);

/** EbPinPackage: one package that a pin's lock file names. */
typedef struct {
    char *path;      /* "node_modules/a/node_modules/b": plain, below node_modules */
    char *name;      /* in the registry */
    char *version;   /* exact */
    char *integrity; /* "sha512-BASE64" */
} EbPinPackage;

/**
 * eb_pins_list_packages: what is to be installed of @pin on this machine: right os, cpu and C library; those that come
 * inside another package's archive are left out.
 * @lock: content of the lock file
 * @cpu: npm's name: "x64", "arm64"
 *
 * Returns: (transfer full) (nullable) (element-type EbPinPackage)
 */
GPtrArray *eb_pins_list_packages(const EbPin *pin, GBytes *lock, const char *cpu, gboolean avx2, GError **error);

/** eb_pins_verify_lock: lock file of an npm pin, its digest, a SHA-512 for each package, the pinned package in it. */
gboolean eb_pins_verify_lock(const EbPin *pin, const char *guest_dir, GError **error);
/** eb_pins_verify: the same for every npm pin. */
gboolean eb_pins_verify(EbPins *self, const char *guest_dir, GError **error);

G_END_DECLS
