/* SPDX-License-Identifier: MIT */
#include "eb-test.h"

#include <string.h>

static void
test_fields(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) copy = NULL;
    guint wait = 7;

    eb_set_error(NULL, EB_ERROR_FAILED, "x.y", "ignored %d", 1);
    eb_set_error(&error, EB_ERROR_NOT_FOUND, "area.what", "no %s", "image");
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "area.what", "no image");
    g_assert_false(eb_error_get_retry(error, &wait));
    g_assert_cmpuint(wait, ==, 7); /* out-parameters stay as they are on failure */
    eb_error_set_retry(error, 1500);
    copy = g_error_copy(error);
    g_assert_cmpstr(eb_error_get_reason(copy), ==, "area.what");
    g_assert_true(eb_error_get_retry(copy, &wait));
    g_assert_cmpuint(wait, ==, 1500);
    g_assert_null(eb_error_get_reason(NULL));
    g_assert_false(eb_error_get_retry(NULL, NULL));
}

typedef struct {
    GQuark domain;
    int code;
    EbErrorCode expected;
    gboolean retry;
} Conversion;

static void
test_convert(void)
{
    const Conversion table[] = {
        {G_IO_ERROR, G_IO_ERROR_NOT_FOUND, EB_ERROR_NOT_FOUND, FALSE},
        {G_IO_ERROR, G_IO_ERROR_CANCELLED, EB_ERROR_CANCELLED, FALSE},
        {G_IO_ERROR, G_IO_ERROR_TIMED_OUT, EB_ERROR_TIMEOUT, TRUE},
        {G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED, EB_ERROR_UNAVAILABLE, TRUE},
        {G_IO_ERROR, G_IO_ERROR_CONNECTION_CLOSED, EB_ERROR_UNAVAILABLE, TRUE},
        {G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED, EB_ERROR_DENIED, FALSE},
        {G_IO_ERROR, G_IO_ERROR_NO_SPACE, EB_ERROR_QUOTA, FALSE},
        {G_IO_ERROR, G_IO_ERROR_EXISTS, EB_ERROR_EXISTS, FALSE},
        {G_IO_ERROR, G_IO_ERROR_BUSY, EB_ERROR_BUSY, TRUE},
        {G_IO_ERROR, G_IO_ERROR_INVALID_DATA, EB_ERROR_INVALID, FALSE},
        {G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, EB_ERROR_NOT_SUPPORTED, FALSE},
        {G_IO_ERROR, G_IO_ERROR_FAILED, EB_ERROR_FAILED, FALSE},
        {G_FILE_ERROR, G_FILE_ERROR_NOENT, EB_ERROR_NOT_FOUND, FALSE},
        {G_FILE_ERROR, G_FILE_ERROR_ACCES, EB_ERROR_DENIED, FALSE},
        {G_FILE_ERROR, G_FILE_ERROR_NOSPC, EB_ERROR_QUOTA, FALSE},
        {G_RESOLVER_ERROR, G_RESOLVER_ERROR_TEMPORARY_FAILURE, EB_ERROR_UNAVAILABLE, TRUE},
        {G_RESOLVER_ERROR, G_RESOLVER_ERROR_NOT_FOUND, EB_ERROR_NOT_FOUND, FALSE},
        {G_TLS_ERROR, G_TLS_ERROR_BAD_CERTIFICATE, EB_ERROR_INTEGRITY, FALSE},
        {G_TLS_ERROR, G_TLS_ERROR_EOF, EB_ERROR_UNAVAILABLE, FALSE},
        {G_KEY_FILE_ERROR, G_KEY_FILE_ERROR_PARSE, EB_ERROR_INVALID, FALSE},
        {G_SPAWN_ERROR, G_SPAWN_ERROR_FORK, EB_ERROR_FAILED, FALSE},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(table); i++) {
        g_autoptr(GError) error = g_error_new_literal(table[i].domain, table[i].code, "what happened");

        eb_error_convert(&error, "here.it-was", "cannot do it");
        eb_test_assert_error(error, table[i].expected, "here.it-was", "cannot do it: what happened");
        g_assert_cmpint(eb_error_get_retry(error, NULL), ==, table[i].retry);
    }
}

static void
test_convert_leaves_own(void)
{
    g_autoptr(GError) error = eb_error_new(EB_ERROR_BUSY, "own", "busy");
    GError *before = error;

    eb_error_convert(&error, "other", "prefix");
    g_assert_true(error == before);
    g_assert_cmpstr(error->message, ==, "busy");
    eb_error_convert(NULL, NULL, NULL);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/sdk/error/fields", test_fields);
    g_test_add_func("/sdk/error/convert", test_convert);
    g_test_add_func("/sdk/error/convert-leaves-own", test_convert_leaves_own);
    return g_test_run();
}
