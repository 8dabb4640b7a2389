/* SPDX-License-Identifier: MIT */
#include "eb-error.h"

typedef struct {
    char *reason; /* (owned) (nullable) */
    guint retry_after_ms;
    gboolean retryable;
} EbErrorPrivate;

static void
eb_error_private_init(EbErrorPrivate *priv)
{
    priv->reason = NULL;
    priv->retry_after_ms = 0;
    priv->retryable = FALSE;
}

static void
eb_error_private_copy(const EbErrorPrivate *src, EbErrorPrivate *dest)
{
    dest->reason = g_strdup(src->reason);
    dest->retry_after_ms = src->retry_after_ms;
    dest->retryable = src->retryable;
}

static void
eb_error_private_clear(EbErrorPrivate *priv)
{
    g_clear_pointer(&priv->reason, g_free);
}

G_DEFINE_EXTENDED_ERROR(EbError, eb_error)

static GError *G_GNUC_PRINTF(3, 0)
    error_new_valist(EbErrorCode code, const char *reason, const char *format, va_list args)
{
    GError *error = g_error_new_valist(EB_ERROR, (int)code, format, args);

    eb_error_get_private(error)->reason = g_strdup(reason);
    return error;
}

GError *
eb_error_new(EbErrorCode code, const char *reason, const char *format, ...)
{
    va_list args;
    GError *error;

    va_start(args, format);
    error = error_new_valist(code, reason, format, args);
    va_end(args);
    return error;
}

void
eb_set_error(GError **error, EbErrorCode code, const char *reason, const char *format, ...)
{
    va_list args;

    if (error == NULL)
        return;
    g_return_if_fail(*error == NULL);
    va_start(args, format);
    *error = error_new_valist(code, reason, format, args);
    va_end(args);
}

void
eb_error_set_retry(GError *error, guint retry_after_ms)
{
    EbErrorPrivate *priv;

    g_return_if_fail(error != NULL && error->domain == EB_ERROR);
    priv = eb_error_get_private(error);
    priv->retryable = TRUE;
    priv->retry_after_ms = retry_after_ms;
}

const char *
eb_error_get_reason(const GError *error)
{
    if (error == NULL || error->domain != EB_ERROR)
        return NULL;
    return eb_error_get_private(error)->reason;
}

gboolean
eb_error_get_retry(const GError *error, guint *retry_after_ms)
{
    const EbErrorPrivate *priv;

    if (error == NULL || error->domain != EB_ERROR)
        return FALSE;
    priv = eb_error_get_private(error);
    if (priv->retryable && retry_after_ms != NULL)
        *retry_after_ms = priv->retry_after_ms;
    return priv->retryable;
}

static EbErrorCode
code_from_io_error(int code)
{
    switch (code) {
    case G_IO_ERROR_NOT_FOUND:
    case G_IO_ERROR_NOT_MOUNTED:
        return EB_ERROR_NOT_FOUND;
    case G_IO_ERROR_EXISTS:
    case G_IO_ERROR_NOT_EMPTY:
        return EB_ERROR_EXISTS;
    case G_IO_ERROR_PERMISSION_DENIED:
    case G_IO_ERROR_READ_ONLY:
        return EB_ERROR_DENIED;
    case G_IO_ERROR_PROXY_AUTH_FAILED:
    case G_IO_ERROR_PROXY_NEED_AUTH:
        return EB_ERROR_UNAUTHENTICATED;
    case G_IO_ERROR_NO_SPACE:
    case G_IO_ERROR_TOO_MANY_OPEN_FILES:
    case G_IO_ERROR_MESSAGE_TOO_LARGE:
        return EB_ERROR_QUOTA;
    case G_IO_ERROR_BUSY:
    case G_IO_ERROR_PENDING:
    case G_IO_ERROR_ADDRESS_IN_USE:
        return EB_ERROR_BUSY;
    case G_IO_ERROR_TIMED_OUT:
        return EB_ERROR_TIMEOUT;
    case G_IO_ERROR_CANCELLED:
        return EB_ERROR_CANCELLED;
    case G_IO_ERROR_CLOSED:
    case G_IO_ERROR_HOST_NOT_FOUND:
    case G_IO_ERROR_HOST_UNREACHABLE:
    case G_IO_ERROR_NETWORK_UNREACHABLE:
    case G_IO_ERROR_CONNECTION_REFUSED:
    case G_IO_ERROR_PROXY_FAILED:
    case G_IO_ERROR_NOT_CONNECTED:
    case G_IO_ERROR_BROKEN_PIPE: /* the same value as G_IO_ERROR_CONNECTION_CLOSED */
        return EB_ERROR_UNAVAILABLE;
    case G_IO_ERROR_PARTIAL_INPUT:
        return EB_ERROR_PROTOCOL;
    case G_IO_ERROR_NOT_SUPPORTED:
        return EB_ERROR_NOT_SUPPORTED;
    case G_IO_ERROR_INVALID_ARGUMENT:
    case G_IO_ERROR_INVALID_DATA:
    case G_IO_ERROR_INVALID_FILENAME:
    case G_IO_ERROR_FILENAME_TOO_LONG:
    case G_IO_ERROR_NOT_DIRECTORY:
    case G_IO_ERROR_IS_DIRECTORY:
    case G_IO_ERROR_NOT_REGULAR_FILE:
        return EB_ERROR_INVALID;
    default:
        return EB_ERROR_FAILED;
    }
}

static EbErrorCode
code_from_file_error(int code)
{
    switch (code) {
    case G_FILE_ERROR_NOENT:
        return EB_ERROR_NOT_FOUND;
    case G_FILE_ERROR_EXIST:
        return EB_ERROR_EXISTS;
    case G_FILE_ERROR_ACCES:
    case G_FILE_ERROR_PERM:
    case G_FILE_ERROR_ROFS:
        return EB_ERROR_DENIED;
    case G_FILE_ERROR_NOSPC:
    case G_FILE_ERROR_NOMEM:
    case G_FILE_ERROR_MFILE:
    case G_FILE_ERROR_NFILE:
        return EB_ERROR_QUOTA;
    case G_FILE_ERROR_NOTDIR:
    case G_FILE_ERROR_ISDIR:
    case G_FILE_ERROR_NAMETOOLONG:
    case G_FILE_ERROR_INVAL:
    case G_FILE_ERROR_LOOP:
        return EB_ERROR_INVALID;
    case G_FILE_ERROR_TXTBSY:
        return EB_ERROR_BUSY;
    case G_FILE_ERROR_PIPE:
    case G_FILE_ERROR_NXIO:
        return EB_ERROR_UNAVAILABLE;
    case G_FILE_ERROR_NOSYS:
        return EB_ERROR_NOT_SUPPORTED;
    default:
        return EB_ERROR_FAILED;
    }
}

static EbErrorCode
code_from_error(const GError *error, gboolean *transient)
{
    *transient = FALSE;
    if (error->domain == G_IO_ERROR) {
        EbErrorCode code = code_from_io_error(error->code);

        *transient = code == EB_ERROR_UNAVAILABLE || code == EB_ERROR_TIMEOUT || code == EB_ERROR_BUSY;
        return code;
    }
    if (error->domain == G_FILE_ERROR)
        return code_from_file_error(error->code);
    if (error->domain == G_RESOLVER_ERROR) {
        *transient = error->code == G_RESOLVER_ERROR_TEMPORARY_FAILURE;
        return error->code == G_RESOLVER_ERROR_NOT_FOUND ? EB_ERROR_NOT_FOUND : EB_ERROR_UNAVAILABLE;
    }
    if (error->domain == G_TLS_ERROR) {
        /* A certificate that does not fit is a failed trust check, everything else a broken connection. */
        return error->code == G_TLS_ERROR_BAD_CERTIFICATE || error->code == G_TLS_ERROR_BAD_CERTIFICATE_PASSWORD
                   ? EB_ERROR_INTEGRITY
                   : EB_ERROR_UNAVAILABLE;
    }
    if (error->domain == JSON_PARSER_ERROR || error->domain == G_CONVERT_ERROR || error->domain == G_KEY_FILE_ERROR ||
        error->domain == G_NUMBER_PARSER_ERROR)
        return EB_ERROR_INVALID;
    return EB_ERROR_FAILED;
}

void
eb_error_convert(GError **error, const char *reason, const char *prefix)
{
    g_autoptr(GError) foreign = NULL;
    EbErrorCode code;
    gboolean transient = FALSE;

    if (error == NULL || *error == NULL || (*error)->domain == EB_ERROR)
        return;
    foreign = g_steal_pointer(error);
    code = code_from_error(foreign, &transient);
    if (prefix != NULL)
        *error = eb_error_new(code, reason, "%s: %s", prefix, foreign->message);
    else
        *error = eb_error_new(code, reason, "%s", foreign->message);
    if (transient)
        eb_error_set_retry(*error, 0);
}
