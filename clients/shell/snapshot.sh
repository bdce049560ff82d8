#!/bin/sh
# snapshot.sh ID NAME: POST .../snapshots.
. "$(dirname "$0")/common.sh"
json -d "{\"name\": \"$2\"}" "$U/v1/sessions/$1/snapshots"
