/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdint.h>

#include "core/plugin/eb-plugin-manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbPluginManifest) manifest = eb_plugin_manifest_parse((const char *)data, size, "x.plugin", &error);

    if (manifest == NULL) {
        g_assert_true(error->domain == EB_ERROR);
        return 0;
    }
    g_assert_true(eb_plugin_name_is_valid(manifest->name));
    g_assert_nonnull(manifest->implements[0]);
    g_assert_true(g_str_has_prefix(manifest->config_section, "plugin."));
    return 0;
}
