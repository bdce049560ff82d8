#!/bin/sh
# score.sh ID FILE: POST .../score, the surprise of each line, weights frozen.
. "$(dirname "$0")/common.sh"
fw -H 'Content-Type: application/octet-stream' --data-binary "@$2" "$U/v1/sessions/$1/score?surprise=lines"
