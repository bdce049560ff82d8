#!/bin/sh
# models.sh [MODEL]: GET /v1/models[/MODEL], the recipes and their defaults.
. "$(dirname "$0")/common.sh"
fw "$U/v1/models${1:+/$1}"
