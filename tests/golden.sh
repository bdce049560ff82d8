#!/bin/sh
# Every golden case at both CPU levels; what is not understood must fail, and say so.
check=$top_builddir/tests/golden_check
"$check" "$top_srcdir/tests/golden" || exit 1
FW_CPU_LEVEL=base "$check" "$top_srcdir/tests/golden" || exit 1

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
refuse() { # WHAT WORDS: the case in $dir must fail with these words
    if "$check" "$dir" 2> "$dir/said"; then echo "$1 passed"; exit 1; fi
    grep -q "$2" "$dir/said" || { echo "$1: $(cat "$dir/said")"; exit 1; }
}
refuse "an empty folder" "no case in"
case=$top_srcdir/tests/golden/04_delta_rule_a
echo '[1, 2]' > "$dir/x.json"
refuse "a case without tensors" "no tensors"
cp "$case.safetensors" "$dir/x.safetensors"
refuse "a JSON of another kind" "no tolerance"
echo '{"rule": ' > "$dir/x.json"
refuse "half a JSON" "no JSON"
sed 's/"rule": "delta_rule"/"rule": "delta_role"/' "$case.json" > "$dir/x.json"
refuse "an unknown rule" "no such rule here: delta_role"
sed 's/"q_scale": "dk^-0.5"/"q_scale": "some"/' "$case.json" > "$dir/x.json"
refuse "an unknown scale" "q_scale not understood"
sed 's/"q_scale": "dk^-0.5"/"q_scale": 0.5/' "$case.json" > "$dir/x.json"
refuse "a wrong scale" "beyond the tolerance"
exit 0
