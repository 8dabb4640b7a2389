/* SPDX-License-Identifier: MIT */
#include "core/config/eb-config-schema.h"

#include <string.h>

static void
problem_at(EbConfigProblems *problems, EbConfigSection *section, const char *key, const char *what)
{
    g_autofree char *where = eb_config_section_where(section, key);
    const char *path = eb_config_section_get_path(section);

    eb_config_problems_add(problems, "%s: %s%s%s: %s", where, path, *path != '\0' ? "." : "", key, what);
}

static void
check_choice(EbConfigProblems *problems, EbConfigSection *section, const EbConfigKey *known, const char *text)
{
    g_auto(GStrv) choices = g_strsplit(known->choices, "|", -1);
    if (g_strv_contains((const char *const *)choices, text))
        return;
    g_autofree char *shown = eb_log_escape(text, -1, 60);
    g_autofree char *list = g_strjoinv(", ", choices);
    const char *near = eb_config_nearest(text, (const char *const *)choices);
    g_autofree char *hint = near != NULL ? g_strdup_printf(" (did you mean \"%s\"?)", near) : g_strdup("");
    g_autofree char *what = g_strdup_printf("\"%s\" is none of %s%s", shown, list, hint);
    problem_at(problems, section, known->key, what);
}

/* What was written, without what may be a secret in a URL: before its "@", and behind "?" or "#". */
static char *
show_text(const char *text)
{
    const char *scheme = strstr(text, "://");
    const char *begin = scheme != NULL ? scheme + 3 : text;
    const char *at = strrchr(begin, '@');
    const char *rest = at != NULL ? at : begin;
    gsize plain = strcspn(rest, "?#");
    g_autofree char *cut = g_strdup_printf("%.*s%s%.*s%s", (int)(begin - text), text, at != NULL ? "..." : "",
                                           (int)plain, rest, rest[plain] != '\0' ? "?..." : "");

    return eb_log_escape(cut, -1, 80);
}

static void
check_text(EbConfigProblems *problems, EbConfigSection *section, const EbConfigKey *known, const char *text)
{
    g_autofree char *wrong = NULL;

    if (known->choices != NULL) {
        check_choice(problems, section, known, text);
        return;
    }
    if (known->check != NULL)
        wrong = known->check(text);
    else if (*text == '\0')
        wrong = g_strdup("an empty text (leave the key out instead)");
    if (wrong == NULL)
        return;
    g_autofree char *shown = show_text(text);
    g_autofree char *what = g_strdup_printf("\"%s\": %s", shown, wrong);
    problem_at(problems, section, known->key, what);
}

static void
check_texts(EbConfigProblems *problems, EbConfigSection *section, const EbConfigKey *known)
{
    GError *error = NULL;
    g_auto(GStrv) list = eb_config_section_get_strings(section, known->key, &error);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

    eb_config_problems_take(problems, error);
    if (list == NULL)
        return;
    if (g_strv_length(list) > known->max) {
        g_autofree char *what = g_strdup_printf("more than %" G_GUINT64_FORMAT " entries", known->max);
        problem_at(problems, section, known->key, what);
        return;
    }
    for (char **item = list; *item != NULL; item++) {
        if (!g_hash_table_add(seen, *item)) {
            g_autofree char *shown = show_text(*item);
            g_autofree char *what = g_strdup_printf("\"%s\" stands there twice", shown);
            problem_at(problems, section, known->key, what);
        } else {
            check_text(problems, section, known, *item);
        }
    }
}

static void
check_ints(EbConfigProblems *problems, EbConfigSection *section, const EbConfigKey *known)
{
    GVariant *value = eb_config_section_get_value(section, known->key);
    g_autofree char *range =
        g_strdup_printf("a list of numbers from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, known->min, known->max);

    /* An empty list has no element type. */
    if (g_variant_is_of_type(value, G_VARIANT_TYPE_STRING_ARRAY) && g_variant_n_children(value) == 0)
        return;
    if (!g_variant_is_of_type(value, G_VARIANT_TYPE("ax"))) {
        problem_at(problems, section, known->key, range);
        return;
    }
    if (g_variant_n_children(value) > 64) {
        problem_at(problems, section, known->key, "more than 64 entries");
        return;
    }
    for (gsize i = 0; i < g_variant_n_children(value); i++) {
        gint64 number;
        g_variant_get_child(value, i, "x", &number);
        if (number < (gint64)known->min || number > (gint64)known->max) {
            problem_at(problems, section, known->key, range);
            return;
        }
    }
}

static void
check_value(EbConfigProblems *problems, EbConfigSection *section, const EbConfigKey *known)
{
    GError *error = NULL;
    g_autofree char *text = NULL;
    gint64 number;
    guint64 amount;
    gboolean truth;

    switch (known->kind) {
    case EB_KIND_TEXT:
        text = eb_config_section_get_string(section, known->key, NULL, &error);
        if (text != NULL)
            check_text(problems, section, known, text);
        break;
    case EB_KIND_INT:
        eb_config_section_get_int(section, known->key, 0, (gint64)known->min, (gint64)known->max, &number, &error);
        break;
    case EB_KIND_BOOL:
        eb_config_section_get_bool(section, known->key, FALSE, &truth, &error);
        break;
    case EB_KIND_TEXTS:
        check_texts(problems, section, known);
        break;
    case EB_KIND_INTS:
        check_ints(problems, section, known);
        break;
    case EB_KIND_SIZE:
        eb_config_section_get_size(section, known->key, 0, known->min, known->max, &amount, &error);
        break;
    case EB_KIND_DURATION:
        eb_config_section_get_duration(section, known->key, 0, known->min, known->max, &amount, &error);
        break;
    case EB_KIND_SECRET:
        text = eb_config_section_get_secret_name(section, known->key, &error);
        break;
    }
    eb_config_problems_take(problems, error);
}

/* What may stand in @table: its keys (NULL-terminated, borrowed). */
static GPtrArray *
names_of(const char *table)
{
    GPtrArray *names = g_ptr_array_new();

    for (const EbConfigKey *at = eb_config_keys(); at->table != NULL; at++)
        if (strcmp(at->table, table) == 0)
            g_ptr_array_add(names, (gpointer)at->key);
    g_ptr_array_add(names, NULL);
    return names;
}

static void
unknown(EbConfigProblems *problems, EbConfigSection *section, const char *name, gboolean table, GPtrArray *names)
{
    g_autofree char *where = NULL;
    g_autofree char *shown = eb_log_escape(name, -1, 60);
    const char *path = eb_config_section_get_path(section);
    const char *near = eb_config_nearest(name, (const char *const *)names->pdata);
    EbConfigSection *child = table ? eb_config_section_get_child(section, name) : NULL;
    g_autofree char *hint = NULL;

    if (near != NULL) {
        hint = g_strdup_printf(" (did you mean \"%s\"?)", near);
    } else if (*path != '\0' && names->len > 1) {
        g_autofree char *list = g_strjoinv(", ", (char **)names->pdata);
        hint = g_strdup_printf(" (known: %s)", list);
    }
    where = child != NULL ? eb_config_section_where(child, NULL) : eb_config_section_where(section, name);
    eb_config_problems_add(problems, "%s: unknown %s \"%s%s%s\"%s", where, table ? "table" : "key", path,
                           *path != '\0' ? "." : "", shown, hint != NULL ? hint : "");
}

/* "[[session]]": its tables have numbers for names. TRUE: said. */
static gboolean
is_list(EbConfigProblems *problems, EbConfigSection *section, const char *name, const char *instead)
{
    g_autofree char *where = NULL;

    if (strspn(name, "0123456789") != strlen(name))
        return FALSE;
    where = eb_config_section_where(eb_config_section_get_child(section, name), NULL);
    eb_config_problems_add(problems, "%s: [[%s]] begins a list, and there is one table alone (write [%s%s])", where,
                           eb_config_section_get_path(section), eb_config_section_get_path(section), instead);
    return TRUE;
}

/* @kind: the table's name in the key list, "provider.*" for one provider. */
static void
check_table(EbConfigProblems *problems, EbConfigSection *section, const char *kind)
{
    g_autoptr(GPtrArray) names = names_of(kind);
    g_autoptr(GPtrArray) present = eb_config_section_get_keys(section);
    g_autoptr(GPtrArray) children = eb_config_section_get_children(section);

    for (guint i = 0; i < present->len; i++) {
        const EbConfigKey *known = eb_config_key_find(kind, present->pdata[i]);
        if (known == NULL)
            unknown(problems, section, present->pdata[i], FALSE, names);
        else
            check_value(problems, section, known);
    }
    for (guint i = 0; i < children->len; i++)
        if (!is_list(problems, section, children->pdata[i], ""))
            unknown(problems, section, children->pdata[i], TRUE, names);
    for (const EbConfigKey *at = eb_config_keys(); at->table != NULL; at++)
        if (at->required && strcmp(at->table, kind) == 0 && !eb_config_section_has(section, at->key)) {
            g_autofree char *where = eb_config_section_where(section, NULL);
            eb_config_problems_add(problems, "%s: [%s] needs \"%s\" (%s)", where, eb_config_section_get_path(section),
                                   at->key, at->doc);
        }
}

static void
refuse_secret(EbConfigProblems *problems, EbConfigSection *section, const char *key, const char *text)
{
    if (*text == '\0' || g_str_has_prefix(text, "cred:") || strstr(text, "${") != NULL)
        return;
    if (eb_config_key_is_secret(key) || eb_config_text_is_secret(text))
        problem_at(problems, section, key,
                   "a secret does not belong into a configuration file: write \"cred:NAME\" and run "
                   "errand-box creds set NAME");
}

static void
refuse_secrets(EbConfigProblems *problems, EbConfigSection *section)
{
    g_autoptr(GPtrArray) present = eb_config_section_get_keys(section);
    g_autoptr(GPtrArray) children = eb_config_section_get_children(section);

    for (guint i = 0; i < present->len; i++) {
        GVariant *value = eb_config_section_get_value(section, present->pdata[i]);
        if (g_variant_is_of_type(value, G_VARIANT_TYPE_STRING)) {
            refuse_secret(problems, section, present->pdata[i], g_variant_get_string(value, NULL));
        } else if (g_variant_is_of_type(value, G_VARIANT_TYPE_STRING_ARRAY)) {
            g_autofree const char **list = g_variant_get_strv(value, NULL);
            for (guint n = 0; list[n] != NULL; n++)
                refuse_secret(problems, section, present->pdata[i], list[n]);
        }
    }
    for (guint i = 0; i < children->len; i++)
        refuse_secrets(problems, eb_config_section_get_child(section, children->pdata[i]));
}

/* Tables of tables: each name below is free, but has to be a name. */
static void
check_family(EbConfigProblems *problems, EbConfigSection *family, const char *kind)
{
    g_autoptr(GPtrArray) present = eb_config_section_get_keys(family);
    g_autoptr(GPtrArray) children = eb_config_section_get_children(family);

    for (guint i = 0; i < present->len; i++)
        problem_at(problems, family, present->pdata[i], "a table [...] of a name is expected here, not a key");
    for (guint i = 0; i < children->len; i++) {
        EbConfigSection *child = eb_config_section_get_child(family, children->pdata[i]);
        g_autofree char *wrong = eb_config_check_name(children->pdata[i]);
        if (is_list(problems, family, children->pdata[i], ".NAME"))
            continue;
        if (wrong != NULL) {
            g_autofree char *where = eb_config_section_where(child, NULL);
            g_autofree char *shown = eb_log_escape(children->pdata[i], -1, 60);
            eb_config_problems_add(problems, "%s: [%s.%s]: %s", where, eb_config_section_get_path(family), shown,
                                   wrong);
        } else if (kind != NULL) {
            check_table(problems, child, kind);
        }
    }
}

void
eb_config_schema_check(EbConfigSection *root, EbConfigProblems *problems)
{
    static const char *const tables[] = {"service", "plugins",   "credentials", "session",  "limits", "egress",
                                         "budget",  "provision", "plugin",      "provider", "agent",  NULL};
    g_autoptr(GPtrArray) known = g_ptr_array_new();
    g_autoptr(GPtrArray) present = eb_config_section_get_keys(root);
    g_autoptr(GPtrArray) children = eb_config_section_get_children(root);

    for (guint i = 0; i <= G_N_ELEMENTS(tables) - 1; i++)
        g_ptr_array_add(known, (gpointer)tables[i]);
    for (guint i = 0; i < present->len; i++) {
        const char *name = present->pdata[i];
        if (g_strv_contains(tables, name)) {
            g_autofree char *where = eb_config_section_where(root, name);
            eb_config_problems_add(problems, "%s: %s is a table (write [%s], and its keys in the lines below)", where,
                                   name, name);
        } else {
            unknown(problems, root, name, FALSE, known);
        }
    }
    for (guint i = 0; i < children->len; i++) {
        const char *name = children->pdata[i];
        EbConfigSection *child = eb_config_section_get_child(root, name);
        if (strcmp(name, "provider") == 0)
            check_family(problems, child, "provider.*");
        else if (strcmp(name, "plugin") == 0 || strcmp(name, "agent") == 0)
            check_family(problems, child, NULL);
        else if (g_strv_contains(tables, name))
            check_table(problems, child, name);
        else
            unknown(problems, root, name, TRUE, known);
    }
    refuse_secrets(problems, root);
}
