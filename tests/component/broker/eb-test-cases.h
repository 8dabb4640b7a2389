/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** EbTestExpectation: what a case of tests/fixtures/smuggling expects; its README describes each. */
typedef enum {
    EB_TEST_EXPECT_REFUSE,
    EB_TEST_EXPECT_ONE,
    EB_TEST_EXPECT_ONE_THEN,
    EB_TEST_EXPECT_EACH,
    EB_TEST_EXPECT_NONE,
    EB_TEST_EXPECT_RAW,
} EbTestExpectation;

typedef struct {
    char *name;
    EbTestExpectation expectation;
    guint number;  /* a status, or how many */
    GString *text; /* (owned): of one and raw */
    GString *send; /* (owned) */
} EbTestCase;

/** eb_test_cases_read: (transfer full) (element-type EbTestCase): every case of every *.cases file of @directory. */
GPtrArray *eb_test_cases_read(const char *directory, const char *nonce, guint16 port);

G_END_DECLS
