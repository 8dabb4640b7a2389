/* SPDX-License-Identifier: MIT */
#include "core/config/eb-price.h"

#include <string.h>

#define MILLION G_GUINT64_CONSTANT(1000000)
#define PLACES 6

gboolean
eb_money_parse(const char *text, guint64 *micros)
{
    guint64 value = 0;
    guint places = 0, digits = 0;
    gboolean point = FALSE;

    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '.' && !point && digits > 0) {
            point = TRUE;
            continue;
        }
        if (!g_ascii_isdigit(*at) || (point && ++places > PLACES) || value > EB_MONEY_MOST)
            return FALSE;
        value = value * 10 + (guint64)(*at - '0');
        digits++;
    }
    if (digits == 0 || (point && places == 0))
        return FALSE;
    for (; places < PLACES && value <= EB_MONEY_MOST; places++)
        value *= 10;
    *micros = value;
    return value <= EB_MONEY_MOST;
}

char *
eb_money_format(guint64 micros)
{
    char *text = g_strdup_printf("%" G_GUINT64_FORMAT ".%06" G_GUINT64_FORMAT, micros / MILLION, micros % MILLION);

    for (gsize end = strlen(text); text[end - 1] == '0' && text[end - 3] != '.'; end--)
        text[end - 1] = '\0';
    return text;
}

void
eb_price_free(EbPrice *self)
{
    if (self == NULL)
        return;
    g_free(self->model);
    g_free(self);
}

EbPrice *
eb_price_parse(const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    guint n = g_strv_length(words);
    guint64 amounts[4] = {0};

    if (n < 3 || n > 5 || *words[0] == '\0')
        return NULL;
    for (guint i = 1; i < n; i++)
        if (!eb_money_parse(words[i], &amounts[i - 1]))
            return NULL;
    EbPrice *self = g_new0(EbPrice, 1);
    self->model = g_strdup(words[0]);
    self->input = amounts[0];
    self->output = amounts[1];
    self->cached = n > 3 ? amounts[2] : amounts[0];
    self->written = n > 4 ? amounts[3] : amounts[0];
    return self;
}

const EbPrice *
eb_price_find(GPtrArray *prices, const char *model)
{
    const EbPrice *best = NULL;

    for (guint i = 0; prices != NULL && i < prices->len; i++) {
        const EbPrice *price = prices->pdata[i];
        gboolean any = strcmp(price->model, "*") == 0;
        if (!any && (model == NULL || !g_str_has_prefix(model, price->model)))
            continue;
        if (best == NULL || strcmp(best->model, "*") == 0 || (!any && strlen(price->model) > strlen(best->model)))
            best = price;
    }
    return best;
}

const EbPrice *
eb_price_dearest(GPtrArray *prices)
{
    const EbPrice *most = NULL;

    for (guint i = 0; prices != NULL && i < prices->len; i++) {
        const EbPrice *price = prices->pdata[i];
        if (most == NULL || price->output > most->output ||
            (price->output == most->output && price->input > most->input))
            most = price;
    }
    return most;
}

guint64
eb_price_of(const EbPrice *self, guint64 in, guint64 out, guint64 cached, guint64 written)
{
    guint64 fresh = in - MIN(cached + written, in);
    unsigned __int128 sum = (unsigned __int128)fresh * self->input + (unsigned __int128)out * self->output +
                            (unsigned __int128)cached * self->cached + (unsigned __int128)written * self->written;

    return (guint64)MIN((sum + MILLION - 1) / MILLION, (unsigned __int128)EB_MONEY_MOST);
}
