#!/bin/sh
# learn.sh ID FILE: POST .../learn with raw bytes (events: u16 little-endian).
. "$(dirname "$0")/common.sh"
fw -H 'Content-Type: application/octet-stream' --data-binary "@$2" "$U/v1/sessions/$1/learn?hash=true"
