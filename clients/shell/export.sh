#!/bin/sh
# export.sh ID FILE: GET .../export, the whole state as safetensors.
. "$(dirname "$0")/common.sh"
fw -o "$2" "$U/v1/sessions/$1/export"
