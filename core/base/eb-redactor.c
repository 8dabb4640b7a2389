/* SPDX-License-Identifier: MIT */
#include "core/base/eb-redactor.h"

#include <string.h>

/* All shapes of one secret stay in one block of secret memory, which EB_SECRET_MAX_BYTES bounds; the raw form and its
 * lines come first, so that what does not fit is the unlikely. */
#define MAX_PATTERNS 64
/* Lines of a longer secret (a PEM key) that are searched on their own. */
#define MIN_LINE_BYTES 16

typedef struct {
    guint offset;
    guint length;
} EbPattern;

typedef struct {
    EbSecret *secret;
    EbSecret *shapes; /* every pattern, one behind the other */
    EbPattern patterns[MAX_PATTERNS];
    guint n_patterns;
} EbRedactEntry;

struct _EbRedactSet {
    int ref_count;
    GPtrArray *entries; /* (element-type EbRedactEntry), at most EB_REDACT_MAX_SECRETS */
    /* One bit for the first two bytes of each pattern: most positions of a text are passed by with one look. */
    guint8 starts[65536 / 8];
};

struct _EbRedactor {
    EbRedactSet *set;
    GString *held;
};

static void
entry_free(gpointer data)
{
    EbRedactEntry *entry = data;
    eb_secret_unref(entry->secret);
    eb_secret_unref(entry->shapes);
    g_free(entry);
}

EbRedactSet *
eb_redact_set_new(void)
{
    EbRedactSet *self = g_new0(EbRedactSet, 1);
    self->ref_count = 1;
    self->entries = g_ptr_array_new_with_free_func(entry_free);
    return self;
}

EbRedactSet *
eb_redact_set_copy(const EbRedactSet *self)
{
    EbRedactSet *copy = eb_redact_set_new();
    for (guint i = 0; self != NULL && i < self->entries->len; i++)
        eb_redact_set_add(copy, ((EbRedactEntry *)self->entries->pdata[i])->secret);
    return copy;
}

EbRedactSet *
eb_redact_set_ref(EbRedactSet *self)
{
    g_atomic_int_inc(&self->ref_count);
    return self;
}

void
eb_redact_set_unref(EbRedactSet *self)
{
    if (self == NULL || !g_atomic_int_dec_and_test(&self->ref_count))
        return;
    g_ptr_array_unref(self->entries);
    g_free(self);
}

/* --- shapes --- */

/* A growing buffer of plain bytes that is wiped when it moves: GString would leave copies behind. */
typedef struct {
    char *bytes;
    gsize length;
    EbRedactEntry *entry;
} EbShapes;

static void
wipe(char *bytes, gsize length)
{
    explicit_bzero(bytes, length);
}

static void
shapes_add(EbShapes *shapes, const char *bytes, gsize length)
{
    EbRedactEntry *entry = shapes->entry;
    if (length < EB_REDACT_MIN_BYTES || entry->n_patterns >= MAX_PATTERNS ||
        shapes->length + length > EB_SECRET_MAX_BYTES)
        return;
    for (guint i = 0; i < entry->n_patterns; i++)
        if (entry->patterns[i].length == length &&
            memcmp(shapes->bytes + entry->patterns[i].offset, bytes, length) == 0)
            return;
    memcpy(shapes->bytes + shapes->length, bytes, length);
    entry->patterns[entry->n_patterns++] = (EbPattern){(guint)shapes->length, (guint)length};
    shapes->length += length;
}

static void
add_lines(EbShapes *shapes, const char *bytes, gsize length)
{
    if (memchr(bytes, '\n', length) == NULL)
        return;
    for (gsize start = 0; start < length;) {
        const char *end = memchr(bytes + start, '\n', length - start);
        gsize size = end != NULL ? (gsize)(end - bytes) - start : length - start;
        gsize next = start + size + 1;
        if (size > 0 && bytes[start + size - 1] == '\r')
            size--;
        /* The armour of a PEM file is no secret and stands in many texts. */
        if (size >= MIN_LINE_BYTES && !(size > 5 && memcmp(bytes + start, "-----", 5) == 0))
            shapes_add(shapes, bytes + start, size);
        start = next;
    }
}

static void
add_base64(EbShapes *shapes, const char *bytes, gsize length, guint shift)
{
    static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const char *const alphabets[] = {standard, url};
    gsize room = (length + 2) * 8 / 6 + 1;
    g_autofree char *out = g_malloc(room);
    /* The secret stands @shift bytes into a group of three; only characters made of its bits alone are searched. */
    gsize first_bit = shift * 8;
    gsize last_bit = first_bit + length * 8;
    gsize begin = (first_bit + 5) / 6;
    gsize end = last_bit / 6;
    for (guint a = 0; a < G_N_ELEMENTS(alphabets); a++) {
        gsize n = 0;
        for (gsize c = begin; c < end && n < room; c++) {
            guint value = 0;
            for (guint bit = 0; bit < 6; bit++) {
                gsize position = c * 6 + bit - first_bit;
                value = (value << 1) | (((guchar)bytes[position / 8] >> (7 - position % 8)) & 1);
            }
            out[n++] = alphabets[a][value];
        }
        shapes_add(shapes, out, n);
    }
    wipe(out, room);
}

static void
add_hex(EbShapes *shapes, const char *bytes, gsize length, const char *digits)
{
    g_autofree char *out = g_malloc(length * 2 + 1);
    for (gsize i = 0; i < length; i++) {
        out[i * 2] = digits[(guchar)bytes[i] >> 4];
        out[i * 2 + 1] = digits[(guchar)bytes[i] & 15];
    }
    shapes_add(shapes, out, length * 2);
    wipe(out, length * 2);
}

static void
add_percent(EbShapes *shapes, const char *bytes, gsize length, const char *digits)
{
    g_autofree char *out = g_malloc(length * 3 + 1);
    gsize n = 0;
    for (gsize i = 0; i < length; i++) {
        guchar c = (guchar)bytes[i];
        if (g_ascii_isalnum(c) || strchr("-._~", c) != NULL) {
            out[n++] = (char)c;
        } else {
            out[n++] = '%';
            out[n++] = digits[c >> 4];
            out[n++] = digits[c & 15];
        }
    }
    shapes_add(shapes, out, n);
    wipe(out, n);
}

static void
add_json(EbShapes *shapes, const char *bytes, gsize length)
{
    g_autofree char *out = g_malloc(length * 2 + 1);
    gsize n = 0;
    for (gsize i = 0; i < length; i++) {
        const char *escape = NULL;
        switch (bytes[i]) {
        case '\n':
            escape = "\\n";
            break;
        case '\r':
            escape = "\\r";
            break;
        case '\t':
            escape = "\\t";
            break;
        case '"':
            escape = "\\\"";
            break;
        case '\\':
            escape = "\\\\";
            break;
        default:
            break;
        }
        if (escape != NULL) {
            out[n++] = escape[0];
            out[n++] = escape[1];
        } else {
            out[n++] = bytes[i];
        }
    }
    shapes_add(shapes, out, n);
    wipe(out, n);
}

static void
make_shapes(EbShapes *shapes, const char *bytes, gsize length)
{
    shapes_add(shapes, bytes, length);
    add_lines(shapes, bytes, length);
    add_json(shapes, bytes, length);
    add_percent(shapes, bytes, length, "0123456789ABCDEF");
    add_percent(shapes, bytes, length, "0123456789abcdef");
    for (guint shift = 0; shift < 3; shift++)
        add_base64(shapes, bytes, length, shift);
    add_hex(shapes, bytes, length, "0123456789abcdef");
    add_hex(shapes, bytes, length, "0123456789ABCDEF");
}

static void
note_starts(EbRedactSet *self, const EbRedactEntry *entry, const char *shapes)
{
    for (guint i = 0; i < entry->n_patterns; i++) {
        const guchar *start = (const guchar *)shapes + entry->patterns[i].offset;
        guint pair = (guint)start[0] << 8 | start[1];
        self->starts[pair >> 3] |= (guint8)(1u << (pair & 7));
    }
}

gboolean
eb_redact_set_add(EbRedactSet *self, EbSecret *secret)
{
    g_return_val_if_fail(self != NULL && secret != NULL, FALSE);
    gsize length = eb_secret_get_length(secret);
    if (length < EB_REDACT_MIN_BYTES || self->entries->len >= EB_REDACT_MAX_SECRETS)
        return FALSE;
    for (guint i = 0; i < self->entries->len; i++)
        if (eb_secret_equal(((EbRedactEntry *)self->entries->pdata[i])->secret, secret))
            return TRUE;
    EbRedactEntry *entry = g_new0(EbRedactEntry, 1);
    EbShapes shapes = {g_malloc(EB_SECRET_MAX_BYTES), 0, entry};
    {
        g_auto(EbSecretView) view = eb_secret_view(secret);
        make_shapes(&shapes, view.bytes, view.length);
    }
    note_starts(self, entry, shapes.bytes);
    entry->secret = eb_secret_ref(secret);
    entry->shapes = eb_secret_new_take(eb_secret_get_label(secret), shapes.bytes, shapes.length, NULL);
    wipe(shapes.bytes, EB_SECRET_MAX_BYTES);
    g_free(shapes.bytes);
    if (entry->shapes == NULL) {
        entry_free(entry);
        return FALSE;
    }
    g_ptr_array_add(self->entries, entry);
    return TRUE;
}

/* --- searching --- */

/* Length of the longest pattern at the start of @text; @label: (out): whose it is. */
static gsize
match_at(EbRedactSet *self, const EbSecretView *views, const char *text, gsize length, const char **label)
{
    gsize best = 0;
    for (guint i = 0; i < self->entries->len; i++) {
        const EbRedactEntry *entry = self->entries->pdata[i];
        for (guint p = 0; p < entry->n_patterns; p++) {
            gsize size = entry->patterns[p].length;
            if (size > best && size <= length && memcmp(views[i].bytes + entry->patterns[p].offset, text, size) == 0) {
                best = size;
                *label = eb_secret_get_label(entry->secret);
            }
        }
    }
    return best;
}

/* Longest tail of @text, at most @length, that begins a pattern without ending it. @half: (out): at least half of it. */
static gsize
partial_tail(EbRedactSet *self, const EbSecretView *views, const char *text, gsize length, gboolean *half,
             const char **label)
{
    gsize best = 0;
    *half = FALSE;
    for (guint i = 0; i < self->entries->len; i++) {
        const EbRedactEntry *entry = self->entries->pdata[i];
        for (guint p = 0; p < entry->n_patterns; p++) {
            const char *pattern = views[i].bytes + entry->patterns[p].offset;
            gsize size = entry->patterns[p].length;
            for (gsize k = MIN(size - 1, length); k > best; k--) {
                if (text[length - k] != pattern[0] || memcmp(text + length - k, pattern, k) != 0)
                    continue;
                best = k;
                *half = k >= EB_REDACT_MIN_BYTES && k * 2 >= size;
                *label = eb_secret_get_label(entry->secret);
                break;
            }
        }
    }
    return best;
}

static void
append_label(GString *out, const char *label)
{
    g_string_append_c(out, '[');
    g_string_append(out, label);
    g_string_append_c(out, ']');
}

/* Masks all of @text into @out but a tail of the returned length, 0 unless @hold. */
static gsize
scan(EbRedactSet *self, const char *text, gsize length, gboolean hold, gboolean last, GString *out)
{
    EbSecretView views[EB_REDACT_MAX_SECRETS];
    for (guint i = 0; i < self->entries->len; i++)
        views[i] = eb_secret_view(((EbRedactEntry *)self->entries->pdata[i])->shapes);
    const guchar *bytes = (const guchar *)text;
    const char *label = NULL;
    gboolean half = FALSE;
    gsize plain = 0; /* start of what is not yet written */
    gsize at = 0;
    /* What may become a whole secret is left alone, even where a part of it (a line) could be masked already. */
    gsize tail = hold ? partial_tail(self, views, text, length, &half, &label) : 0;
    gsize border = length - tail;
    while (at < border && at + 1 < length) {
        guint pair = (guint)bytes[at] << 8 | bytes[at + 1];
        gsize size = (self->starts[pair >> 3] & (1u << (pair & 7))) != 0
                         ? match_at(self, views, text + at, length - at, &label)
                         : 0;
        if (size == 0) {
            at++;
            continue;
        }
        g_string_append_len(out, text + plain, (gssize)(at - plain));
        append_label(out, label);
        at += size;
        plain = at;
    }
    if (last || (hold && plain > border))
        tail = partial_tail(self, views, text + plain, length - plain, &half, &label);
    gsize end = length - tail;
    while (hold && end > plain && end < length && ((guchar)text[end] & 0xc0) == 0x80)
        end--; /* never tear a character apart */
    if (last && !half)
        end = length;
    g_string_append_len(out, text + plain, (gssize)(end - plain));
    if (last && half)
        append_label(out, label);
    for (guint i = 0; i < self->entries->len; i++)
        eb_secret_view_clear(&views[i]);
    return hold ? length - end : 0;
}

char *
eb_redact_set_mask(EbRedactSet *self, const char *text, gssize length)
{
    if (text == NULL)
        return NULL;
    gsize size = length < 0 ? strlen(text) : (gsize)length;
    if (self == NULL || self->entries->len == 0)
        return g_strndup(text, size);
    GString *out = g_string_sized_new(size + 16);
    scan(self, text, size, FALSE, FALSE, out);
    return g_string_free(out, FALSE);
}

EbRedactor *
eb_redactor_new(EbRedactSet *set)
{
    EbRedactor *self = g_new0(EbRedactor, 1);
    self->set = eb_redact_set_ref(set);
    self->held = g_string_new(NULL);
    return self;
}

void
eb_redactor_free(EbRedactor *self)
{
    if (self == NULL)
        return;
    wipe(self->held->str, self->held->len);
    g_string_free(self->held, TRUE);
    eb_redact_set_unref(self->set);
    g_free(self);
}

char *
eb_redactor_feed(EbRedactor *self, const char *text)
{
    g_return_val_if_fail(self != NULL && text != NULL, NULL);
    if (self->set->entries->len == 0)
        return g_strdup(text);
    g_string_append(self->held, text);
    GString *out = g_string_sized_new(self->held->len + 16);
    gsize rest = scan(self->set, self->held->str, self->held->len, TRUE, FALSE, out);
    g_string_erase(self->held, 0, (gssize)(self->held->len - rest));
    return g_string_free(out, FALSE);
}

char *
eb_redactor_flush(EbRedactor *self)
{
    g_return_val_if_fail(self != NULL, NULL);
    GString *out = g_string_sized_new(self->held->len + 16);
    if (self->held->len > 0)
        scan(self->set, self->held->str, self->held->len, FALSE, TRUE, out);
    wipe(self->held->str, self->held->len);
    g_string_truncate(self->held, 0);
    return g_string_free(out, FALSE);
}
