/* SPDX-License-Identifier: MIT */
#include "core/base/eb-hostname.h"

#include <string.h>

/* RFC 5894, section 7.2: mapped away by IDNA 2003, letters of their own in IDNA 2008. */
static gboolean
is_deviation(gunichar c)
{
    return c == 0x00df || c == 0x03c2 || c == 0x200c || c == 0x200d;
}

static gboolean
check_characters(const char *name, const char **why)
{
    for (const char *at = name; *at != '\0'; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);

        if (is_deviation(c)) {
            *why = "two hosts are written like this: name the one that is meant in its xn-- form";
            return FALSE;
        }
        if (c >= 0x80 && (!g_unichar_isprint(c) || g_unichar_isspace(c))) {
            *why = "it holds a character that cannot be seen";
            return FALSE;
        }
    }
    return TRUE;
}

static char *
label_to_ascii(const char *label, const char **why)
{
    g_autofree char *ascii = NULL;

    if (g_str_is_ascii(label))
        return g_strdup(label);
    ascii = g_hostname_to_ascii(label);
    if (ascii == NULL) {
        *why = "it is no international name";
        return NULL;
    }
    if (!g_str_has_prefix(ascii, "xn--") || strchr(ascii, '.') != NULL) {
        *why = "it only looks like an international name: write it in plain letters";
        return NULL;
    }
    return g_steal_pointer(&ascii);
}

char *
eb_hostname_to_ascii(const char *name, const char **why)
{
    g_auto(GStrv) labels = NULL;

    if (!g_utf8_validate(name, -1, NULL)) {
        *why = "it is not UTF-8";
        return NULL;
    }
    if (!check_characters(name, why))
        return NULL;
    labels = g_strsplit(name, ".", -1);
    for (char **label = labels; *label != NULL; label++) {
        char *ascii = label_to_ascii(*label, why);

        if (ascii == NULL)
            return NULL;
        g_free(*label);
        *label = ascii;
    }
    return g_strjoinv(".", labels);
}
