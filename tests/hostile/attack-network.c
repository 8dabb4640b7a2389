/* SPDX-License-Identifier: MIT */
/* Ways out that are not the broker: addresses, names, raw sockets, interfaces, abstract sockets of others. */
#include "attack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define UNREACHABLE "ENETUNREACH EHOSTUNREACH EADDRNOTAVAIL EACCES EPERM"
#define WAIT_MS 300

static long
keep_errno(int fd, long result)
{
    int saved = errno;

    if (fd >= 0)
        close(fd);
    errno = saved;
    return result;
}

static long
tcp_to(const char *address, int port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    inet_pton(AF_INET, address, &name.sin_addr);
    return keep_errno(fd, connect(fd, (struct sockaddr *)&name, sizeof name));
}

static long
tcp6_to(const char *address, int port)
{
    struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_port = htons((unsigned short)port), .sin6_scope_id = 1};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    inet_pton(AF_INET6, address, &name.sin6_addr);
    return keep_errno(fd, connect(fd, (struct sockaddr *)&name, sizeof name));
}

/* A question for leaked.x.test, type A. */
static size_t
dns_question(unsigned char *out)
{
    static const unsigned char QUESTION[] =
        "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06leaked\x01x\x04test\x00"
        "\x00\x01\x00\x01";

    memcpy(out, QUESTION, sizeof QUESTION - 1);
    return sizeof QUESTION - 1;
}

/* 0 when an answer came. */
static long
dns_by_udp(const char *address, int port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    unsigned char bytes[512];
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    inet_pton(AF_INET, address, &name.sin_addr);
    if (connect(fd, (struct sockaddr *)&name, sizeof name) != 0 || send(fd, bytes, dns_question(bytes), 0) < 0)
        return keep_errno(fd, -1);
    if (poll(&ready, 1, WAIT_MS) == 0) {
        errno = ETIMEDOUT;
        return keep_errno(fd, -1);
    }
    return keep_errno(fd, recv(fd, bytes, sizeof bytes, 0) < 0 ? -1 : 0);
}

static void
attack_addresses(void)
{
    static const char *const FAR[] = {"8.8.8.8",         "1.1.1.1",     "10.0.0.1",
                                      "192.168.0.1",     "172.17.0.1",  "169.254.169.254",
                                      "100.100.100.200", "224.0.0.251", "255.255.255.255"};
    static const char *const FAR6[] = {"2001:4860:4860::8888", "fd00:ec2::254", "fe80::1", "64:ff9b::808:808",
                                       "ff02::fb"};
    const char *host = attack_value("host");
    char name[128];

    for (size_t i = 0; i < sizeof FAR / sizeof FAR[0]; i++) {
        snprintf(name, sizeof name, "tcp-%s", FAR[i]);
        attack_row(name, tcp_to(FAR[i], 443), UNREACHABLE);
        snprintf(name, sizeof name, "dns-udp-%s", FAR[i]);
        attack_row(name, dns_by_udp(FAR[i], 53), UNREACHABLE);
        snprintf(name, sizeof name, "dns-tcp-%s", FAR[i]);
        attack_row(name, tcp_to(FAR[i], 53), UNREACHABLE);
    }
    for (size_t i = 0; i < sizeof FAR6 / sizeof FAR6[0]; i++) {
        snprintf(name, sizeof name, "tcp6-%s", FAR6[i]);
        attack_row(name, tcp6_to(FAR6[i], 443), UNREACHABLE);
    }
    /* The host's own address, at which a listener of the driver's waits. */
    if (*host != '\0')
        attack_row("tcp-host", tcp_to(host, atoi(attack_value("port"))), UNREACHABLE);
    /* The host's loopback services: this loopback is another one. */
    attack_row("tcp-host-loopback", tcp_to("127.0.0.1", atoi(attack_value("port"))), "ECONNREFUSED");
    attack_row("tcp-provider-loopback", tcp_to("127.0.0.1", atoi(attack_value("model"))), "ECONNREFUSED");
    attack_row("dns-udp-name-server", dns_by_udp(attack_value("names"), 53), "ECONNREFUSED ETIMEDOUT ENETUNREACH");
    attack_row("dns-tcp-name-server", tcp_to(attack_value("names"), 53), "ECONNREFUSED ENETUNREACH");
    attack_row("dns-udp-resolved", dns_by_udp("127.0.0.53", 53), "ECONNREFUSED ETIMEDOUT");
    attack_row("tcp-incus", tcp_to("127.0.0.1", 8443), "ECONNREFUSED");
}

static void
attack_raw(void)
{
    struct icmphdr echo = {.type = ICMP_ECHO};
    struct sockaddr_in far = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x08080808)};
    struct sockaddr_ll link = {
        .sll_family = AF_PACKET, .sll_ifindex = 2, .sll_protocol = htons(ETH_P_IP), .sll_halen = 6};
    int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
    int packet = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));

    if (!attack_is_root()) {
        attack_row("raw-socket", raw, "EPERM");
        attack_row("packet-socket", packet, "EPERM");
    } else {
        /* The guest's root may open them; they lead to a network of one loopback device. */
        attack_row("raw-send", raw < 0 ? -1 : sendto(raw, &echo, sizeof echo, 0, (struct sockaddr *)&far, sizeof far),
                   UNREACHABLE);
        attack_row("packet-send",
                   packet < 0 ? -1 : sendto(packet, &echo, sizeof echo, 0, (struct sockaddr *)&link, sizeof link),
                   "ENXIO ENODEV EPERM");
    }
    keep_errno(raw, 0);
    keep_errno(packet, 0);
    attack_row("bluetooth-socket", socket(AF_BLUETOOTH, SOCK_RAW, 0),
               "EAFNOSUPPORT EPERM EPROTONOSUPPORT ESOCKTNOSUPPORT");
    attack_row("can-socket", socket(AF_CAN, SOCK_RAW, 1), "EAFNOSUPPORT EPERM EPROTONOSUPPORT");
    attack_row("tun-device", open("/dev/net/tun", O_RDWR | O_CLOEXEC), "ENOENT EPERM EACCES ENODEV");
}

/* Asks for a device of @kind on top of the host's first real one. 0 when the kernel made it. */
static long
new_link(const char *kind)
{
    struct {
        struct nlmsghdr head;
        struct ifinfomsg info;
        char attributes[128];
    } ask = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
                      .nlmsg_type = RTM_NEWLINK,
                      .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK}};
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[256];
    } answer;
    struct rtattr *under = (struct rtattr *)((char *)&ask + NLMSG_ALIGN(ask.head.nlmsg_len)), *info, *name;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), index = 2;

    under->rta_type = IFLA_LINK;
    under->rta_len = RTA_LENGTH(sizeof index);
    memcpy(RTA_DATA(under), &index, sizeof index);
    info = (struct rtattr *)((char *)under + RTA_ALIGN(under->rta_len));
    info->rta_type = IFLA_LINKINFO;
    name = (struct rtattr *)RTA_DATA(info);
    name->rta_type = IFLA_INFO_KIND;
    name->rta_len = (unsigned short)RTA_LENGTH(strlen(kind));
    memcpy(RTA_DATA(name), kind, strlen(kind));
    info->rta_len = (unsigned short)RTA_LENGTH(RTA_ALIGN(name->rta_len));
    ask.head.nlmsg_len = (unsigned)((char *)info + RTA_ALIGN(info->rta_len) - (char *)&ask);
    if (fd < 0 || send(fd, &ask, ask.head.nlmsg_len, 0) < 0 || recv(fd, &answer, sizeof answer, 0) < 0)
        return keep_errno(fd, -1);
    if (answer.error.error == 0)
        return keep_errno(fd, 0);
    errno = -answer.error.error;
    return keep_errno(fd, -1);
}

static void
attack_interfaces(void)
{
    struct if_nameindex *all = if_nameindex();
    char names[256] = "";
    int others = 0;

    for (struct if_nameindex *at = all; at != NULL && at->if_index != 0; at++) {
        others += strcmp(at->if_name, "lo") != 0;
        strncat(names, at->if_name, sizeof names - strlen(names) - 1);
    }
    attack_said("interfaces", all != NULL && !others, names);
    if_freenameindex(all);
    attack_row("link-macvlan", new_link("macvlan"), "EPERM ENODEV EOPNOTSUPP EINVAL");
    attack_row("link-ipvlan", new_link("ipvlan"), "EPERM ENODEV EOPNOTSUPP EINVAL");
    attack_row("link-vlan", new_link("vlan"), "EPERM ENODEV EOPNOTSUPP EINVAL");
}

static long
abstract_to(const char *text)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t length = strlen(text);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(name.sun_path + 1, text, length);
    return keep_errno(
        fd, connect(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)));
}

static long
listen_at(int family, const char *address)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(47129)};
    struct sockaddr_in6 name6 = {.sin6_family = AF_INET6, .sin6_port = htons(47129)};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    inet_pton(family, address, family == AF_INET ? (void *)&name.sin_addr : (void *)&name6.sin6_addr);
    if (bind(fd, family == AF_INET ? (struct sockaddr *)&name : (struct sockaddr *)&name6,
             family == AF_INET ? sizeof name : sizeof name6) != 0)
        return keep_errno(fd, -1);
    return keep_errno(fd, listen(fd, 1));
}

void
attack_network(void)
{
    char name[128];

    attack_addresses();
    attack_raw();
    attack_interfaces();
    attack_row("abstract-host", abstract_to(attack_value("abstract")), "ECONNREFUSED");
    snprintf(name, sizeof name, "%s-neighbour", attack_value("abstract"));
    attack_row("abstract-neighbour", abstract_to(name), "ECONNREFUSED");
    attack_row("relay-port", listen_at(AF_INET, "127.0.0.1"), "EADDRINUSE");
    attack_row("relay-port-any", listen_at(AF_INET, "0.0.0.0"), "EADDRINUSE");
    attack_row("relay-port-mapped", listen_at(AF_INET6, "::ffff:127.0.0.1"), "EADDRINUSE");
}

int
attack_listen(const char *text, int key)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    char byte;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), length;

    length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "%s-neighbour", text);
    if (bind(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) !=
            0 ||
        listen(fd, 8) != 0 || shmget(key, 4096, IPC_CREAT | 0666) < 0 || semget(key, 1, IPC_CREAT | 0666) < 0 ||
        msgget(key, IPC_CREAT | 0666) < 0) {
        perror("attack listen");
        return 1;
    }
    puts("listening");
    while (read(0, &byte, 1) > 0)
        continue;
    return 0;
}
