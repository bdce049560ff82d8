#!/bin/sh
# recall.sh ID QUERIES_JSON: POST .../recall, [[..]] -> values.
. "$(dirname "$0")/common.sh"
json -d "{\"queries\": $2}" "$U/v1/sessions/$1/recall"
