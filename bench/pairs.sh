#!/bin/sh
# pairs [--json] [--seconds N] - one pair a request: 4 heads of 64, a safetensors body,
# durability=async, 64 connections over 8 sessions of the delta rule, against redis-server's SET
# of as many bytes from 64 connections (through a Unix socket), in turn. Needs wrk and redis.
# cpu_us: processor time of the server for one request. The last line is the median of the
# ratios of the rates.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
daemon=${FASTWEIGHTD:-$here/../src/fastweightd}
json='' seconds=3 rounds=3 sessions=8
while [ $# -gt 0 ]; do
    case $1 in
        --json) json=1 ;;
        --seconds) seconds=$2; shift ;;
        *) sed -n '2,6s/^# //p' "$0"; exit 2 ;;
    esac
    shift
done
for tool in wrk redis-server redis-benchmark; do
    command -v $tool >/dev/null || { echo "pairs: $tool is not installed"; exit 77; }
done

tmp=$(mktemp -d)
pids=
finish() {
    for p in $pids; do kill "$p" 2>/dev/null || true; done
    for p in $pids; do wait "$p" 2>/dev/null || true; done
    rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 1' INT TERM

wait_for() { # COMMAND...
    n=0
    until "$@" >/dev/null 2>&1; do
        n=$((n + 1)); [ $n -lt 100 ] || { cat "$tmp/err"; exit 1; }
        sleep 0.1
    done
}
"$daemon" --listen 127.0.0.1:0 --data-dir "$tmp/data" --log-level warning \
    --max-connections 512 >"$tmp/out" 2>"$tmp/err" &
daemon_pid=$!
pids=$daemon_pid
redis-server --port 0 --unixsocket "$tmp/redis" --save '' --appendonly no --dir "$tmp" \
    >/dev/null 2>>"$tmp/err" &
redis_pid=$!
pids="$pids $redis_pid"
wait_for grep -q listening "$tmp/out"
wait_for redis-cli -s "$tmp/redis" ping
url=$(sed 's/.*http/http/' "$tmp/out")
for i in $(seq 0 $((sessions - 1))); do
    curl -sS --fail -o "$tmp/got" -H 'Content-Type: application/json' "$url/v1/sessions" \
        -d "{\"id\": \"s$i\", \"model\": \"associative\", \"config\": {\"rule\": \"delta\"}}"
done

# Elements between 1/16 and 1/8 in length, of both signs: a key's square stays below 1.
cat >"$tmp/pairs.lua" <<LUA
local head = {["Content-Type"] = "application/vnd.safetensors"}
local json = '{"keys":{"dtype":"F32","shape":[1,4,64],"data_offsets":[0,1024]},' ..
    '"values":{"dtype":"F32","shape":[1,4,64],"data_offsets":[1024,2048]}}'
json = json .. string.rep(" ", (8 - #json % 8) % 8)
local requests, n = {}, 64
for i = 0, n - 1 do
    local data = {}
    for j = 1, 512 do
        data[j] = string.char(math.random(0, 255), math.random(0, 255), 128 + math.random(0, 127),
                              math.random(0, 1) * 128 + 61)
    end
    requests[i] = wrk.format("POST", "/v1/sessions/s" .. i % $sessions .. "/learn?durability=async",
                             head, string.char(#json, 0, 0, 0, 0, 0, 0, 0) .. json ..
                             table.concat(data))
end
local i = -1
function request()
    i = (i + 1) % n
    return requests[i]
end
LUA

ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
cpu_us() { # PID TICKS_BEFORE REQUESTS
    awk -v t=$(($(ticks "$1") - $2)) -v hz="$(getconf CLK_TCK)" -v n="$3" \
        'BEGIN { printf "%.2f", t / hz * 1e6 / n }'
}
for _ in $(seq $rounds); do
    before=$(ticks $daemon_pid)
    wrk -t1 -c64 -d"${seconds}s" -s "$tmp/pairs.lua" "$url" >"$tmp/wrk"
    if grep -q 'Non-2xx\|Socket errors' "$tmp/wrk"; then cat "$tmp/wrk" >&2; exit 1; fi
    ours=$(awk '/^Requests\/sec/ { print $2 }' "$tmp/wrk")
    ours_us=$(cpu_us $daemon_pid "$before" "$(awk '/ requests in / { print $1 }' "$tmp/wrk")")
    before=$(ticks $redis_pid)
    redis=$(redis-benchmark -s "$tmp/redis" -c 64 -n $((seconds * 30000)) -t set -d 2048 --csv |
        awk -F'"' '/SET/ { print $4 }')
    redis_us=$(cpu_us $redis_pid "$before" $((seconds * 30000)))
    echo "$ours $ours_us $redis $redis_us"
done | awk '{ print $1 / $3, $0 }' | sort -n >"$tmp/rounds"
# shellcheck disable=SC2046
set -- $(sed -n "$(((rounds + 1) / 2))p" "$tmp/rounds")
form='pairs pairs_per_s=%s cpu_us=%s redis_set_per_s=%s redis_cpu_us=%s\n'
[ -z "$json" ] || form='{"name":"pairs","pairs_per_s":%s,"cpu_us":%s,"redis_set_per_s":%s,"redis_cpu_us":%s}\n'
# shellcheck disable=SC2059
printf "$form" "$2" "$3" "$4" "$5"
printf 'pairs ratio=%.3f\n' "$1"
