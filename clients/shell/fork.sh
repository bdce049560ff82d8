#!/bin/sh
# fork.sh ID NEW: POST .../fork.
. "$(dirname "$0")/common.sh"
json -d "{\"id\": \"$2\"}" "$U/v1/sessions/$1/fork"
