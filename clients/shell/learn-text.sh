#!/bin/sh
# learn-text.sh ID TEXT KEY: POST .../learn as text, exactly once under an Idempotency-Key.
. "$(dirname "$0")/common.sh"
fw -H 'Content-Type: text/plain' -H "Idempotency-Key: $3" --data-binary "$2" "$U/v1/sessions/$1/learn"
