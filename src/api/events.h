/* events.h - a generation told as server-sent events while it runs. */
#ifndef API_EVENTS_H
#define API_EVENTS_H

#include "op.h"

struct events;

/* For ask: this op's reply is a stream of events. */
int events_new(struct op *op, struct fw_err *err);
/* In place of fw_engine_submit. The op ends by itself. */
void events_submit(struct op *op);
void events_free(struct events *ev); /* NULL is allowed */

#endif
