#!/bin/sh
# edit.sh ID KEY_JSON VALUE_JSON: POST .../edit, makes the key read the value.
. "$(dirname "$0")/common.sh"
json -d "{\"key\": $2, \"value\": $3}" "$U/v1/sessions/$1/edit"
