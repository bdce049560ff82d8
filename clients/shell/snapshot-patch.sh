#!/bin/sh
# snapshot-patch.sh ID NAME BASE FILE: GET .../snapshots/NAME/patch, the factors from BASE to NAME.
. "$(dirname "$0")/common.sh"
fw -o "$4" "$U/v1/sessions/$1/snapshots/$2/patch?base=$3"
