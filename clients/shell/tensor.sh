#!/bin/sh
# tensor.sh ID NAME FILE.png: GET .../tensors/NAME as a heat map.
. "$(dirname "$0")/common.sh"
fw -H 'Accept: image/png' -o "$3" "$U/v1/sessions/$1/tensors/$2"
