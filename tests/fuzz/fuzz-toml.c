/* SPDX-License-Identifier: MIT */
#include "core/config/eb-config-schema.h"
#include "core/config/eb-toml.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

/* Either a tree or a message that is text and names the file; the schema check takes whatever tree comes. */
int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbConfigSection) root = eb_toml_parse((const char *)data, size, "f.toml", &error);

    if ((root == NULL) != (error != NULL))
        g_error("neither a tree nor a reason, or both");
    if (error != NULL && (!g_utf8_validate(error->message, -1, NULL) || strstr(error->message, "f.toml") == NULL))
        g_error("a reason that does not name the file");
    if (root != NULL) {
        g_autoptr(EbConfigProblems) problems = eb_config_problems_new();
        eb_config_schema_check(root, problems);
    }
    return 0;
}
