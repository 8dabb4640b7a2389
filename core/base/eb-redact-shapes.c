/* SPDX-License-Identifier: MIT */
#include "core/base/eb-redact-shapes.h"

#include <string.h>

/* Lines of a longer secret (a PEM key) that are searched on their own. */
#define MIN_LINE_BYTES 16
/* Longer ones are not looked for in the shapes that make each byte several: there is room for their lines instead. */
#define MAX_ESCAPED_BYTES 512

/* A growing buffer of plain bytes that is wiped when it moves: GString would leave copies behind. */
typedef struct {
    char *bytes;
    gsize length;
    gsize min;
    EbRedactShapes *shapes;
} EbShapes;

static void
wipe(char *bytes, gsize length)
{
    explicit_bzero(bytes, length);
}

static void
shapes_add(EbShapes *self, const char *bytes, gsize length)
{
    EbRedactShapes *shapes = self->shapes;
    if (length < self->min || shapes->n_patterns >= EB_REDACT_MAX_PATTERNS ||
        self->length + length > EB_SECRET_MAX_BYTES)
        return;
    for (guint i = 0; i < shapes->n_patterns; i++)
        if (shapes->patterns[i].length == length &&
            memcmp(self->bytes + shapes->patterns[i].offset, bytes, length) == 0)
            return;
    memcpy(self->bytes + self->length, bytes, length);
    shapes->patterns[shapes->n_patterns++] = (EbRedactPattern){(guint)self->length, (guint)length};
    self->length += length;
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

/* @plain: characters that stay as they are, besides letters and digits. */
static void
add_percent(EbShapes *shapes, const char *bytes, gsize length, const char *digits, const char *plain)
{
    g_autofree char *out = g_malloc(length * 3 + 1);
    gsize n = 0;
    for (gsize i = 0; i < length; i++) {
        guchar c = (guchar)bytes[i];
        if (g_ascii_isalnum(c) || (c != '\0' && strchr(plain, c) != NULL)) {
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

/* @slash: also before '/', as some programs do. */
static void
add_json(EbShapes *shapes, const char *bytes, gsize length, gboolean slash)
{
    g_autofree char *out = g_malloc(length * 2 + 1);
    gsize n = 0;
    for (gsize i = 0; i < length; i++) {
        char c = bytes[i];
        char escape = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : '\0';
        if (c == '"' || c == '\\' || (slash && c == '/'))
            escape = c;
        if (escape != '\0')
            out[n++] = '\\';
        out[n++] = escape != '\0' ? escape : c;
    }
    shapes_add(shapes, out, n);
    wipe(out, n);
}

/* As programs write it that keep to ASCII. */
static void
add_json_ascii(EbShapes *shapes, const char *bytes, gsize length)
{
    if (!g_utf8_validate(bytes, (gssize)length, NULL))
        return;
    g_autofree char *out = g_malloc(length * 6 + 1);
    gsize n = 0;
    for (const char *at = bytes; at < bytes + length; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);
        if (c < 0x80)
            out[n++] = (char)c;
        else if (c < 0x10000)
            n += (gsize)g_snprintf(out + n, 7, "\\u%04x", c);
        else
            n += (gsize)g_snprintf(out + n, 13, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                                   0xdc00 + ((c - 0x10000) & 0x3ff));
    }
    shapes_add(shapes, out, n);
    wipe(out, n);
}

/* Backwards, by characters where it is text, as rev and every language do. */
static void
add_reversed(EbShapes *shapes, const char *bytes, gsize length)
{
    gboolean text = g_utf8_validate(bytes, (gssize)length, NULL);
    g_autofree char *out = g_malloc(length + 1);
    gsize n = length;
    for (gsize i = 0; i < length;) {
        gsize size = text ? (gsize)(g_utf8_next_char(bytes + i) - (bytes + i)) : 1;
        n -= size;
        memcpy(out + n, bytes + i, size);
        i += size;
    }
    shapes_add(shapes, out, length);
    wipe(out, length);
}

/* Each byte escaped, also where it need not be: what generators of code and obfuscators write. */
static void
add_escaped(EbShapes *shapes, const char *bytes, gsize length, const char *prefix, const char *digits)
{
    gsize size = strlen(prefix) + 2;
    g_autofree char *out = g_malloc(length * size + 1);
    for (gsize i = 0; i < length; i++) {
        memcpy(out + i * size, prefix, size - 2);
        out[i * size + size - 2] = digits[(guchar)bytes[i] >> 4];
        out[i * size + size - 1] = digits[(guchar)bytes[i] & 15];
    }
    shapes_add(shapes, out, length * size);
    wipe(out, length * size);
}

/* UTF-16 of ASCII in either byte order: a zero between each two characters. */
static void
add_utf16(EbShapes *shapes, const char *bytes, gsize length)
{
    g_autofree char *out = g_malloc0(length * 2);
    gboolean ascii = TRUE;
    for (gsize i = 0; i < length; i++) {
        ascii = ascii && (guchar)bytes[i] < 0x80;
        out[i * 2] = bytes[i];
    }
    if (ascii)
        shapes_add(shapes, out, length * 2 - 1);
    wipe(out, length * 2);
}

static void
make_shapes(EbShapes *shapes, const char *bytes, gsize length)
{
    static const char lower[] = "0123456789abcdef";
    static const char upper[] = "0123456789ABCDEF";
    shapes_add(shapes, bytes, length);
    add_reversed(shapes, bytes, length);
    add_json(shapes, bytes, length, FALSE);
    add_json(shapes, bytes, length, TRUE);
    add_json_ascii(shapes, bytes, length);
    add_percent(shapes, bytes, length, upper, "-._~");
    add_percent(shapes, bytes, length, lower, "-._~");
    add_percent(shapes, bytes, length, upper, "-._~/");
    add_percent(shapes, bytes, length, upper, "");
    for (guint shift = 0; shift < 3; shift++)
        add_base64(shapes, bytes, length, shift);
    add_hex(shapes, bytes, length, lower);
    add_hex(shapes, bytes, length, upper);
    if (length <= MAX_ESCAPED_BYTES) {
        const char *const prefixes[] = {"\\u00", "\\x", "%"};
        for (guint i = 0; i < G_N_ELEMENTS(prefixes); i++) {
            add_escaped(shapes, bytes, length, prefixes[i], lower);
            add_escaped(shapes, bytes, length, prefixes[i], upper);
        }
        add_utf16(shapes, bytes, length);
    }
    add_lines(shapes, bytes, length);
}

gboolean
eb_redact_shapes_init(EbRedactShapes *self, EbSecret *secret, gsize min)
{
    memset(self, 0, sizeof *self);
    EbShapes shapes = {g_malloc(EB_SECRET_MAX_BYTES), 0, min, self};
    {
        g_auto(EbSecretView) view = eb_secret_view(secret);
        make_shapes(&shapes, view.bytes, view.length);
    }
    if (shapes.length > 0)
        self->bytes = eb_secret_new_take(eb_secret_get_label(secret), shapes.bytes, shapes.length, NULL);
    wipe(shapes.bytes, EB_SECRET_MAX_BYTES);
    g_free(shapes.bytes);
    return self->bytes != NULL;
}

void
eb_redact_shapes_clear(EbRedactShapes *self)
{
    g_clear_pointer(&self->bytes, eb_secret_unref);
    self->n_patterns = 0;
}
