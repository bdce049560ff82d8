#!/bin/sh
# create.sh ID MODEL [CONFIG_JSON]: POST /v1/sessions.
. "$(dirname "$0")/common.sh"
json -d "{\"id\": \"$1\", \"model\": \"$2\", \"config\": ${3:-{\}}}" "$U/v1/sessions"
