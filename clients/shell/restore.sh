#!/bin/sh
# restore.sh ID NAME: POST .../snapshots/NAME/restore.
. "$(dirname "$0")/common.sh"
fw -X POST "$U/v1/sessions/$1/snapshots/$2/restore"
