/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-args.h"

#include <string.h>

struct _EbCliArgs {
    const EbCliCommand *command; /* (nullable) */
    const EbCliVerb *verb;       /* (nullable) */
    int rest;
    GHashTable *options; /* (element-type utf8 GPtrArray) by long name */
    GPtrArray *operands; /* (element-type utf8), NULL-terminated once parsed */
};

static const char *const no_values[] = {NULL};

void
eb_cli_args_free(EbCliArgs *self)
{
    g_hash_table_unref(self->options);
    g_ptr_array_unref(self->operands);
    g_free(self);
}

static void
invalid(GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    eb_set_error(error, EB_ERROR_INVALID, "cli.usage", "%s", text);
}

const EbCliCommand *
eb_cli_find_command(const char *name, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();

    for (const EbCliCommand *at = eb_cli_commands(); at->name != NULL; at++) {
        if (strcmp(at->name, name) == 0)
            return at;
        if (!at->hidden)
            g_ptr_array_add(names, (gpointer)at->name);
    }
    g_ptr_array_add(names, NULL);
    g_autofree char *shown = eb_log_escape(name, -1, 60);
    const char *near = eb_config_nearest(name, (const char *const *)names->pdata);
    if (near != NULL)
        invalid(error, "there is no command \"%s\" (did you mean \"%s\"?)", shown, near);
    else
        invalid(error, "there is no command \"%s\" (errand-box --help)", shown);
    return NULL;
}

static const EbCliOption *
find_in(const EbCliOption *options, const char *name, gsize length, char letter)
{
    for (const EbCliOption *at = options; at != NULL && at->name != NULL; at++)
        if (letter != 0 ? at->letter == letter : strlen(at->name) == length && strncmp(at->name, name, length) == 0)
            return at;
    return NULL;
}

static const EbCliOption *
find_option(EbCliArgs *self, const char *name, gsize length, char letter)
{
    const EbCliOption *option = find_in(eb_cli_global_options(), name, length, letter);
    if (option == NULL && self->command != NULL)
        option = find_in(self->command->options, name, length, letter);
    return option;
}

static void
unknown_option(EbCliArgs *self, const char *word, gsize length, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autofree char *plain = g_strndup(word, length);
    g_autofree char *shown = eb_log_escape(word, (gssize)length, 60);

    for (const EbCliOption *at = eb_cli_global_options(); at->name != NULL; at++)
        g_ptr_array_add(names, (gpointer)at->name);
    for (const EbCliOption *at = self->command != NULL ? self->command->options : NULL; at != NULL && at->name; at++)
        g_ptr_array_add(names, (gpointer)at->name);
    g_ptr_array_add(names, NULL);
    const char *near = eb_config_nearest(plain, (const char *const *)names->pdata);
    invalid(error, "unknown option \"--%s\"%s%s%s", shown, near != NULL ? " (did you mean \"--" : "",
            near != NULL ? near : "", near != NULL ? "\"?)" : "");
}

static gboolean
keep(EbCliArgs *self, const EbCliOption *option, const char *value, GError **error)
{
    GPtrArray *values = g_hash_table_lookup(self->options, option->name);

    if (values == NULL) {
        values = g_ptr_array_new_with_free_func(g_free);
        g_hash_table_insert(self->options, g_strdup(option->name), values);
    } else if (!option->repeat) {
        invalid(error, "--%s is given twice", option->name);
        return FALSE;
    } else {
        g_ptr_array_remove_index(values, values->len - 1); /* the NULL at the end */
    }
    g_ptr_array_add(values, g_strdup(value != NULL ? value : ""));
    g_ptr_array_add(values, NULL);
    return TRUE;
}

/* @at: the word with the option; moved when the value is the next word. */
static gboolean
take_option(EbCliArgs *self, int argc, char *const *argv, int *at, const EbCliOption *option, const char *value,
            GError **error)
{
    if (option->value == NULL && value != NULL) {
        invalid(error, "--%s takes no value", option->name);
        return FALSE;
    }
    if (option->value != NULL && value == NULL) {
        if (*at + 1 >= argc) {
            invalid(error, "--%s needs a value (%s)", option->name, option->value);
            return FALSE;
        }
        value = argv[++*at];
    }
    return keep(self, option, value, error);
}

static gboolean
take_long(EbCliArgs *self, int argc, char *const *argv, int *at, GError **error)
{
    const char *word = argv[*at] + 2;
    const char *equals = strchr(word, '=');
    gsize length = equals != NULL ? (gsize)(equals - word) : strlen(word);
    const EbCliOption *option = find_option(self, word, length, 0);

    if (option == NULL) {
        unknown_option(self, word, length, error);
        return FALSE;
    }
    return take_option(self, argc, argv, at, option, equals != NULL ? equals + 1 : NULL, error);
}

static gboolean
take_short(EbCliArgs *self, int argc, char *const *argv, int *at, GError **error)
{
    for (const char *letter = argv[*at] + 1; *letter != '\0'; letter++) {
        const EbCliOption *option = find_option(self, NULL, 0, *letter);
        if (option == NULL) {
            g_autofree char *shown = eb_log_escape(letter, 1, 8);
            invalid(error, "unknown option \"-%s\"", shown);
            return FALSE;
        }
        if (option->value != NULL)
            return take_option(self, argc, argv, at, option, letter[1] != '\0' ? letter + 1 : NULL, error);
        if (!keep(self, option, NULL, error))
            return FALSE;
    }
    return TRUE;
}

static const EbCliVerb *
find_verb(const EbCliCommand *command, const char *name)
{
    for (const EbCliVerb *at = command->verbs; at->name != NULL; at++)
        if (strcmp(at->name, name) == 0)
            return at;
    return NULL;
}

/* A command with verbs takes its first operand as one; without a "" verb it needs one. */
static gboolean
take_operand(EbCliArgs *self, int at, const char *word, GError **error)
{
    if (self->command == NULL) {
        self->command = eb_cli_find_command(word, error);
        self->rest = at + 1;
        return self->command != NULL;
    }
    if (self->verb == NULL && self->operands->len == 0) {
        self->verb = find_verb(self->command, word);
        if (self->verb != NULL && *word != '\0')
            return TRUE;
        self->verb = find_verb(self->command, "");
        if (self->verb == NULL || self->verb->max_operands == 0) {
            g_autofree char *shown = eb_log_escape(word, -1, 60);
            g_autoptr(GPtrArray) names = g_ptr_array_new();
            for (const EbCliVerb *verb = self->command->verbs; verb->name != NULL; verb++)
                g_ptr_array_add(names, (gpointer)verb->name);
            g_ptr_array_add(names, NULL);
            const char *near = eb_config_nearest(word, (const char *const *)names->pdata);
            invalid(error, "%s: \"%s\" is not understood%s%s%s (errand-box %s --help)", self->command->name, shown,
                    near != NULL ? ", did you mean \"" : "", near != NULL ? near : "", near != NULL ? "\"?" : "",
                    self->command->name);
            return FALSE;
        }
    }
    g_ptr_array_add(self->operands, g_strdup(word));
    return TRUE;
}

static gboolean
check_operands(EbCliArgs *self, GError **error)
{
    const EbCliVerb *verb = self->verb;
    const char *space;

    if (verb == NULL)
        verb = self->verb = find_verb(self->command, "");
    if (verb == NULL) {
        invalid(error, "%s needs one of its verbs (errand-box %s --help)", self->command->name, self->command->name);
        return FALSE;
    }
    space = *verb->name != '\0' ? " " : "";
    if (self->operands->len < verb->min_operands) {
        invalid(error, "%s%s%s needs %s", self->command->name, space, verb->name, verb->operands);
        return FALSE;
    }
    if (self->operands->len > verb->max_operands) {
        g_autofree char *shown = eb_log_escape(self->operands->pdata[verb->max_operands], -1, 60);
        invalid(error, "%s%s%s: \"%s\" is one too many", self->command->name, space, verb->name, shown);
        return FALSE;
    }
    for (guint i = 0; verb->words != NULL && i < self->operands->len; i++)
        if (!g_strv_contains(verb->words, self->operands->pdata[i])) {
            g_autofree char *shown = eb_log_escape(self->operands->pdata[i], -1, 60);
            g_autofree char *list = g_strjoinv(", ", (char **)verb->words);
            invalid(error, "%s%s%s: \"%s\" is none of %s", self->command->name, space, verb->name, shown, list);
            return FALSE;
        }
    return TRUE;
}

EbCliArgs *
eb_cli_args_parse(int argc, char *const *argv, GError **error)
{
    g_autoptr(EbCliArgs) self = g_new0(EbCliArgs, 1);
    gboolean options = TRUE;

    self->rest = argc;
    self->options = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
    self->operands = g_ptr_array_new_with_free_func(g_free);
    for (int at = 0; at < argc; at++) {
        const char *word = argv[at];
        gboolean good;
        if (options && strcmp(word, "--") == 0) {
            options = FALSE;
            continue;
        }
        if (options && g_str_has_prefix(word, "--"))
            good = take_long(self, argc, argv, &at, error);
        else if (options && word[0] == '-' && word[1] != '\0')
            good = take_short(self, argc, argv, &at, error);
        else
            good = take_operand(self, at, word, error);
        if (!good)
            return NULL;
    }
    gboolean excused = eb_cli_args_flag(self, "help") || eb_cli_args_flag(self, "version");
    if (self->command == NULL && !excused) {
        invalid(error, "no command (errand-box --help)");
        return NULL;
    }
    if (!excused && !check_operands(self, error))
        return NULL;
    g_ptr_array_add(self->operands, NULL);
    return g_steal_pointer(&self);
}

const EbCliCommand *
eb_cli_args_get_command(EbCliArgs *self)
{
    return self->command;
}

const char *
eb_cli_args_get_verb(EbCliArgs *self)
{
    return self->verb != NULL ? self->verb->name : "";
}

int
eb_cli_args_get_rest(EbCliArgs *self)
{
    return self->rest;
}

gboolean
eb_cli_args_flag(EbCliArgs *self, const char *name)
{
    return g_hash_table_contains(self->options, name);
}

guint
eb_cli_args_count(EbCliArgs *self, const char *name)
{
    GPtrArray *values = g_hash_table_lookup(self->options, name);
    return values != NULL ? values->len - 1 : 0;
}

const char *
eb_cli_args_value(EbCliArgs *self, const char *name)
{
    GPtrArray *values = g_hash_table_lookup(self->options, name);
    return values != NULL ? values->pdata[values->len - 2] : NULL;
}

const char *const *
eb_cli_args_values(EbCliArgs *self, const char *name)
{
    GPtrArray *values = g_hash_table_lookup(self->options, name);
    return values != NULL ? (const char *const *)values->pdata : no_values;
}

const char *const *
eb_cli_args_operands(EbCliArgs *self)
{
    return (const char *const *)self->operands->pdata;
}
