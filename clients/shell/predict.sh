#!/bin/sh
# predict.sh ID [PREFIX]: POST .../predict, the ten likeliest next tokens.
. "$(dirname "$0")/common.sh"
json -d "{\"top_logprobs\": 10${2:+, \"prefix\": \"$2\"}}" "$U/v1/sessions/$1/predict"
