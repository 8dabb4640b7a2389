/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_PINS_MAX_BYTES: longest file that pins name by a digest of its own (a lock file). */
#define EB_PINS_MAX_BYTES (8 * 1024 * 1024)

/** EbPin: one [npm.NAME] of pins.toml: a program of the guest image. */
typedef struct {
    char *name;
    char *package;            /* its name in the registry */
    char *version;            /* exact */
    char *integrity;          /* "sha512-BASE64" of the package itself */
    char *lock;               /* lock file, below the recipe's directory */
    char *lock_sha256;        /* hex digest of the lock file */
    char **commands;          /* "NAME=PATH": what is linked into /usr/local/bin */
    char **commands_baseline; /* the same for a processor without AVX2; empty: commands */
    char **avx2;              /* packages taken only with AVX2 */
    char **baseline;          /* packages taken only without */
} EbPin;

/** EbPins: what pins.toml says; immutable. */
typedef struct _EbPins EbPins;

/** eb_pins_load: (transfer full) (nullable): reads @path; EB_ERROR_CONFIG names file and line. */
EbPins *eb_pins_load(const char *path, GError **error);
void eb_pins_free(EbPins *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbPins, eb_pins_free)

/** eb_pins_get: (transfer none) (nullable): EB_ERROR_NOT_FOUND names the known ones. */
const EbPin *eb_pins_get(EbPins *self, const char *name, GError **error);
/** eb_pins_get_all: (transfer none) (element-type EbPin): in the order of their names. */
GPtrArray *eb_pins_get_all(EbPins *self);

/**
 * eb_pins_check_bytes, eb_pins_check_file: compares with @digest: "sha512-BASE64", or 64 hex digits of a SHA-256.
 * @what: names the thing in the error
 *
 * Returns: FALSE with EB_ERROR_INTEGRITY that names both digests when they differ.
 */
gboolean eb_pins_check_bytes(const char *what, GBytes *bytes, const char *digest, GError **error);
gboolean eb_pins_check_file(const char *path, const char *digest, GError **error);

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

/** eb_pins_verify: checks every entry: lock file, its digest, a SHA-512 for each package, the pinned package in it. */
gboolean eb_pins_verify(EbPins *self, const char *guest_dir, GError **error);

G_END_DECLS
