/* SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>
#include <glib-object.h>
#include <json-glib/json-glib.h>

/* Forward declarations of every type of the SDK, so that headers need not include each other. */

G_BEGIN_DECLS

/* Marks what the SDK library exports; everything else is hidden. */
#define EB_API __attribute__((visibility("default")))

typedef struct _EbSecret EbSecret;
typedef struct _EbHost EbHost;
typedef struct _EbConfigSection EbConfigSection;
typedef struct _EbPluginContext EbPluginContext;
typedef struct _EbContainerSpec EbContainerSpec;
typedef struct _EbExecSpec EbExecSpec;
typedef struct _EbInstanceInfo EbInstanceInfo;
typedef struct _EbImageInfo EbImageInfo;
typedef struct _EbProbeReport EbProbeReport;
typedef struct _EbChatMessage EbChatMessage;
typedef struct _EbChatPost EbChatPost;
typedef struct _EbChatQuestion EbChatQuestion;
typedef struct _EbCheckInfo EbCheckInfo;
typedef struct _EbCheckResult EbCheckResult;
typedef struct _EbCredential EbCredential;

G_END_DECLS
