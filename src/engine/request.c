/* request.c - the end of a request: freeing its answer.
 *
 * Every pointer of the answer part is NULL or owned; what was asked is borrowed and stays. */
#include "config.h"

#include "fastweight/request.h"

#include <stdlib.h>

void fw_request_done(struct fw_request *r)
{
    free(r->detail_value);
    free(r->line);
    free(r->ids);
    free(r->logp);
    free(r->values);
    free(r->snapshot);
    free(r->field);
    fw_buf_done(&r->bytes);
    fw_report_done(&r->report);
    r->detail_value = NULL;
    r->line = NULL;
    r->ids = NULL;
    r->logp = NULL;
    r->values = NULL;
    r->snapshot = NULL;
    r->field = NULL;
}
