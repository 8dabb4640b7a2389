/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-host.h"

/*
 * The two hosts differ in three ways only: where a path is opened, and whether programs, sockets and numbers are
 * asked for (eb-host-real.c) or read from the answers of a fixture tree (eb-host-fixture.c).
 */

/**
 * eb_host_view_new: (transfer full): the same host, of which only @reads (EbCheckInfo.reads) can be looked at; all else
 * is EB_ERROR_DENIED, reason "host.undeclared".
 * @settings: (nullable): fills "{KEY}" in the items
 */
EbHost *eb_host_view_new(EbHost *self, const char *const *reads, EbConfigSection *settings);
/** eb_host_view_get_undeclared: (nullable) (transfer none): the first thing asked for that was not declared. */
const char *eb_host_view_get_undeclared(EbHost *self);

/** eb_host_read_any: as eb_host_read_file(), for the answers of a fixture tree, which no check declares. */
char *eb_host_read_any(EbHost *self, const char *path, gsize *length, GError **error);

/** eb_host_open: descriptor of @path below the host's root, -1 with errno. */
int eb_host_open(EbHost *self, const char *path, int flags);

/** eb_host_read_fd: (transfer full) (nullable): all of @fd, EB_HOST_MAX_READ at most; @what: for messages. */
char *eb_host_read_fd(int fd, const char *what, gsize *length, GError **error);

/** eb_host_set_errno_error: EB_ERROR_NOT_FOUND, _DENIED, ... by @saved_errno. */
void eb_host_set_errno_error(GError **error, int saved_errno, const char *verb, const char *what);

char *eb_host_real_run(const char *const *argv, guint deadline_ms, int *exit_code, GError **error);
gboolean eb_host_real_connect_unix(const char *path, guint deadline_ms, GError **error);
char *eb_host_real_http_get(const char *socket_path, const char *request, guint deadline_ms, GError **error);

char *eb_host_fixture_run(EbHost *self, const char *const *argv, int *exit_code, GError **error);
gboolean eb_host_fixture_connect_unix(EbHost *self, const char *path, GError **error);
char *eb_host_fixture_http_get(EbHost *self, const char *socket_path, const char *request, GError **error);
/** eb_host_fixture_stat: TRUE and @result changed when the tree has an answer of its own for @path. */
gboolean eb_host_fixture_stat(EbHost *self, const char *path, EbHostStat *result);
gboolean eb_host_fixture_space(EbHost *self, const char *path, EbHostSpace *result, GError **error);
char *eb_host_fixture_uname(EbHost *self);

/** EbHostHttp: how far an answer has come. */
typedef enum {
    EB_HOST_HTTP_MORE,   /* not whole yet */
    EB_HOST_HTTP_DONE,   /* whole */
    EB_HOST_HTTP_BROKEN, /* will never be one */
} EbHostHttp;
/**
 * eb_host_http_parse: an HTTP/1 answer from its first byte on.
 * @ended: nothing more will come
 * @status: (out): set as soon as the head is whole
 * @body: replaced by what is there of the body
 */
EbHostHttp eb_host_http_parse(const char *text, gsize length, gboolean ended, int *status, GString *body);
