/* linger.c - closing a connection whose client is still sending.
 *
 * One thread polls at most PLACES sockets and reads what comes until the client closes, is
 * silent for SILENT_MS, or TOTAL_MS have passed. When all places are taken a socket is simply
 * closed. `lock` guards the places' table; the thread alone reads and closes the sockets in it.
 * A byte through `wake` tells it that the table changed. */
#include "config.h"

#include "linger.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fastweight/clock.h"

enum { PLACES = 64, SILENT_MS = 1000, TOTAL_MS = 30000, PIECES = 16 };

struct place {
    int fd; /* -1: free */
    uint64_t silent_ns, end_ns;
};

struct lingerer {
    pthread_t thread;
    pthread_mutex_t lock;
    struct place place[PLACES];
    int wake[2];
    bool stop;
};

/* Reads what lies there; false at the end. */
static bool read_some(int fd)
{
    char waste[65536];
    ssize_t n = 1;
    int i;

    for (i = 0; i < PIECES && n > 0; i++)
        n = recv(fd, waste, sizeof waste, MSG_DONTWAIT);
    return n != 0; /* an error that is not "later" shows up as POLLERR or POLLHUP */
}

/* One socket's turn; false: it is done. */
static bool serve(struct place *p, const struct pollfd *ready, uint64_t now)
{
    if (ready->revents & (POLLERR | POLLNVAL))
        return false;
    if (ready->revents & (POLLIN | POLLHUP)) {
        if (!read_some(p->fd))
            return false;
        p->silent_ns = now + SILENT_MS * UINT64_C(1000000);
    }
    return now < p->silent_ns && now < p->end_ns;
}

/* The sockets to poll, the wake pipe first; returns how many. */
static nfds_t collect(struct lingerer *l, struct pollfd *poll_fd, bool *ret_stop)
{
    nfds_t n = 1;
    int i;

    poll_fd[0] = (struct pollfd){ .fd = l->wake[0], .events = POLLIN };
    pthread_mutex_lock(&l->lock);
    *ret_stop = l->stop;
    for (i = 0; i < PLACES; i++) {
        if (l->place[i].fd >= 0)
            poll_fd[n++] = (struct pollfd){ .fd = l->place[i].fd, .events = POLLIN };
    }
    pthread_mutex_unlock(&l->lock);
    return n;
}

static void serve_all(struct lingerer *l, const struct pollfd *poll_fd, nfds_t n)
{
    uint64_t now = fw_clock_mono_ns();
    struct place *p;
    nfds_t k;

    pthread_mutex_lock(&l->lock);
    for (k = 1; k < n; k++) {
        for (p = l->place; p->fd != poll_fd[k].fd; p++)
            ;
        if (!serve(p, &poll_fd[k], now)) {
            close(p->fd);
            p->fd = -1;
        }
    }
    pthread_mutex_unlock(&l->lock);
}

static void *work(void *arg)
{
    struct lingerer *l = arg;
    struct pollfd poll_fd[PLACES + 1];
    char byte[16];
    ssize_t got;
    nfds_t n;
    bool stop;

    while (n = collect(l, poll_fd, &stop), !stop) {
        if (poll(poll_fd, n, n > 1 ? SILENT_MS / 4 : -1) < 0)
            continue;
        if (poll_fd[0].revents) {
            got = read(l->wake[0], byte, sizeof byte);
            (void)got; /* it only had to wake us */
        }
        serve_all(l, poll_fd, n);
    }
    return NULL;
}

static void wake(struct lingerer *l)
{
    ssize_t n = write(l->wake[1], "", 1);

    (void)n; /* a full pipe wakes as well */
}

int linger_new(struct lingerer **ret, struct fw_err *err)
{
    struct lingerer *l = calloc(1, sizeof *l);
    int i;

    if (!l)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a server");
    for (i = 0; i < PLACES; i++)
        l->place[i].fd = -1;
    pthread_mutex_init(&l->lock, NULL);
    if (pipe2(l->wake, O_CLOEXEC | O_NONBLOCK) < 0) {
        free(l);
        return fw_fail(err, FW_EIO, "no_pipe", "cannot make a pipe");
    }
    if (pthread_create(&l->thread, NULL, work, l) != 0) {
        close(l->wake[0]);
        close(l->wake[1]);
        free(l);
        return fw_fail(err, FW_ENOMEM, "no_thread", "cannot start a thread");
    }
    *ret = l;
    return 0;
}

void linger_add(struct lingerer *l, int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    uint64_t now = fw_clock_mono_ns();
    int i;

    if (copy < 0)
        return;
    pthread_mutex_lock(&l->lock);
    for (i = 0; i < PLACES && l->place[i].fd >= 0; i++)
        ;
    if (i < PLACES) {
        l->place[i] = (struct place){ .fd = copy,
                                      .silent_ns = now + SILENT_MS * UINT64_C(1000000),
                                      .end_ns = now + TOTAL_MS * UINT64_C(1000000) };
        copy = -1;
    }
    pthread_mutex_unlock(&l->lock);
    if (copy >= 0)
        close(copy);
    else
        wake(l);
}

void linger_free(struct lingerer *l)
{
    int i;

    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_mutex_unlock(&l->lock);
    wake(l);
    pthread_join(l->thread, NULL);
    for (i = 0; i < PLACES; i++) {
        if (l->place[i].fd >= 0)
            close(l->place[i].fd);
    }
    close(l->wake[0]);
    close(l->wake[1]);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
