/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_MONEY_MOST: millionths of a unit of currency that one amount may be: a billion units. */
#define EB_MONEY_MOST G_GUINT64_CONSTANT(1000000000000000)

/** EbPrice: what a million tokens of a model cost, in millionths of a unit of currency. */
typedef struct {
    char *model; /* a name, the beginning of one, or "*" */
    guint64 input, output, cached, written;
} EbPrice;

/** eb_money_parse: "12", "0.3": a plain decimal number with at most six places. */
gboolean eb_money_parse(const char *text, guint64 *micros);
/** eb_money_format: (transfer full): "12.30": at least two places, and as many as it has. */
char *eb_money_format(guint64 micros);

/** eb_price_parse: (transfer full) (nullable): "MODEL INPUT OUTPUT [CACHED [WRITTEN]]"; what is left out costs as input. */
EbPrice *eb_price_parse(const char *text);
void eb_price_free(EbPrice *self);
/** eb_price_find: (transfer none) (nullable): of the longest name that @model begins with; (element-type EbPrice) */
const EbPrice *eb_price_find(GPtrArray *prices, const char *model);
/** eb_price_dearest: (transfer none) (nullable): the one whose output costs the most; (element-type EbPrice) */
const EbPrice *eb_price_dearest(GPtrArray *prices);
/** eb_price_of: what so many tokens cost, rounded up; @cached and @written are part of @in. */
guint64 eb_price_of(const EbPrice *self, guint64 in, guint64 out, guint64 cached, guint64 written);

G_END_DECLS
