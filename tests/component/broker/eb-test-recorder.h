/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** EB_TEST_RECORDED: a status that nobody else uses. */
#define EB_TEST_RECORDED 209

/**
 * EbTestRecorder: an upstream on loopback that keeps every byte of every connection apart, and answers each complete
 * request that its own
 * strict reader finds with EB_TEST_RECORDED. Where that reader finds none it says nothing.
 */
typedef struct _EbTestRecorder EbTestRecorder;

EbTestRecorder *eb_test_recorder_new(void);
void eb_test_recorder_free(EbTestRecorder *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbTestRecorder, eb_test_recorder_free)

guint16 eb_test_recorder_get_port(EbTestRecorder *self);
/**
 * eb_test_recorder_take: (transfer full) (element-type GString): what came since the last call, one a connection. Waits
 * until every connection with the beginning of a request is closed, or the request complete.
 */
GPtrArray *eb_test_recorder_take(EbTestRecorder *self);

G_END_DECLS
