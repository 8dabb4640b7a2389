/* SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

#include "core/broker/eb-front-conn.h"

G_BEGIN_DECLS

/** EbBodyStream: a guest's request body as the stream that libsoup reads from: asynchronous reads alone. */
#define EB_TYPE_BODY_STREAM (eb_body_stream_get_type())
G_DECLARE_FINAL_TYPE(EbBodyStream, eb_body_stream, EB, BODY_STREAM, GInputStream)

EbBodyStream *eb_body_stream_new(EbFrontConn *conn);
/** eb_body_stream_wake: bytes may be there, or the end. */
void eb_body_stream_wake(EbBodyStream *self);
/** eb_body_stream_detach: the connection is going; a pending read fails. */
void eb_body_stream_detach(EbBodyStream *self);
guint64 eb_body_stream_get_count(EbBodyStream *self);
gboolean eb_body_stream_is_at_end(EbBodyStream *self);

G_END_DECLS
