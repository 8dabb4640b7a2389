/* SPDX-License-Identifier: MIT */
#include "core/render/eb-diff.h"

#include <string.h>

/* Edits looked for before the changed middle is shown as replaced as a whole: bounds time and memory (D squared). */
#define MAX_EDITS 600

const EbDiffLimits EB_DIFF_LIMITS_DEFAULT = {512 * 1024, 120, 240, 2};

typedef struct {
    const char *text;
    gsize length; /* without line end */
    guint token;  /* equal lines have equal tokens */
} EbLine;

typedef struct {
    EbLine *lines;
    guint n;
} EbLines;

typedef struct {
    char op; /* ' ', '-', '+' */
    const EbLine *line;
    guint old_at, new_at; /* line numbers from 1 */
} EbEdit;

static EbLines
split_lines(const char *text, GHashTable *tokens)
{
    g_autoptr(GArray) lines = g_array_new(FALSE, FALSE, sizeof(EbLine));
    for (const char *at = text; at != NULL && *at != '\0';) {
        const char *end = strchr(at, '\n');
        EbLine line = {at, end != NULL ? (gsize)(end - at) : strlen(at), 0};
        g_autofree char *key = g_strndup(line.text, line.length);
        gpointer known = g_hash_table_lookup(tokens, key);
        if (known == NULL) {
            known = GUINT_TO_POINTER(g_hash_table_size(tokens) + 1);
            g_hash_table_insert(tokens, g_steal_pointer(&key), known);
        }
        line.token = GPOINTER_TO_UINT(known);
        g_array_append_val(lines, line);
        at = end != NULL ? end + 1 : NULL;
    }
    EbLines result = {NULL, lines->len};
    result.lines = (EbLine *)g_array_free(g_steal_pointer(&lines), FALSE);
    return result;
}

static void
add_edit(GArray *edits, char op, const EbLine *line, guint old_at, guint new_at)
{
    EbEdit edit = {op, line, old_at, new_at};
    g_array_append_val(edits, edit);
}

/* Myers' greedy search; @trace keeps one row of furthest points a number of edits. FALSE beyond MAX_EDITS. */
static gboolean
search(const EbLine *a, int n, const EbLine *b, int m, GPtrArray *trace)
{
    int max = MIN(n + m, MAX_EDITS);
    int width = 2 * max + 3;
    g_autofree int *v = g_new0(int, width);
    int middle = max + 1;
    for (int d = 0; d <= max; d++) {
        for (int k = -d; k <= d; k += 2) {
            int x = k == -d || (k != d && v[middle + k - 1] < v[middle + k + 1]) ? v[middle + k + 1]
                                                                                 : v[middle + k - 1] + 1;
            int y = x - k;
            while (x < n && y < m && a[x].token == b[y].token) {
                x++;
                y++;
            }
            v[middle + k] = x;
            if (x >= n && y >= m) {
                int *row = g_memdup2(v + middle - d, sizeof(int) * (gsize)(2 * d + 1));
                g_ptr_array_add(trace, row);
                return TRUE;
            }
        }
        g_ptr_array_add(trace, g_memdup2(v + middle - d, sizeof(int) * (gsize)(2 * d + 1)));
    }
    return FALSE;
}

/* Row d of the trace holds k = -d..d. */
static int
furthest(GPtrArray *trace, int d, int k)
{
    return ((const int *)trace->pdata[d])[k + d];
}

static void
walk_back(GPtrArray *trace, const EbLine *a, int n, const EbLine *b, int m, guint skip, GArray *edits)
{
    g_autoptr(GArray) reverse = g_array_new(FALSE, FALSE, sizeof(EbEdit));
    int x = n;
    int y = m;
    for (int d = (int)trace->len - 1; d > 0; d--) {
        int k = x - y;
        gboolean down = k == -d ||
                        (k != d && k - 1 >= -(d - 1) && k + 1 <= d - 1 &&
                         furthest(trace, d - 1, k - 1) < furthest(trace, d - 1, k + 1)) ||
                        (k != d && k - 1 < -(d - 1));
        int previous_k = down ? k + 1 : k - 1;
        int previous_x = furthest(trace, d - 1, previous_k);
        int previous_y = previous_x - previous_k;
        int start_x = down ? previous_x : previous_x + 1;
        while (x > start_x) {
            x--;
            y--;
            add_edit(reverse, ' ', &a[x], skip + (guint)x + 1, skip + (guint)y + 1);
        }
        x = previous_x;
        y = previous_y;
        add_edit(reverse, down ? '+' : '-', down ? &b[y] : &a[x], skip + (guint)x + 1, skip + (guint)y + 1);
    }
    while (x > 0 && y > 0) {
        x--;
        y--;
        add_edit(reverse, ' ', &a[x], skip + (guint)x + 1, skip + (guint)y + 1);
    }
    for (guint i = reverse->len; i > 0; i--)
        g_array_append_val(edits, g_array_index(reverse, EbEdit, i - 1));
}

static GArray *
make_edits(const EbLines *a, const EbLines *b)
{
    GArray *edits = g_array_new(FALSE, FALSE, sizeof(EbEdit));
    guint head = 0;
    while (head < a->n && head < b->n && a->lines[head].token == b->lines[head].token)
        head++;
    guint tail = 0;
    while (tail < a->n - head && tail < b->n - head &&
           a->lines[a->n - 1 - tail].token == b->lines[b->n - 1 - tail].token)
        tail++;
    for (guint i = 0; i < head; i++)
        add_edit(edits, ' ', &a->lines[i], i + 1, i + 1);
    int n = (int)(a->n - head - tail);
    int m = (int)(b->n - head - tail);
    g_autoptr(GPtrArray) trace = g_ptr_array_new_with_free_func(g_free);
    if (n > 0 && m > 0 && search(a->lines + head, n, b->lines + head, m, trace)) {
        walk_back(trace, a->lines + head, n, b->lines + head, m, head, edits);
    } else {
        for (int i = 0; i < n; i++)
            add_edit(edits, '-', &a->lines[head + (guint)i], head + (guint)i + 1, head + 1);
        for (int i = 0; i < m; i++)
            add_edit(edits, '+', &b->lines[head + (guint)i], head + (guint)n + 1, head + (guint)i + 1);
    }
    for (guint i = 0; i < tail; i++)
        add_edit(edits, ' ', &a->lines[a->n - tail + i], a->n - tail + i + 1, b->n - tail + i + 1);
    return edits;
}

static void
write_line(GString *out, const EbEdit *edit, guint max_width)
{
    gsize length = edit->line->length;
    g_string_append_c(out, edit->op);
    if (length <= max_width) {
        g_string_append_len(out, edit->line->text, (gssize)length);
    } else {
        gsize end = max_width;
        while (end > 0 && ((guchar)edit->line->text[end] & 0xc0) == 0x80)
            end--;
        g_string_append_len(out, edit->line->text, (gssize)end);
        g_string_append(out, "…");
    }
    g_string_append_c(out, '\n');
}

static char *
write_hunks(GArray *edits, const EbDiffLimits *limits)
{
    GString *out = g_string_new(NULL);
    guint written = 0;
    guint left = 0;
    guint i = 0;
    while (i < edits->len) {
        while (i < edits->len && g_array_index(edits, EbEdit, i).op == ' ')
            i++;
        if (i == edits->len)
            break;
        guint begin = i > limits->context ? i - limits->context : 0;
        guint end = i;
        guint quiet = 0;
        for (guint j = i; j < edits->len && quiet <= 2 * limits->context; j++) {
            quiet = g_array_index(edits, EbEdit, j).op == ' ' ? quiet + 1 : 0;
            if (quiet == 0)
                end = j + 1;
        }
        i = end;
        end = MIN(end + limits->context, edits->len);
        guint old_n = 0;
        guint new_n = 0;
        for (guint j = begin; j < end; j++) {
            char op = g_array_index(edits, EbEdit, j).op;
            old_n += op != '+';
            new_n += op != '-';
        }
        const EbEdit *first = &g_array_index(edits, EbEdit, begin);
        if (written < limits->max_lines)
            g_string_append_printf(out, "@@ -%u,%u +%u,%u @@\n", old_n > 0 ? first->old_at : first->old_at - 1, old_n,
                                   new_n > 0 ? first->new_at : first->new_at - 1, new_n);
        for (guint j = begin; j < end; j++) {
            if (written < limits->max_lines) {
                write_line(out, &g_array_index(edits, EbEdit, j), limits->max_width);
                written++;
            } else {
                left++;
            }
        }
    }
    if (left > 0)
        g_string_append_printf(out, "… %u more lines\n", left);
    return g_string_free(out, FALSE);
}

static guint
count_lines(const char *text)
{
    guint lines = 0;
    const char *at = text;
    while (at != NULL && *at != '\0') {
        lines++;
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    return lines;
}

char *
eb_diff_unified(const char *old_text, const char *new_text, const EbDiffLimits *limits, guint *added, guint *removed)
{
    const EbDiffLimits *bounds = limits != NULL ? limits : &EB_DIFF_LIMITS_DEFAULT;
    const char *before = old_text != NULL ? old_text : "";
    const char *after = new_text != NULL ? new_text : "";
    *added = *removed = 0;
    if (strlen(before) > bounds->max_bytes || strlen(after) > bounds->max_bytes) {
        *removed = count_lines(before);
        *added = count_lines(after);
        return g_strdup_printf("… too long to compare: %u lines before, %u now\n", *removed, *added);
    }
    g_autoptr(GHashTable) tokens = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    EbLines a = split_lines(before, tokens);
    EbLines b = split_lines(after, tokens);
    g_autoptr(GArray) edits = make_edits(&a, &b);
    for (guint i = 0; i < edits->len; i++) {
        *added += g_array_index(edits, EbEdit, i).op == '+';
        *removed += g_array_index(edits, EbEdit, i).op == '-';
    }
    char *text = write_hunks(edits, bounds);
    g_free(a.lines);
    g_free(b.lines);
    return text;
}
