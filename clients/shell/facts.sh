#!/bin/sh
# facts.sh ID: GET /v1/sessions/ID with the state's hash.
. "$(dirname "$0")/common.sh"
fw "$U/v1/sessions/$1?hash=true"
