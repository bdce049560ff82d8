#!/bin/sh
# GET /version: build, CPU level.
. "$(dirname "$0")/common.sh"
fw "$U/version"
