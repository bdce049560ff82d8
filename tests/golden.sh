#!/bin/sh
# Every golden case at both CPU levels; a folder without cases and an unknown rule must fail.
check=$top_builddir/tests/golden_check
"$check" "$top_srcdir/tests/golden" || exit 1
FW_CPU_LEVEL=base "$check" "$top_srcdir/tests/golden" || exit 1

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
if "$check" "$dir"; then echo "an empty folder passed"; exit 1; fi
case=$top_srcdir/tests/golden/04_delta_rule_a
sed 's/"rule": "delta_rule"/"rule": "delta_role"/' "$case.json" > "$dir/x.json"
cp "$case.safetensors" "$dir/x.safetensors"
if "$check" "$dir"; then echo "an unknown rule passed"; exit 1; fi
sed 's/"q_scale": "dk^-0.5"/"q_scale": 0.5/' "$case.json" > "$dir/x.json"
if "$check" "$dir"; then echo "a wrong scale passed"; exit 1; fi
exit 0
