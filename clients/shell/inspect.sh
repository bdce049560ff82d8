#!/bin/sh
# inspect.sh ID: GET .../inspect, health per head.
. "$(dirname "$0")/common.sh"
fw "$U/v1/sessions/$1/inspect"
