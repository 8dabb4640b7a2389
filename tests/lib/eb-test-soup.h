/* SPDX-License-Identifier: MIT */
#pragma once

#include <libsoup/soup.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

G_BEGIN_DECLS

/**
 * eb_test_soup_listen: as soup_server_listen_local() on IPv4, without the report of what libsoup 3.2 itself never frees of
 * it (the listener's address). A sanitizer cannot be told by the name of a function: libraries have no frame pointers.
 */
static inline gboolean
eb_test_soup_listen(SoupServer *server, guint port, GError **error)
{
#ifdef __SANITIZE_ADDRESS__
    __lsan_disable();
#endif
    gboolean listens = soup_server_listen_local(server, port, SOUP_SERVER_LISTEN_IPV4_ONLY, error);
#ifdef __SANITIZE_ADDRESS__
    __lsan_enable();
#endif
    return listens;
}

G_END_DECLS
