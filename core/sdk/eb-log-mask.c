/* SPDX-License-Identifier: MIT */
#include "eb-log-private.h"

#include <sodium.h>
#include <string.h>

#include "eb-secret.h"

/* Shorter pieces occur in ordinary text and would only garble it. */
#define NEEDLE_MIN 4
#define NEEDLE_LINE_MIN 16
#define NEEDLES_MAX 64

/* The forms one secret is looked for in, all in one protected block: a view costs two mprotect() calls. */
typedef struct {
    char *label;     /* (owned) */
    EbSecret *plain; /* (owned): to recognise a second registration */
    EbSecret *forms; /* (owned): the needles one behind the other */
    guint n_needles;
    gsize lengths[NEEDLES_MAX];
} MaskEntry;

static GRWLock mask_lock;
static GPtrArray *mask_entries; /* (element-type MaskEntry) under mask_lock, EB_LOG_MASK_MAX at most */

static void
mask_entry_free(gpointer data)
{
    MaskEntry *entry = data;

    eb_secret_unref(entry->plain);
    eb_secret_unref(entry->forms);
    g_free(entry->label);
    g_free(entry);
}

/* Collects needles in a sodium_malloc()ed block of fixed size: the forms are as secret as the secret. */
typedef struct {
    char *block;
    gsize used;
    gsize size;
    MaskEntry *entry;
} FormBuilder;

static void
add_needle(FormBuilder *builder, const char *bytes, gsize length)
{
    MaskEntry *entry = builder->entry;

    if (length < NEEDLE_MIN || entry->n_needles == NEEDLES_MAX || builder->size - builder->used < length)
        return;
    memcpy(builder->block + builder->used, bytes, length);
    builder->used += length;
    entry->lengths[entry->n_needles++] = length;
}

/*
 * Base64 of a text that contains the secret: depending on the offset modulo 3 the secret shows in one of three ways,
 * of which the characters that mix with its neighbours are left out.
 */
static void
add_base64(FormBuilder *builder, const EbSecretView *view, int variant)
{
    gsize text_size = sodium_base64_encoded_len(view->length + 2, variant);
    char *raw = sodium_malloc(view->length + 2);
    char *text = sodium_malloc(text_size);

    for (gsize shift = 0; raw != NULL && text != NULL && shift < 3; shift++) {
        gsize first = (shift * 8 + 5) / 6;
        gsize last = ((shift + view->length) * 8) / 6; /* behind the last character made of the secret alone */

        memset(raw, 0, shift);
        memcpy(raw + shift, view->bytes, view->length);
        sodium_bin2base64(text, text_size, (const unsigned char *)raw, view->length + shift, variant);
        if (last > first && last - first >= 2 * NEEDLE_MIN)
            add_needle(builder, text + first, last - first);
    }
    if (raw != NULL)
        sodium_free(raw);
    if (text != NULL)
        sodium_free(text);
}

static gboolean
is_unreserved(char c)
{
    return g_ascii_isalnum(c) || (c != '\0' && strchr("-._~", c) != NULL);
}

static void
add_percent(FormBuilder *builder, const EbSecretView *view)
{
    static const char hex[] = "0123456789ABCDEF";
    char *text = sodium_malloc(view->length * 3);
    gsize n = 0;

    if (text == NULL)
        return;
    for (gsize i = 0; i < view->length; i++) {
        guint8 c = (guint8)view->bytes[i];

        if (is_unreserved((char)c)) {
            text[n++] = (char)c;
        } else {
            text[n++] = '%';
            text[n++] = hex[c >> 4];
            text[n++] = hex[c & 15];
        }
    }
    if (n != view->length)
        add_needle(builder, text, n);
    sodium_free(text);
}

/* As a JSON or C string shows it: newline, quote and backslash escaped. */
static void
add_escaped(FormBuilder *builder, const EbSecretView *view)
{
    char *text = sodium_malloc(view->length * 2);
    gsize n = 0;

    if (text == NULL)
        return;
    for (gsize i = 0; i < view->length; i++) {
        char c = view->bytes[i];
        char escape = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : (c == '"' || c == '\\') ? c : '\0';

        if (escape != '\0')
            text[n++] = '\\';
        text[n++] = escape != '\0' ? escape : c;
    }
    if (n != view->length)
        add_needle(builder, text, n);
    sodium_free(text);
}

/* Each longer line of a secret of several, e.g. a PEM key that somebody prints line by line. */
static void
add_lines(FormBuilder *builder, const EbSecretView *view)
{
    const char *at = view->bytes;
    const char *end = view->bytes + view->length;

    if (memchr(at, '\n', view->length) == NULL)
        return;
    while (at < end) {
        const char *newline = memchr(at, '\n', (gsize)(end - at));
        gsize length = (gsize)((newline != NULL ? newline : end) - at);

        if (length >= NEEDLE_LINE_MIN && memcmp(at, "-----", 5) != 0)
            add_needle(builder, at, length);
        at += length + 1;
    }
}

static MaskEntry *
mask_entry_new(EbSecret *secret)
{
    g_auto(EbSecretView) view = eb_secret_view(secret);
    MaskEntry *entry = g_new0(MaskEntry, 1);
    FormBuilder builder = {.size = view.length * 16 + 64, .entry = entry};

    entry->label = g_strdup(eb_secret_get_label(secret));
    entry->plain = eb_secret_ref(secret);
    builder.block = sodium_malloc(builder.size);
    if (builder.block == NULL)
        g_error("no protected memory to mask secret %s", entry->label);
    add_needle(&builder, view.bytes, view.length);
    add_percent(&builder, &view);
    add_escaped(&builder, &view);
    add_base64(&builder, &view, sodium_base64_VARIANT_ORIGINAL);
    add_base64(&builder, &view, sodium_base64_VARIANT_URLSAFE);
    add_lines(&builder, &view);
    if (builder.used > 0 && builder.used <= EB_SECRET_MAX_BYTES)
        entry->forms = eb_secret_new_take(entry->label, builder.block, builder.used, NULL);
    if (entry->forms == NULL) {
        /* Too long for all forms: the secret itself is the one that must not be missed. */
        entry->forms = eb_secret_ref(secret);
        entry->n_needles = view.length >= NEEDLE_MIN ? 1 : 0;
        entry->lengths[0] = view.length;
    }
    sodium_free(builder.block);
    return entry;
}

void
eb_log_mask_add(EbSecret *secret)
{
    MaskEntry *entry;

    g_return_if_fail(secret != NULL);
    entry = mask_entry_new(secret);
    g_rw_lock_writer_lock(&mask_lock);
    if (mask_entries == NULL)
        mask_entries = g_ptr_array_new_with_free_func(mask_entry_free);
    for (guint i = 0; i < mask_entries->len; i++) {
        MaskEntry *known = g_ptr_array_index(mask_entries, i);

        if (eb_secret_equal(known->plain, secret)) {
            g_ptr_array_remove_index(mask_entries, i);
            break;
        }
    }
    if (mask_entries->len >= EB_LOG_MASK_MAX)
        g_ptr_array_remove_index(mask_entries, 0);
    g_ptr_array_add(mask_entries, entry);
    g_rw_lock_writer_unlock(&mask_lock);
}

static void
wipe_string(GString *string)
{
    sodium_memzero(string->str, string->len);
    g_string_free(string, TRUE);
}

/* Replaces every occurrence of the needle in *@text. */
static void
mask_needle(GString **text, const char *needle, gsize length, const char *label)
{
    const char *at = (*text)->str;
    const char *end = at + (*text)->len;
    const char *hit = memmem(at, (gsize)(end - at), needle, length);
    GString *result;

    if (hit == NULL)
        return;
    result = g_string_sized_new((*text)->len + 16);
    while (hit != NULL) {
        g_string_append_len(result, at, hit - at);
        g_string_append_printf(result, "[%s]", label);
        at = hit + length;
        hit = memmem(at, (gsize)(end - at), needle, length);
    }
    g_string_append_len(result, at, end - at);
    wipe_string(*text);
    *text = result;
}

char *
eb_log_mask_text(const char *text, gssize length)
{
    GString *result;

    g_return_val_if_fail(text != NULL, NULL);
    result = g_string_new_len(text, length < 0 ? (gssize)strlen(text) : length);
    g_rw_lock_reader_lock(&mask_lock);
    for (guint i = 0; mask_entries != NULL && i < mask_entries->len; i++) {
        MaskEntry *entry = g_ptr_array_index(mask_entries, i);
        g_auto(EbSecretView) view = eb_secret_view(entry->forms);
        const char *needle = view.bytes;

        for (guint n = 0; n < entry->n_needles; n++) {
            mask_needle(&result, needle, entry->lengths[n], entry->label);
            needle += entry->lengths[n];
        }
    }
    g_rw_lock_reader_unlock(&mask_lock);
    return g_string_free(result, FALSE);
}
