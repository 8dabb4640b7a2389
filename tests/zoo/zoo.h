/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/plugin/eb-plugin-registry.h"
#include "eb-test.h"

G_BEGIN_DECLS

/** Zoo: a directory of plugins and a registry that has not looked at it yet. */
typedef struct {
    char *dir;
    EbPluginRegistry *registry;
} Zoo;

void zoo_init(Zoo *zoo);
void zoo_clear(Zoo *zoo);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Zoo, zoo_clear)

/** zoo_module_path: (transfer full): @dir/@name/@name@suffix */
char *zoo_module_path(const char *dir, const char *name, const char *suffix);
/** zoo_install_module: puts the built module @variant into @dir as plugin @name. */
void zoo_install_module(const char *dir, const char *name, const char *variant);
void zoo_install_manifest(const char *dir, const char *name, const char *text);
/** zoo_manifest_text: (transfer full): a good manifest, but for what is given; @more: (nullable): further lines. */
char *zoo_manifest_text(const char *name, const char *abi, const char *implements, const char *more);
/** zoo_install_plugin: module and good manifest of @name. */
void zoo_install_plugin(const char *dir, const char *name);
/** zoo_load: everything in the directory. */
void zoo_load(Zoo *zoo);
const EbPluginRecord *zoo_find(Zoo *zoo, const char *name);
/** zoo_has_run: @what: "OPENED": the module's constructor ran; "CREATED": its create(). */
gboolean zoo_has_run(const char *what, const char *name);
/** zoo_assert_failed: the record is failed, provides nothing, and says exactly why. */
void zoo_assert_failed(Zoo *zoo, const char *name, EbErrorCode code, const char *reason, const char *text);

/** ZOO_ABI: of this errand-box, e.g. "1.1" */
#define ZOO_TEXT_OF(number) G_STRINGIFY(number)
#define ZOO_ABI ZOO_TEXT_OF(EB_ABI_MAJOR) "." ZOO_TEXT_OF(EB_ABI_MINOR)

/** ZooTest: one test; each runs in a process of its own, since a module is loaded once and for ever. */
typedef struct {
    const char *path;
    GTestFunc func;
} ZooTest;
int zoo_run(int argc, char **argv, const ZooTest *tests, gsize n_tests);

G_END_DECLS
