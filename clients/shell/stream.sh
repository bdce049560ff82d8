#!/bin/sh
# stream.sh ID N [SEED]: POST .../generate with stream, N sampled tokens as events while they come.
. "$(dirname "$0")/common.sh"
json -N -d "{\"max_tokens\": $2, \"temperature\": 0.8, \"seed\": ${3:-0}, \"stream\": true}" "$U/v1/sessions/$1/generate"
