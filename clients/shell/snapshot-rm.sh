#!/bin/sh
# snapshot-rm.sh ID NAME: DELETE .../snapshots/NAME.
. "$(dirname "$0")/common.sh"
fw -X DELETE "$U/v1/sessions/$1/snapshots/$2"
