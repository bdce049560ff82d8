#!/bin/sh
# snapshot-get.sh ID NAME FILE: GET .../snapshots/NAME, the export bytes.
. "$(dirname "$0")/common.sh"
fw -o "$3" "$U/v1/sessions/$1/snapshots/$2"
