#!/bin/sh
# GET /healthz: is the process alive?
. "$(dirname "$0")/common.sh"
fw "$U/healthz"
