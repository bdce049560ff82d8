#!/bin/sh
# delete.sh ID: DELETE /v1/sessions/ID, with its snapshots.
. "$(dirname "$0")/common.sh"
fw -X DELETE "$U/v1/sessions/$1"
