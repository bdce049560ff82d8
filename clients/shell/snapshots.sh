#!/bin/sh
# snapshots.sh ID: GET .../snapshots.
. "$(dirname "$0")/common.sh"
fw "$U/v1/sessions/$1/snapshots"
