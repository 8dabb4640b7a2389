/* SPDX-License-Identifier: MIT */
#include "core/base/eb-redactor.h"

#include "core/base/eb-redact-shapes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Of the first GRAM bytes of each pattern a bit is set: most positions of a text are passed by with one look, and
 * without one at a secret. What is remembered are keyed hashes, so that a copy of this memory tells nothing. */
#define GRAM 4
#define GRAM_BITS 18
#define PREFIX_BITS 12
/* Line ends and indents within a secret, at one place: a flood of them is no longer part of one. */
#define MAX_WRAP_BYTES 64

typedef struct {
    EbSecret *secret;
    EbRedactShapes shapes;
} Entry;

typedef struct {
    guint32 hash;
    guint16 entry;
    guint16 pattern;
} Gram;

struct _EbRedactSet {
    int ref_count;
    guint configured; /* of the process, already here */
    guint32 seed;
    GPtrArray *entries; /* (element-type Entry), at most EB_REDACT_MAX_SECRETS */
    EbSecret *watched;  /* (owned) (nullable) */
    void (*seen)(gpointer user_data);
    gpointer seen_data;
    GArray *grams; /* (element-type Gram), by hash */
    guint8 gram_bits[(1 << GRAM_BITS) / 8];
    guint8 prefix_bits[GRAM - 1][(1 << PREFIX_BITS) / 8]; /* of the first 1, 2 and 3 bytes */
};

struct _EbRedactor {
    EbRedactSet *set;
    GString *held;
};

static GMutex configured_lock;
static GPtrArray *configured; /* (element-type EbSecret), at most EB_REDACT_MAX_CONFIGURED */

static void
entry_free(gpointer data)
{
    Entry *entry = data;
    eb_secret_unref(entry->secret);
    eb_redact_shapes_clear(&entry->shapes);
    g_free(entry);
}

EbRedactSet *
eb_redact_set_new(void)
{
    EbRedactSet *self = g_new0(EbRedactSet, 1);
    self->ref_count = 1;
    /* Not of GLib, which opens a device: a broker in its sandbox opens nothing. */
    if (getentropy(&self->seed, sizeof self->seed) != 0)
        g_error("no randomness: %s", g_strerror(errno));
    self->seed |= 1;
    self->entries = g_ptr_array_new_with_free_func(entry_free);
    self->grams = g_array_new(FALSE, FALSE, sizeof(Gram));
    return self;
}

EbRedactSet *
eb_redact_set_copy(const EbRedactSet *self)
{
    EbRedactSet *copy = eb_redact_set_new();
    for (guint i = 0; self != NULL && i < self->entries->len; i++)
        eb_redact_set_add(copy, ((Entry *)self->entries->pdata[i])->secret);
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
    g_array_unref(self->grams);
    eb_secret_unref(self->watched);
    g_free(self);
}

/* --- what is searched --- */

static gboolean
is_wrap(char c)
{
    return c == '\n' || c == '\r';
}

static guint32
hash_gram(const EbRedactSet *self, const char *bytes, gsize n)
{
    guint32 value = (guint32)n;
    for (gsize i = 0; i < n; i++)
        value = value << 8 ^ value >> 24 ^ (guchar)bytes[i];
    return (value ^ value >> 15) * self->seed;
}

static gboolean
get_bit(const guint8 *bits, guint32 n)
{
    return (bits[n >> 3] & 1u << (n & 7)) != 0;
}

static void
set_bit(guint8 *bits, guint32 n)
{
    bits[n >> 3] |= (guint8)(1u << (n & 7));
}

/* The first @max bytes of @text but for line ends and the indents behind them. Returns how many there are. */
static gsize
first_bytes(const char *text, gsize length, gsize max, char *out)
{
    gsize n = 0;
    gboolean wrapped = FALSE;
    for (gsize i = 0; i < MIN(length, max + MAX_WRAP_BYTES) && n < max; i++) {
        if (n > 0 && (is_wrap(text[i]) || (wrapped && (text[i] == ' ' || text[i] == '\t')))) {
            wrapped = TRUE;
            continue;
        }
        wrapped = FALSE;
        out[n++] = text[i];
    }
    return n;
}

static int
compare_grams(gconstpointer a, gconstpointer b)
{
    guint32 left = ((const Gram *)a)->hash;
    guint32 right = ((const Gram *)b)->hash;
    return left < right ? -1 : left > right;
}

static void
add_grams(EbRedactSet *self, const Entry *entry)
{
    g_auto(EbSecretView) view = eb_secret_view(entry->shapes.bytes);
    for (guint i = 0; i < entry->shapes.n_patterns; i++) {
        const EbRedactPattern *pattern = &entry->shapes.patterns[i];
        char first[GRAM];
        gsize n = first_bytes(view.bytes + pattern->offset, pattern->length, GRAM, first);
        for (gsize k = 1; k < MIN(n + 1, GRAM); k++)
            set_bit(self->prefix_bits[k - 1], hash_gram(self, first, k) >> (32 - PREFIX_BITS));
        if (n < GRAM)
            continue;
        Gram gram = {hash_gram(self, first, GRAM), (guint16)(self->entries->len - 1), (guint16)i};
        set_bit(self->gram_bits, gram.hash >> (32 - GRAM_BITS));
        g_array_append_val(self->grams, gram);
        explicit_bzero(first, sizeof first);
    }
    g_array_sort(self->grams, compare_grams);
}

gboolean
eb_redact_set_add(EbRedactSet *self, EbSecret *secret)
{
    g_return_val_if_fail(self != NULL && secret != NULL, FALSE);
    if (eb_secret_get_length(secret) < EB_REDACT_MIN_BYTES || self->entries->len >= EB_REDACT_MAX_SECRETS)
        return FALSE;
    for (guint i = 0; i < self->entries->len; i++)
        if (eb_secret_equal(((Entry *)self->entries->pdata[i])->secret, secret))
            return TRUE;
    Entry *entry = g_new0(Entry, 1);
    if (!eb_redact_shapes_init(&entry->shapes, secret, EB_REDACT_MIN_BYTES)) {
        g_free(entry);
        return FALSE;
    }
    entry->secret = eb_secret_ref(secret);
    g_ptr_array_add(self->entries, entry);
    add_grams(self, entry);
    return TRUE;
}

gboolean
eb_redact_add_configured(EbSecret *secret)
{
    if (eb_secret_get_length(secret) < EB_REDACT_MIN_BYTES)
        return FALSE;
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&configured_lock);
    if (configured == NULL)
        configured = g_ptr_array_new_with_free_func((GDestroyNotify)eb_secret_unref);
    for (guint i = 0; i < configured->len; i++)
        if (eb_secret_equal(configured->pdata[i], secret))
            return TRUE;
    if (configured->len >= EB_REDACT_MAX_CONFIGURED)
        return FALSE;
    g_ptr_array_add(configured, eb_secret_ref(secret));
    return TRUE;
}

static void
take_configured(EbRedactSet *self)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&configured_lock);
    for (; configured != NULL && self->configured < configured->len; self->configured++)
        eb_redact_set_add(self, configured->pdata[self->configured]);
}

/* --- searching --- */

/* One run over a text. */
typedef struct {
    EbRedactSet *set;
    const char *text;
    gsize length;
    EbSecretView views[EB_REDACT_MAX_SECRETS]; /* opened when they are needed */
} Search;

/* What was found at a place. */
typedef struct {
    gsize length;     /* of a whole secret in the text, 0 = none */
    EbSecret *secret; /* (unowned): that, or the begun one */
    gsize begun;      /* bytes of the pattern that are there when the text ends within it, 0 = it does not */
    gboolean half;    /* that is at least half of it */
} Found;

/* Bytes of the text that @pattern takes at its begin; 0: another text. @begun: bytes of the pattern before the text's end */
static gsize
match(const char *pattern, gsize size, const char *text, gsize length, gsize *begun)
{
    gsize at = 0;
    gsize done = 0;
    gsize wrap = 0;
    while (done < size && at < length) {
        if (text[at] == pattern[done]) {
            /* A space of the secret behind a line end may be taken for one of the indent, or the other way round. */
            if (is_wrap(text[at]) || (wrap > 0 && text[at] == ' '))
                wrap++;
            else
                wrap = 0;
            at++;
            done++;
        } else if (done > 0 && wrap < MAX_WRAP_BYTES &&
                   (is_wrap(text[at]) || (wrap > 0 && (text[at] == ' ' || text[at] == '\t')))) {
            wrap++;
            at++;
        } else {
            return 0;
        }
    }
    *begun = done < size ? done : 0;
    return done == size ? at : 0;
}

static void
look_at(Search *self, gsize at, guint32 hash, Found *found)
{
    const GArray *grams = self->set->grams;
    guint low = 0;
    guint high = grams->len;
    while (low < high) {
        guint middle = (low + high) / 2;
        if (g_array_index(grams, Gram, middle).hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < grams->len && g_array_index(grams, Gram, low).hash == hash; low++) {
        const Gram *gram = &g_array_index(grams, Gram, low);
        const Entry *entry = self->set->entries->pdata[gram->entry];
        const EbRedactPattern *pattern = &entry->shapes.patterns[gram->pattern];
        EbSecretView *view = &self->views[gram->entry];
        if (view->secret == NULL)
            *view = eb_secret_view(entry->shapes.bytes);
        gsize begun = 0;
        gsize size = match(view->bytes + pattern->offset, pattern->length, self->text + at, self->length - at, &begun);
        if (size > found->length) {
            found->length = size;
            found->secret = entry->secret;
        }
        if (begun > found->begun) {
            found->begun = begun;
            found->half = begun >= EB_REDACT_MIN_BYTES && begun * 2 >= pattern->length;
            if (found->length == 0)
                found->secret = entry->secret;
        }
    }
}

/* The bits say so of one in some hundred others, too: a text would stop short of its end for nothing. */
static gboolean
begins_pattern(Search *self, const char *first, gsize n)
{
    gboolean begins = FALSE;
    for (guint i = 0; i < self->set->entries->len && !begins; i++) {
        const Entry *entry = self->set->entries->pdata[i];
        EbSecretView *view = &self->views[i];
        if (view->secret == NULL)
            *view = eb_secret_view(entry->shapes.bytes);
        for (guint k = 0; k < entry->shapes.n_patterns && !begins; k++) {
            const EbRedactPattern *pattern = &entry->shapes.patterns[k];
            char own[GRAM];
            begins =
                first_bytes(view->bytes + pattern->offset, pattern->length, n, own) == n && memcmp(own, first, n) == 0;
            explicit_bzero(own, sizeof own);
        }
    }
    return begins;
}

static void
find_at(Search *self, gsize at, Found *found)
{
    char first[GRAM];
    const char *text = self->text + at;
    gsize rest = self->length - at;
    memset(found, 0, sizeof *found);
    gsize n = GRAM;
    if (rest >= GRAM && !is_wrap(text[1]) && !is_wrap(text[2]) && !is_wrap(text[3]))
        memcpy(first, text, GRAM);
    else
        n = first_bytes(text, rest, GRAM, first);
    guint32 hash = hash_gram(self->set, first, n);
    if (n == GRAM) {
        if (get_bit(self->set->gram_bits, hash >> (32 - GRAM_BITS)))
            look_at(self, at, hash, found);
    } else if (n > 0 && rest < n + MAX_WRAP_BYTES &&
               get_bit(self->set->prefix_bits[n - 1], hash >> (32 - PREFIX_BITS)) && begins_pattern(self, first, n)) {
        found->begun = n;
    }
}

static void
append_label(GString *out, const char *label)
{
    g_string_append_c(out, '[');
    g_string_append(out, label);
    g_string_append_c(out, ']');
}

/* Masks all of @text into @out; @hold: but for a tail of the returned length that may become a secret. */
static gsize
scan(EbRedactSet *set, const char *text, gsize length, gboolean hold, GString *out)
{
    take_configured(set);
    Search search = {.set = set, .text = text, .length = length};
    gsize plain = 0; /* begin of what is not yet written */
    gboolean seen = FALSE;
    gsize at = 0;
    while (at < length && set->entries->len > 0) {
        Found found;
        find_at(&search, at, &found);
        /* What may become a whole secret is left alone, even where a part of it (a line) could be masked already. */
        if (found.begun > 0 && hold)
            break;
        gsize size = found.begun > 0 && found.half ? length - at : found.length;
        if (size > 0) {
            g_string_append_len(out, text + plain, (gssize)(at - plain));
            append_label(out, eb_secret_get_label(found.secret));
            seen = seen || (set->watched != NULL && found.secret == set->watched);
            plain = at + size;
        }
        at += MAX(size, 1);
    }
    gsize end = set->entries->len > 0 ? MIN(at, length) : length;
    while (end > plain && end < length && ((guchar)text[end] & 0xc0) == 0x80)
        end--; /* never tear a character apart */
    g_string_append_len(out, text + plain, (gssize)(end - plain));
    for (guint i = 0; i < set->entries->len; i++)
        if (search.views[i].secret != NULL)
            eb_secret_view_clear(&search.views[i]);
    if (seen && set->seen != NULL)
        set->seen(set->seen_data);
    return length - end;
}

gboolean
eb_redact_set_watch(EbRedactSet *self, EbSecret *secret, void (*seen)(gpointer user_data), gpointer user_data)
{
    g_return_val_if_fail(self != NULL && secret != NULL, FALSE);
    if (!eb_redact_set_add(self, secret))
        return FALSE;
    for (guint i = 0; i < self->entries->len; i++) {
        const Entry *entry = self->entries->pdata[i];
        if (!eb_secret_equal(entry->secret, secret))
            continue;
        g_clear_pointer(&self->watched, eb_secret_unref);
        self->watched = eb_secret_ref(entry->secret);
    }
    self->seen = seen;
    self->seen_data = user_data;
    return TRUE;
}

gboolean
eb_redact_set_find(EbRedactSet *self, const char *bytes, gsize length)
{
    g_return_val_if_fail(self != NULL, FALSE);
    Search search = {.set = self, .text = bytes, .length = length};
    gboolean any = FALSE;
    for (gsize at = 0; at < length && !any; at++) {
        Found found;
        find_at(&search, at, &found);
        any = found.length > 0;
    }
    for (guint i = 0; i < self->entries->len; i++)
        if (search.views[i].secret != NULL)
            eb_secret_view_clear(&search.views[i]);
    return any;
}

char *
eb_redact_set_mask(EbRedactSet *self, const char *text, gssize length)
{
    if (text == NULL)
        return NULL;
    gsize size = length < 0 ? strlen(text) : (gsize)length;
    if (self == NULL)
        return g_strndup(text, size);
    GString *out = g_string_sized_new(size + 16);
    scan(self, text, size, FALSE, out);
    return g_string_free(out, FALSE);
}

GBytes *
eb_redact_set_mask_bytes(EbRedactSet *self, GBytes *bytes)
{
    gsize size = 0;
    const char *data = g_bytes_get_data(bytes, &size);
    if (self == NULL || size == 0)
        return g_bytes_ref(bytes);
    GString *out = g_string_sized_new(size + 16);
    scan(self, data, size, FALSE, out);
    g_autoptr(GBytes) masked = g_string_free_to_bytes(out);
    return g_bytes_ref(g_bytes_equal(masked, bytes) ? bytes : masked);
}

/* --- streams --- */

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
    explicit_bzero(self->held->str, self->held->len);
    g_string_free(self->held, TRUE);
    eb_redact_set_unref(self->set);
    g_free(self);
}

char *
eb_redactor_feed(EbRedactor *self, const char *text)
{
    g_return_val_if_fail(self != NULL && text != NULL, NULL);
    g_string_append(self->held, text);
    GString *out = g_string_sized_new(self->held->len + 16);
    gsize rest = scan(self->set, self->held->str, self->held->len, TRUE, out);
    g_string_erase(self->held, 0, (gssize)(self->held->len - rest));
    return g_string_free(out, FALSE);
}

char *
eb_redactor_flush(EbRedactor *self)
{
    g_return_val_if_fail(self != NULL, NULL);
    GString *out = g_string_sized_new(self->held->len + 16);
    scan(self->set, self->held->str, self->held->len, FALSE, out);
    explicit_bzero(self->held->str, self->held->len);
    g_string_truncate(self->held, 0);
    return g_string_free(out, FALSE);
}
