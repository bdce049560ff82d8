#!/bin/sh
# quickstart.sh [--serve] - installs what is needed, builds, starts the daemon with a fresh data
# directory on a free loopback port, streams real input from data/ into six sessions, shows what
# they learned, kills the daemon with -9, starts it again and shows that nothing was lost.
# --serve leaves it running. Everything it makes lies in build/ and in one temporary directory.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
serve=
[ "${1:-}" = --serve ] && serve=1
. "$here/tools/packages.sh"

say() { printf '\n== %s\n' "$*"; }

say "Packages and build"
# shellcheck disable=SC2086
install_packages $BUILD_PACKAGES
build_tree "$here" "$here/build"
fwctl=$here/build/clients/fwctl/fwctl

work=$(mktemp -d "${TMPDIR:-/tmp}/fastweightd-quickstart.XXXXXX")
pid=
finish() {
    if [ -n "$pid" ]; then kill "$pid" 2>/dev/null || :; wait "$pid" 2>/dev/null || :; fi
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

start() { # the daemon prints the address it bound as its first line
    rm -f "$work/address"
    "$here/build/src/fastweightd" --listen 127.0.0.1:0 --data-dir "$work/data" --models-dir "$here/data/models" \
        >"$work/address" 2>>"$work/log" &
    pid=$!
    tries=0
    until FASTWEIGHTD_URL=$(sed -n 's,.*\(http://[^ ]*\).*,\1,p' "$work/address") && [ -n "$FASTWEIGHTD_URL" ]; do
        tries=$((tries + 1))
        if [ $tries -gt 100 ] || ! kill -0 "$pid" 2>/dev/null; then cat "$work/log" >&2; exit 1; fi
        sleep 0.1
    done
    export FASTWEIGHTD_URL
}
post() { curl -sS --fail -H 'Content-Type: application/json' -d "$3" "$FASTWEIGHTD_URL/v1/sessions/$1/$2"; }
hash_of() { curl -sS --fail "$FASTWEIGHTD_URL/v1/sessions/$1?hash=true" | jq -r .hash; }

start
say "fastweightd runs at $FASTWEIGHTD_URL"
"$fwctl" create novel bytes --config '{"preset": "text"}' >/dev/null
"$fwctl" create machine bytes --config '{"preset": "log"}' >/dev/null
"$fwctl" create week events >/dev/null
"$fwctl" create pairs associative --config '{"rule": "delta", "heads": 1, "d_k": 8, "d_v": 4}' >/dev/null
"$fwctl" create writer byte-lm >/dev/null
"$fwctl" create digits reverse >/dev/null
"$fwctl" ls

say "A novel: bits a byte fall as it reads (pieces of 64 KiB)"
"$fwctl" learn novel "$here/data/prose.txt" --progress
echo "What follows 'Prince Andrew looked at ':"
"$fwctl" predict novel "Prince Andrew looked at " --top 5
echo "Eighty sampled bytes:"
"$fwctl" generate novel 80 --temperature 0.6 --seed 7 --prefix "Prince Andrew looked at "

say "A log: learned without incidents, then read on with ten foreign lines hidden in it"
head -c 200000 "$here/data/system.log" | sed '$d' >"$work/usual.log"
"$fwctl" learn machine "$work/usual.log" --progress
tail -c 100000 "$here/data/system.log" | sed 1d |
    awk -v foreign="$here/data/foreign.log" '{ print } NR % 60 == 30 && (getline line < foreign) > 0 { print line }' >"$work/incident.log"
"$fwctl" learn machine "$work/incident.log" --lines 20 | tee "$work/ranking"
found=$(awk 'NR == FNR { foreign[substr($0, 1, 60)] = 1; next }
    { sub(/^.*line [0-9]+ +/, ""); if (substr($0, 1, 60) in foreign) n++ } END { print n + 0 }' \
    "$here/data/foreign.log" "$work/ranking")
echo "foreign lines among the 20 most surprising: $found of 10"
[ "$found" = 10 ]

say "Events: ids of a weekly schedule"
"$fwctl" learn week "$here/data/events.u16" --progress
"$fwctl" predict week --top 3

say "Pairs: write two associations, read them back"
"$here/clients/shell/learn-pairs.sh" pairs '{"keys": [[1,0,0,0,0,0,0,0],[0,1,0,0,0,0,0,0]], "values": [[1,2,3,4],[5,6,7,8]]}'
"$here/clients/shell/recall.sh" pairs '[[1,0,0,0,0,0,0,0],[0,1,0,0,0,0,0,0]]'

say "A language model of 2 M parameters whose context is a constant state: it reads a page and writes on"
head -c 4000 "$here/data/prose.txt" >"$work/page"
"$fwctl" learn writer "$work/page" --progress
"$fwctl" generate writer 160 --temperature 0.5 --seed 3
echo

say "kill -9, then start again on the same directory"
number=27182818284590452353
post digits learn "{\"text\": \"$number\"}" >/dev/null
before_hash=$(hash_of novel) before=$(post novel predict '{"top_logprobs": 3}')
kill -9 "$pid"; wait "$pid" 2>/dev/null || :
start
after_hash=$(hash_of novel) after=$(post novel predict '{"top_logprobs": 3}')
echo "hash before $before_hash"
echo "hash after  $after_hash"
[ "$before_hash" = "$after_hash" ]
[ "$before" = "$after" ] && echo "same hash, same prediction"
post digits learn '{"text": ","}' >/dev/null
recalled=$(post digits generate "{\"max_tokens\": ${#number}, \"temperature\": 0}" | jq -r .text)
echo "a model read $number before the kill and says it backwards after it: $recalled"
[ "$recalled" = "$(echo "$number" | rev)" ]

if [ -n "$serve" ]; then
    say "Left running: export FASTWEIGHTD_URL=$FASTWEIGHTD_URL; stop it with: kill $pid (data: $work/data)"
    trap - EXIT
else
    kill "$pid"; wait "$pid"; pid=
    say "Stopped cleanly"
fi
