#!/bin/sh
# label.sh ID KEY VALUE: PATCH /v1/sessions/ID, sets the labels to this one.
. "$(dirname "$0")/common.sh"
json -X PATCH -d "{\"labels\": {\"$2\": \"$3\"}}" "$U/v1/sessions/$1"
