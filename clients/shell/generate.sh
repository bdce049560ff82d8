#!/bin/sh
# generate.sh ID N [SEED]: POST .../generate, N sampled tokens; nothing is learned.
. "$(dirname "$0")/common.sh"
json -d "{\"max_tokens\": $2, \"temperature\": 0.8, \"seed\": ${3:-0}}" "$U/v1/sessions/$1/generate"
