/* SPDX-License-Identifier: MIT */
#include "eb-log-private.h"

#include <sodium.h>
#include <string.h>

#include "eb-secret.h"

/* Shorter pieces occur in ordinary text and would only garble it. */
#define NEEDLE_MIN 4
#define NEEDLE_LINE_MIN 16
#define NEEDLE_REVERSED_MIN 8
#define NEEDLES_MAX 64
#define POOL_STEP (16 * 1024)

/* The forms one secret is looked for in: needles one behind the other in the pool. */
typedef struct {
    char *label;  /* (owned) */
    gsize offset; /* in the pool */
    guint n_needles;
    gsize lengths[NEEDLES_MAX];
} MaskEntry;

/*
 * The needles of all secrets are in one protected block, so that a message costs two mprotect() calls however many
 * secrets there are. Everything under mask_lock.
 */
static GMutex mask_lock;
static GPtrArray *mask_entries; /* (element-type MaskEntry), EB_LOG_MASK_MAX at most */
static char *pool;              /* sodium_malloc()ed, unreadable outside the lock */
static gsize pool_used;
static gsize pool_size;

static void
mask_entry_free(gpointer data)
{
    MaskEntry *entry = data;

    g_free(entry->label);
    g_free(entry);
}

static gsize
needles_length(const MaskEntry *entry)
{
    gsize length = 0;

    for (guint i = 0; i < entry->n_needles; i++)
        length += entry->lengths[i];
    return length;
}

/* Makes room for @more bytes: a new pool with what is still needed of the old one. */
static void
pool_reserve(gsize more)
{
    gsize needed = more;
    char *grown;

    if (pool != NULL && pool_size - pool_used >= more)
        return;
    for (guint i = 0; i < mask_entries->len; i++)
        needed += needles_length(g_ptr_array_index(mask_entries, i));
    pool_size = MAX(POOL_STEP, needed * 2);
    grown = sodium_malloc(pool_size);
    if (grown == NULL)
        g_error("no protected memory to mask secrets");
    if (pool != NULL)
        sodium_mprotect_readonly(pool);
    pool_used = 0;
    for (guint i = 0; i < mask_entries->len; i++) {
        MaskEntry *entry = g_ptr_array_index(mask_entries, i);
        gsize length = needles_length(entry);

        memcpy(grown + pool_used, pool + entry->offset, length);
        entry->offset = pool_used;
        pool_used += length;
    }
    if (pool != NULL)
        sodium_free(pool);
    pool = grown;
    sodium_mprotect_noaccess(pool);
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

static const char lower_digits[] = "0123456789abcdef";
static const char upper_digits[] = "0123456789ABCDEF";

static void
add_percent(FormBuilder *builder, const EbSecretView *view, const char *hex)
{
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

static void
add_hex(FormBuilder *builder, const EbSecretView *view, const char *hex)
{
    char *text = sodium_malloc(view->length * 2);

    if (text == NULL)
        return;
    for (gsize i = 0; i < view->length; i++) {
        text[i * 2] = hex[(guint8)view->bytes[i] >> 4];
        text[i * 2 + 1] = hex[(guint8)view->bytes[i] & 15];
    }
    add_needle(builder, text, view->length * 2);
    sodium_free(text);
}

/* By characters where it is text. */
static void
add_reversed(FormBuilder *builder, const EbSecretView *view)
{
    gboolean is_text = g_utf8_validate(view->bytes, (gssize)view->length, NULL);
    char *text = sodium_malloc(view->length);
    gsize n = view->length;

    if (text == NULL)
        return;
    for (gsize i = 0; i < view->length;) {
        gsize size = is_text ? (gsize)(g_utf8_next_char(view->bytes + i) - (view->bytes + i)) : 1;

        n -= size;
        memcpy(text + n, view->bytes + i, size);
        i += size;
    }
    if (view->length >= NEEDLE_REVERSED_MIN)
        add_needle(builder, text, view->length);
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

/* Writes the forms of @view into @block of @size bytes; returns how many bytes they have. */
static gsize
build_forms(MaskEntry *entry, const EbSecretView *view, char *block, gsize size)
{
    FormBuilder builder = {.block = block, .size = size, .entry = entry};

    add_needle(&builder, view->bytes, view->length);
    add_percent(&builder, view, upper_digits);
    add_percent(&builder, view, lower_digits);
    add_escaped(&builder, view);
    add_base64(&builder, view, sodium_base64_VARIANT_ORIGINAL);
    add_base64(&builder, view, sodium_base64_VARIANT_URLSAFE);
    add_hex(&builder, view, lower_digits);
    add_hex(&builder, view, upper_digits);
    add_reversed(&builder, view);
    add_lines(&builder, view);
    return builder.used;
}

/* A secret's first needle is the secret itself. */
static void
forget_known(const EbSecretView *view)
{
    if (pool != NULL)
        sodium_mprotect_readonly(pool);
    for (guint i = 0; i < mask_entries->len; i++) {
        const MaskEntry *known = g_ptr_array_index(mask_entries, i);

        if (known->n_needles > 0 && known->lengths[0] == view->length &&
            sodium_memcmp(pool + known->offset, view->bytes, view->length) == 0) {
            g_ptr_array_remove_index(mask_entries, i);
            break;
        }
    }
    if (pool != NULL)
        sodium_mprotect_noaccess(pool);
    if (mask_entries->len >= EB_LOG_MASK_MAX)
        g_ptr_array_remove_index(mask_entries, 0);
}

void
eb_log_mask_add(EbSecret *secret)
{
    g_auto(EbSecretView) view = {0};
    MaskEntry *entry;
    gsize most;

    g_return_if_fail(secret != NULL);
    view = eb_secret_view(secret);
    entry = g_new0(MaskEntry, 1);
    entry->label = g_strdup(eb_secret_get_label(secret));
    /* Itself, backwards, escaped (2), percent-encoded (2 * 3), base64 (6 * 4/3), hex (2 * 2) and its lines. */
    most = view.length * 24 + 256;
    g_mutex_lock(&mask_lock);
    if (mask_entries == NULL)
        mask_entries = g_ptr_array_new_with_free_func(mask_entry_free);
    forget_known(&view);
    pool_reserve(most);
    sodium_mprotect_readwrite(pool);
    entry->offset = pool_used;
    pool_used += build_forms(entry, &view, pool + pool_used, most);
    sodium_mprotect_noaccess(pool);
    g_ptr_array_add(mask_entries, entry);
    g_mutex_unlock(&mask_lock);
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
    g_mutex_lock(&mask_lock);
    if (pool != NULL)
        sodium_mprotect_readonly(pool);
    for (guint i = 0; mask_entries != NULL && i < mask_entries->len; i++) {
        const MaskEntry *entry = g_ptr_array_index(mask_entries, i);
        const char *needle = pool + entry->offset;

        for (guint n = 0; n < entry->n_needles; n++) {
            mask_needle(&result, needle, entry->lengths[n], entry->label);
            needle += entry->lengths[n];
        }
    }
    if (pool != NULL)
        sodium_mprotect_noaccess(pool);
    g_mutex_unlock(&mask_lock);
    return g_string_free(result, FALSE);
}
