/* wait.h - the main thread while the daemon serves: signals, and a watchdog that means it. */
#ifndef DAEMON_WAIT_H
#define DAEMON_WAIT_H

#include "fastweight/log.h"
#include "fastweight/pool.h"

/* Before any thread starts: SIGTERM, SIGINT and SIGHUP are blocked everywhere, SIGPIPE is
 * ignored. */
void wait_block_signals(void);
/* Returns the SIGTERM or SIGINT that ends the daemon. Meanwhile tells systemd's watchdog that
 * all is well, only as long as the pool still runs tasks. */
int wait_for_end(struct fw_pool *pool, const struct fw_log *log);

#endif
