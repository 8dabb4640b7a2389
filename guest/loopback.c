/* SPDX-License-Identifier: MIT */
#include "guest/loopback.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The kernel gives lo this index in every network namespace. */
#define LOOPBACK_INDEX 1
#define MAX_DATAGRAMS 64 /* of one answer: far more devices than a guest can have */

struct link_request {
    struct nlmsghdr header;
    struct ifinfomsg link;
};

static int
send_request(int fd, struct link_request *request)
{
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

    request->header.nlmsg_len = NLMSG_LENGTH(sizeof request->link);
    request->header.nlmsg_seq = 1;
    if (sendto(fd, request, request->header.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0)
        return -errno;
    return 0;
}

/* Calls @each for every link of the answer until it returns non-zero; 0 or a negative errno at its end. */
static int
read_answer(int fd, int (*each)(const struct nlmsghdr *message, void *data), void *data)
{
    _Alignas(struct nlmsghdr) char buffer[32768];

    for (int datagrams = 0; datagrams < MAX_DATAGRAMS; datagrams++) {
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got < 0)
            return -errno;
        size_t left = (size_t)got;
        for (struct nlmsghdr *message = (struct nlmsghdr *)buffer; NLMSG_OK(message, left);
             message = NLMSG_NEXT(message, left)) {
            if (message->nlmsg_type == NLMSG_DONE)
                return 0;
            if (message->nlmsg_type == NLMSG_ERROR) {
                const struct nlmsgerr *error = NLMSG_DATA(message);
                return message->nlmsg_len < NLMSG_LENGTH(sizeof *error) ? -EBADMSG : error->error;
            }
            int result = each != NULL ? each(message, data) : 0;
            if (result != 0)
                return result;
        }
    }
    return -EBADMSG;
}

static int
open_netlink(void)
{
    struct timeval patience = {.tv_sec = 5};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0) {
        int failure = -errno;
        close(fd);
        return failure;
    }
    return fd;
}

int
loopback_up(void)
{
    struct link_request request = {
        .header = {.nlmsg_type = RTM_NEWLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
        .link = {.ifi_family = AF_UNSPEC, .ifi_index = LOOPBACK_INDEX, .ifi_flags = IFF_UP, .ifi_change = IFF_UP},
    };
    int fd = open_netlink();

    if (fd < 0)
        return fd;
    int result = send_request(fd, &request);
    if (result == 0)
        result = read_answer(fd, NULL, NULL);
    close(fd);
    return result;
}

static int
note_other(const struct nlmsghdr *message, void *data)
{
    const struct ifinfomsg *link = NLMSG_DATA(message);
    char *name = data;

    if (message->nlmsg_type != RTM_NEWLINK || message->nlmsg_len < NLMSG_LENGTH(sizeof *link))
        return 0;
    if (link->ifi_index == LOOPBACK_INDEX || !(link->ifi_flags & IFF_UP))
        return 0;
    size_t left = message->nlmsg_len - NLMSG_LENGTH(sizeof *link);
    for (const struct rtattr *attribute = IFLA_RTA(link); RTA_OK(attribute, left);
         attribute = RTA_NEXT(attribute, left)) {
        if (attribute->rta_type == IFLA_IFNAME) {
            size_t length = strnlen(RTA_DATA(attribute), RTA_PAYLOAD(attribute));
            length = length < IF_NAMESIZE - 1 ? length : IF_NAMESIZE - 1;
            memcpy(name, RTA_DATA(attribute), length);
            name[length] = '\0';
        }
    }
    return 1;
}

int
loopback_find_other(char *name)
{
    struct link_request request = {
        .header = {.nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .link = {.ifi_family = AF_UNSPEC},
    };
    int fd = open_netlink();

    if (fd < 0)
        return fd;
    memcpy(name, "?", sizeof "?");
    int result = send_request(fd, &request);
    if (result == 0)
        result = read_answer(fd, note_other, name);
    close(fd);
    return result;
}
