#!/bin/sh
# tensors.sh ID: GET .../tensors, what the state is made of.
. "$(dirname "$0")/common.sh"
fw "$U/v1/sessions/$1/tensors"
