#!/bin/sh
# list.sh [PREFIX]: GET /v1/sessions, the first page.
. "$(dirname "$0")/common.sh"
fw "$U/v1/sessions?limit=100&prefix=${1:-}"
