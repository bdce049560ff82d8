/* wait.c - the main thread while the daemon serves.
 *
 * Signals are blocked in our threads and taken here one by one; a second SIGTERM while the
 * daemon drains stays pending and changes nothing. A library may have started threads before
 * main (OpenBLAS does), which block nothing: there the handler runs and passes the signal on to
 * the main thread, else it would end the process. SIGHUP is ignored: the configuration is read
 * once. The watchdog is fed only when a task sent
 * through the pool came back: a daemon whose workers hang is restarted. */
#include "config.h"

#include "wait.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

struct ping {
    struct fw_task task; /* first */
    atomic_bool back;
};

static void on_ping(struct fw_task *task)
{
    atomic_store(&((struct ping *)task)->back, true);
}

static sigset_t signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return set;
}

/* On Linux the main thread's id is the process's. */
static void pass_to_main(int number)
{
    int saved = errno;

    syscall(SYS_tgkill, getpid(), getpid(), number);
    errno = saved;
}

void wait_block_signals(void)
{
    sigset_t set = signals();
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    struct sigaction pass = { .sa_handler = pass_to_main, .sa_flags = SA_RESTART };

    pthread_sigmask(SIG_BLOCK, &set, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGTERM, &pass, NULL);
    sigaction(SIGINT, &pass, NULL);
    sigaction(SIGHUP, &pass, NULL);
}

/* Feeds the watchdog when the last ping is back, and sends the next. */
static void feed(struct fw_pool *pool, struct ping *ping)
{
    if (!atomic_load(&ping->back))
        return;
    sd_notify(0, "WATCHDOG=1");
    atomic_store(&ping->back, false);
    ping->task.run = on_ping;
    fw_pool_submit(pool, &ping->task);
}

/* The ping lies on this stack, so it must be back before we leave. */
static void await(const struct ping *ping)
{
    const struct timespec nap = { 0, 1000000 };

    while (!atomic_load(&ping->back))
        nanosleep(&nap, NULL);
}

int wait_for_end(struct fw_pool *pool, const struct fw_log *log)
{
    sigset_t set = signals();
    uint64_t usec = 0;
    bool watched = sd_watchdog_enabled(0, &usec) > 0;
    struct timespec third = { (time_t)(usec / 3 / 1000000), (long)(usec / 3 % 1000000) * 1000 };
    struct ping ping = { .back = true };
    int got;

    for (;;) {
        if (watched)
            feed(pool, &ping);
        got = sigtimedwait(&set, NULL, watched ? &third : NULL);
        if (got == SIGTERM || got == SIGINT)
            break;
        if (got == SIGHUP)
            fw_log(log, FW_LOG_INFO, "SIGHUP ignored: restart to change the configuration");
    }
    await(&ping);
    return got;
}
