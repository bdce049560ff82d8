#!/bin/sh
# GET /metrics: Prometheus text.
. "$(dirname "$0")/common.sh"
fw "$U/metrics"
