#!/bin/sh
# GET /readyz: will it take work, and if not, why?
. "$(dirname "$0")/common.sh"
fw "$U/readyz"
