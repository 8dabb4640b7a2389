/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-types.h"

G_BEGIN_DECLS

/**
 * EB_ERROR:
 *
 * The one error domain that crosses the SDK border. Foreign domains are converted where they enter
 * (eb_error_convert()). Besides code and message an error carries a stable reason token such as
 * "incus.image-missing" that tests, doctor and scripts may match, and whether trying again makes sense.
 */
#define EB_ERROR (eb_error_quark())

/** EbErrorCode: what kind of failure; values never change meaning. */
typedef enum {
    EB_ERROR_FAILED = 0,          /* failed while running, nothing more precise fits */
    EB_ERROR_INVALID = 1,         /* the caller or a file gave something malformed */
    EB_ERROR_NOT_FOUND = 2,       /* the named thing does not exist */
    EB_ERROR_EXISTS = 3,          /* the named thing exists already */
    EB_ERROR_DENIED = 4,          /* permission or policy refused it */
    EB_ERROR_UNAUTHENTICATED = 5, /* a token or credential does not work */
    EB_ERROR_QUOTA = 6,           /* a limit (memory, disk, queue, sessions) is reached */
    EB_ERROR_BUSY = 7,            /* held by somebody else now */
    EB_ERROR_TIMEOUT = 8,         /* the deadline passed */
    EB_ERROR_CANCELLED = 9,       /* the caller cancelled */
    EB_ERROR_UNAVAILABLE = 10,    /* a service cannot be reached */
    EB_ERROR_PROTOCOL = 11,       /* the other side broke its protocol */
    EB_ERROR_NOT_SUPPORTED = 12,  /* this implementation cannot do it */
    EB_ERROR_CONFIG = 13,         /* configuration refuses to work */
    EB_ERROR_INTEGRITY = 14,      /* a digest, signature or trust check failed */
    EB_ERROR_DEGRADED = 15,       /* a guarantee cannot be enforced here and was not accepted */
    EB_ERROR_LOCKED = 16,         /* another instance holds the state directory */
} EbErrorCode;

EB_API GQuark eb_error_quark(void);

/**
 * eb_set_error:
 * @error: (out) (optional): where to store the new error; must be unset
 * @code: the kind
 * @reason: (nullable): stable token, lower case, "area.what", copied
 * @format: printf format of the message: lower case, no trailing dot, names the object, no secret
 */
EB_API void eb_set_error(GError **error, EbErrorCode code, const char *reason, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/** eb_error_new: (transfer full): as eb_set_error(), returned. */
EB_API GError *eb_error_new(EbErrorCode code, const char *reason, const char *format, ...) G_GNUC_PRINTF(3, 4);

/**
 * eb_error_set_retry:
 * @error: an EB_ERROR
 * @retry_after_ms: milliseconds to wait before another try, 0 = at once
 *
 * Marks the error as one that may go away by itself.
 */
EB_API void eb_error_set_retry(GError *error, guint retry_after_ms);

/** eb_error_get_reason: (nullable) (transfer none): the token, or NULL for foreign errors and none. */
EB_API const char *eb_error_get_reason(const GError *error);

/**
 * eb_error_get_retry:
 * @retry_after_ms: (out) (optional): milliseconds
 *
 * Returns: TRUE when trying again makes sense.
 */
EB_API gboolean eb_error_get_retry(const GError *error, guint *retry_after_ms);

/**
 * eb_error_convert:
 * @error: (inout): an error of any domain; left alone when it is an EB_ERROR already
 * @reason: (nullable): the token for the new error
 * @prefix: (nullable): text put before the message with ": " between
 *
 * Maps G_IO_ERROR, G_FILE_ERROR, G_TLS_ERROR, G_RESOLVER_ERROR and any other domain to EB_ERROR in place.
 */
EB_API void eb_error_convert(GError **error, const char *reason, const char *prefix);

G_END_DECLS
