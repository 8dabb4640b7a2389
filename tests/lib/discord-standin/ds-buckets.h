/* SPDX-License-Identifier: MIT */
#pragma once

#include "ds-request.h"

G_BEGIN_DECLS

DsBuckets *ds_buckets_new(DsWorld *world);
void ds_buckets_free(DsBuckets *self);
/** ds_buckets_take: counts @request and sets its headers; FALSE: refused with 429. */
gboolean ds_buckets_take(DsBuckets *self, DsRequest *request);
/** ds_buckets_configure: @bucket: name of a bucket; "global": how many in a second. */
void ds_buckets_configure(DsBuckets *self, const char *bucket, guint limit, guint window_ms);

G_END_DECLS
