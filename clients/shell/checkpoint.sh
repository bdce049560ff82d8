#!/bin/sh
# checkpoint.sh ID: POST .../checkpoint, the block on disk now.
. "$(dirname "$0")/common.sh"
fw -X POST "$U/v1/sessions/$1/checkpoint"
