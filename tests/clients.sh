#!/bin/sh
# Runs every script of clients/shell and every verb of fwctl once against a daemon of its own,
# as a user would. A script that this test does not run is a failure too.
set -u
src=$(cd "${top_srcdir:-.}" && pwd)
build=$(cd "${top_builddir:-.}" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/fw-clients.XXXXXX")
pid=
trap 'if [ -n "$pid" ]; then kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; fi; rm -rf "$work"' EXIT
bad=0

"$build/src/fastweightd" --listen 127.0.0.1:0 --data-dir "$work/data" --models-dir "$src/data/models" >"$work/address" 2>"$work/log" &
pid=$!
tries=0
until FASTWEIGHTD_URL=$(sed -n 's,.*\(http://[^ ]*\).*,\1,p' "$work/address") && [ -n "$FASTWEIGHTD_URL" ]; do
    tries=$((tries + 1))
    if [ $tries -gt 200 ] || ! kill -0 "$pid" 2>/dev/null; then cat "$work/log"; exit 1; fi
    sleep 0.1
done
export FASTWEIGHTD_URL

ran=
# run SCRIPT PATTERN ARGS...: must succeed and print something that matches.
run() {
    script=$1 pattern=$2; shift 2
    ran="$ran $script"
    if out=$("$src/clients/shell/$script.sh" "$@" 2>&1) && printf '%s\n' "$out" | grep -q -- "$pattern"; then
        echo "ok: $script"
    else
        echo "FAILED: $script $*: $out"; bad=1
    fi
}
ctl() { # PATTERN VERB ARGS...
    pattern=$1; shift
    if out=$("$build/clients/fwctl/fwctl" "$@" 2>&1) && printf '%s\n' "$out" | grep -q -- "$pattern"; then
        echo "ok: fwctl $1"
    else
        echo "FAILED: fwctl $*: $out"; bad=1
    fi
}

printf 'one fish\ntwo fish\nred fish\nblue fish\n' >"$work/text"
small='{"state_bytes": 1048576}'
pairs='{"rule": "delta", "heads": 1, "d_k": 2, "d_v": 2}'
run healthz ok
run readyz true
run version fastweightd
run models associative
run models '"bytes"' bytes
run create '"version": *0' s bytes "$small"
run create '"version": *0' a associative "$pairs"
run list '"a"'
run label '"colour"' s colour blue
run facts '"hash"' s
run learn '"version": *1' s "$work/text"
run learn-text '"version": *2' s 'one fish' key-1
run learn-text '"version": *2' s 'one fish' key-1
run learn-pairs residual a '{"keys": [[1, 0]], "values": [[3, 4]]}'
run recall '3.*4' a '[[1, 0]]'
run edit disturbed a '[1, 0]' '[5, 6]'
run recall '5.*6' a '[[1, 0]]'
run forget disturbed a '[1, 0]'
run recall '0.*0' a '[[1, 0]]'
run score lines s "$work/text"
run predict logprob s 'one f'
run generate tokens s 16 3
run stream DONE s 16 3
run inspect heads s
run inspect heads a
run tensors '"S"' a
run tensor '' a S "$work/S.png"
head -c 8 "$work/S.png" | grep -q PNG || { echo "FAILED: tensor: not a PNG"; bad=1; }
run snapshot '"first"' s first
run snapshots '"first"' s
run snapshot-get '' s first "$work/first.safetensors"
run restore hash s first
run export '' s "$work/s.safetensors"
run import hash s "$work/s.safetensors"
run fork '"parent"' s t
run checkpoint durable_version s
run snapshot '"one"' a one
run snapshot-patch '' a one one "$work/patch.safetensors"
run snapshot-rm '' s first
run delete '' t
run metrics fastweightd_
for f in "$src"/clients/shell/*.sh; do
    name=$(basename "$f" .sh)
    [ "$name" = common ] && continue
    case " $ran " in *" $name "*) ;; *) echo "FAILED: $name.sh is not run by this test"; bad=1 ;; esac
done

ctl '"id"' create u bytes --config "$small"
ctl 'u .*bytes' ls u
ctl '37 tokens' learn u "$work/text" --lines 2
ctl '37 tokens' score u "$work/text" --adapt
ctl 'bits' predict u 'red ' --top 3
printf '{"queries": [[1, 0]]}' >"$work/queries"
ctl values recall a "$work/queries"
printf '{"key": [1, 0], "value": [7, 8]}' >"$work/fact"
printf '{"key": [1, 0]}' >"$work/key"
ctl disturbed edit a "$work/fact"
ctl '7.*8' recall a "$work/queries"
ctl '"two"' snapshot a two
ctl '"id"' create digits reverse
printf '12345,' >"$work/digits"
ctl '6 tokens' learn digits "$work/digits"
ctl 54321 generate digits 5 --temperature 0
ctl '' patch a one two "$work/one-two.safetensors"
grep -q gamma "$work/one-two.safetensors" || { echo "FAILED: fwctl patch: no factors"; bad=1; }
if "$build/clients/fwctl/fwctl" patch a none two "$work/none" >"$work/out" 2>&1 ||
    ! grep -q snapshot_not_found "$work/out"; then
    echo "FAILED: fwctl patch from a snapshot that is not there"; bad=1
fi
ctl disturbed forget a "$work/key"
ctl '0.*0' recall a "$work/queries"
ctl . generate u 10 --temperature 0 --stop zzz
whole=$out
ctl . generate u 10 --temperature 0 --stop zzz --stream
[ "$out" = "$whole" ] || { echo "FAILED: fwctl generate --stream writes something else"; bad=1; }
if "$build/clients/fwctl/fwctl" generate nobody 10 --stream >"$work/out" 2>&1 ||
    ! grep -q session_not_found "$work/out"; then
    echo "FAILED: fwctl generate --stream from nobody"; bad=1
fi
ctl bits_per_token inspect u
ctl '"keep"' snapshot u keep
ctl hash restore u keep
ctl '' export u "$work/u.safetensors"
ctl hash import u "$work/u.safetensors"
ctl '"parent"' fork u v
ctl '' rm u v
if "$build/clients/fwctl/fwctl" predict nobody >"$work/out" 2>&1; then echo "FAILED: fwctl succeeds on nothing"; bad=1; fi
# A name is one segment of the path: it never reaches another session.
"$build/clients/fwctl/fwctl" create bystander bytes >/dev/null
if "$build/clients/fwctl/fwctl" snapshot bystander ../../bystander --rm 2>/dev/null ||
    ! "$build/clients/fwctl/fwctl" ls | grep -q '^bystander '; then
    echo "FAILED: fwctl snapshot --rm leaves its path"; bad=1
fi
"$build/clients/fwctl/fwctl" generate bystander 10 --temperature hot 2>/dev/null
[ $? = 2 ] || { echo "FAILED: fwctl takes 'hot' for a number"; bad=1; }
grep -q session_not_found "$work/out" || { echo "FAILED: fwctl does not say why"; bad=1; }

exit $bad
