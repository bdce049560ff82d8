# common.sh - what every script here shares. U: the server; needs curl.
set -eu
U=${FASTWEIGHTD_URL:-http://127.0.0.1:7787}
# --fail-with-body: an HTTP error is a failed command, and is shown; -sS: quiet but for errors.
fw() { curl -sS --fail-with-body -H 'Expect:' "$@"; echo; }
json() { fw -H 'Content-Type: application/json' "$@"; }
