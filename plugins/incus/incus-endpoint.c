/* SPDX-License-Identifier: MIT */
#include "incus-endpoint.h"

#include <fcntl.h>
#include <sys/un.h>
#include <unistd.h>

#define DEFAULT_DIR "/var/lib/incus"
#define ADMIN_SOCKET "unix.socket"
#define USER_SOCKET "unix.socket.user"
#define DEFAULT_HTTPS_PORT 8443

IncusEndpoint *
incus_endpoint_new_socket(const char *path)
{
    IncusEndpoint *self = g_new0(IncusEndpoint, 1);
    self->socket_path = g_strdup(path);
    self->per_user = g_str_has_suffix(path, "/" USER_SOCKET);
    self->access = g_strdup(self->per_user ? "incus-user socket" : "socket");
    return self;
}

IncusEndpoint *
incus_endpoint_copy(const IncusEndpoint *self)
{
    IncusEndpoint *copy = g_new0(IncusEndpoint, 1);
    copy->socket_path = g_strdup(self->socket_path);
    copy->host = g_strdup(self->host);
    copy->port = self->port;
    g_set_object(&copy->client_cert, self->client_cert);
    g_set_object(&copy->server_cert, self->server_cert);
    copy->access = g_strdup(self->access);
    copy->per_user = self->per_user;
    copy->automatic = self->automatic;
    return copy;
}

void
incus_endpoint_free(IncusEndpoint *self)
{
    if (self == NULL)
        return;
    g_free(self->socket_path);
    g_free(self->host);
    g_clear_object(&self->client_cert);
    g_clear_object(&self->server_cert);
    g_free(self->access);
    g_free(self);
}

char *
incus_endpoint_describe(const IncusEndpoint *self)
{
    if (self->socket_path != NULL)
        return g_strdup(self->socket_path);
    return g_strdup_printf("https://%s:%u", self->host, self->port);
}

static char *
choose_socket(void)
{
    /* INCUS_DIR is incusd's own way to name another directory; it comes from whoever starts the service. */
    const char *dir = g_getenv("INCUS_DIR");
    if (dir == NULL || !g_path_is_absolute(dir))
        dir = DEFAULT_DIR;
    g_autofree char *user = g_build_filename(dir, USER_SOCKET, NULL);
    if (geteuid() != 0 && faccessat(AT_FDCWD, user, R_OK | W_OK, AT_EACCESS) == 0)
        return g_steal_pointer(&user);
    return g_build_filename(dir, ADMIN_SOCKET, NULL);
}

IncusEndpoint *
incus_endpoint_settle(const IncusEndpoint *self)
{
    if (!self->automatic)
        return NULL;
    g_autofree char *path = choose_socket();
    IncusEndpoint *settled = incus_endpoint_new_socket(path);
    settled->automatic = TRUE;
    return settled;
}

static gboolean
load_certificates(IncusEndpoint *self, const char *cert, const char *key, const char *server, const char *where,
                  GError **error)
{
    if (cert == NULL || *cert == '\0' || key == NULL || *key == '\0' || server == NULL || *server == '\0') {
        eb_set_error(error, EB_ERROR_CONFIG, "incus.tls-config",
                     "%s: [plugin.incus] url needs client_cert, client_key and server_cert", where);
        return FALSE;
    }
    self->client_cert = g_tls_certificate_new_from_files(cert, key, error);
    if (self->client_cert == NULL) {
        eb_error_convert(error, "incus.tls-config", "client certificate");
        return FALSE;
    }
    self->server_cert = g_tls_certificate_new_from_file(server, error);
    if (self->server_cert == NULL) {
        eb_error_convert(error, "incus.tls-config", "server certificate");
        return FALSE;
    }
    return TRUE;
}

static IncusEndpoint *
from_url(EbConfigSection *section, const char *url, const char *cert, const char *key, const char *server,
         GError **error)
{
    g_autofree char *where = eb_config_section_where(section, "url");
    g_autoptr(GUri) uri = g_uri_parse(url, G_URI_FLAGS_NONE, NULL);
    if (uri == NULL || g_strcmp0(g_uri_get_scheme(uri), "https") != 0 || g_uri_get_host(uri) == NULL ||
        *g_uri_get_host(uri) == '\0') {
        eb_set_error(error, EB_ERROR_CONFIG, "incus.tls-config",
                     "%s: [plugin.incus] url must look like https://HOST:PORT", where);
        return NULL;
    }
    g_autoptr(IncusEndpoint) self = g_new0(IncusEndpoint, 1);
    self->access = g_strdup("https");
    self->host = g_strdup(g_uri_get_host(uri));
    self->port = g_uri_get_port(uri) > 0 ? (guint16)g_uri_get_port(uri) : DEFAULT_HTTPS_PORT;
    if (!load_certificates(self, cert, key, server, where, error))
        return NULL;
    return g_steal_pointer(&self);
}

IncusEndpoint *
incus_endpoint_from_section(EbConfigSection *section, GError **error)
{
    g_autofree char *url = eb_config_section_get_string(section, "url", "", error);
    if (url == NULL)
        return NULL;
    g_autofree char *path = eb_config_section_get_string(section, "socket", "", error);
    if (path == NULL)
        return NULL;
    g_autofree char *cert = eb_config_section_get_string(section, "client_cert", "", error);
    g_autofree char *key = cert != NULL ? eb_config_section_get_string(section, "client_key", "", error) : NULL;
    g_autofree char *server = key != NULL ? eb_config_section_get_string(section, "server_cert", "", error) : NULL;
    if (server == NULL)
        return NULL;
    if (*url != '\0')
        return from_url(section, url, cert, key, server, error);
    gboolean automatic = *path == '\0';
    if (automatic) {
        g_free(path);
        path = choose_socket();
    }
    /* sun_path has room for that many bytes and the kernel cuts silently nowhere: refuse here, with the place. */
    if (!g_path_is_absolute(path) || strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
        g_autofree char *where = eb_config_section_where(section, "socket");
        eb_set_error(error, EB_ERROR_CONFIG, "incus.socket-path",
                     "%s: [plugin.incus] socket must be an absolute path shorter than 108 bytes", where);
        return NULL;
    }
    IncusEndpoint *self = incus_endpoint_new_socket(path);
    self->automatic = automatic;
    return self;
}
