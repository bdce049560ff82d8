#!/bin/sh
# forget.sh ID KEY_JSON: POST .../forget, makes the key read zero.
. "$(dirname "$0")/common.sh"
json -d "{\"key\": $2}" "$U/v1/sessions/$1/forget"
