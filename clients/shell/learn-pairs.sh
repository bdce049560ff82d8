#!/bin/sh
# learn-pairs.sh ID JSON: POST .../learn, {"keys": [[..]], "values": [[..]]}.
. "$(dirname "$0")/common.sh"
json -d "$2" "$U/v1/sessions/$1/learn"
