/* listen.c - the listening socket.
 *
 * There are no keys and no TLS yet, so only this machine may connect: 127.0.0.0/8 and ::1.
 * Addresses are numbers, never names: nothing is looked up. */
#include "config.h"

#include "listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 511 };

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static int bad(struct fw_err *err, const char *address)
{
    return fw_fail_param(err, FW_EINVAL, "bad_address", "listen",
                         "'%.80s' is not ADDRESS:PORT, as 127.0.0.1:7787 or [::1]:7787",
                         address);
}

static int parse_port(const char *text, in_port_t *ret)
{
    unsigned long port;
    char *end;

    if (*text < '0' || *text > '9')
        return -1;
    port = strtoul(text, &end, 10);
    if (*end || port > 65535)
        return -1;
    *ret = htons((in_port_t)port);
    return 0;
}

static int parse(const char *address, union address *ret, socklen_t *ret_len,
                 struct fw_err *err)
{
    const char *colon = strrchr(address, ':');
    char host[INET6_ADDRSTRLEN + 2];
    size_t len = colon ? (size_t)(colon - address) : 0;

    *ret = (union address){ 0 };
    if (len == 0 || len >= sizeof host)
        return bad(err, address);
    memcpy(host, address, len);
    host[len] = 0;
    if (host[0] == '[' && host[len - 1] == ']') {
        host[len - 1] = 0;
        ret->v6.sin6_family = AF_INET6;
        *ret_len = sizeof ret->v6;
        if (inet_pton(AF_INET6, host + 1, &ret->v6.sin6_addr) != 1 ||
            parse_port(colon + 1, &ret->v6.sin6_port) < 0)
            return bad(err, address);
        if (IN6_IS_ADDR_LOOPBACK(&ret->v6.sin6_addr))
            return 0;
    } else {
        ret->v4.sin_family = AF_INET;
        *ret_len = sizeof ret->v4;
        if (inet_pton(AF_INET, host, &ret->v4.sin_addr) != 1 ||
            parse_port(colon + 1, &ret->v4.sin_port) < 0)
            return bad(err, address);
        if (ntohl(ret->v4.sin_addr.s_addr) >> 24 == 127)
            return 0;
    }
    return fw_fail_param(err, FW_EINVAL, "not_loopback", "listen",
                         "%.80s is not a loopback address; only 127.0.0.0/8 and ::1 can be "
                         "bound, since there are no keys yet",
                         address);
}

static int print(int fd, char text[LISTEN_TEXT])
{
    union address a;
    socklen_t len = sizeof a;
    char host[INET6_ADDRSTRLEN];

    if (getsockname(fd, &a.any, &len) < 0)
        return -1;
    if (a.any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a.v6.sin6_addr, host, sizeof host);
        snprintf(text, LISTEN_TEXT, "[%s]:%u", host, (unsigned)ntohs(a.v6.sin6_port));
    } else {
        inet_ntop(AF_INET, &a.v4.sin_addr, host, sizeof host);
        snprintf(text, LISTEN_TEXT, "%s:%u", host, (unsigned)ntohs(a.v4.sin_port));
    }
    return 0;
}

int listen_open(const char *address, int *ret_fd, char text[LISTEN_TEXT], struct fw_err *err)
{
    union address a;
    socklen_t len = 0;
    int fd, on = 1;

    if (parse(address, &a, &len, err) < 0)
        return -1;
    fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return fw_fail(err, FW_EIO, "no_socket", "cannot make a socket: %s", strerror(errno));
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, &a.any, len) < 0 || listen(fd, BACKLOG) < 0 || print(fd, text) < 0) {
        fw_fail(err, FW_EIO, "cannot_bind", "cannot listen on %.80s: %s", address,
                strerror(errno));
        close(fd);
        return -1;
    }
    *ret_fd = fd;
    return 0;
}
