#!/bin/sh
# import.sh ID FILE: PUT .../import into a session of equal model and config.
. "$(dirname "$0")/common.sh"
fw -X PUT -H 'Content-Type: application/vnd.safetensors' --data-binary "@$2" "$U/v1/sessions/$1/import"
