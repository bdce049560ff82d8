#!/bin/sh
# http [--json] [--seconds N] - HTTP beside others on the same cores, and learning over HTTP
# beside the learner alone. Needs wrk; nginx and redis are left out where they are absent.
#   get    GET of a session's facts, 64 connections, against nginx with a static file of equal
#          size (goal 0.9) and redis-server's GET
#   async  learn of 1 KB text bodies, durability=async, 64 connections over 8 sessions, against
#          the learner in a process of its own with as many threads as cores (goal 0.9)
#   commit the same with durability=commit, against async (goal 0.85)
# cpu_us: processor time of the server for one request (or 1 KB), which other load on the
# machine disturbs less than it does the rates. The last line is the smallest of the ratios.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
daemon=${FASTWEIGHTD:-$here/../src/fastweightd}
text=${FW_BENCH_TEXT:-@data@/prose.txt}
json='' seconds=3 rounds=3 sessions=8 state=1048576
while [ $# -gt 0 ]; do
    case $1 in
        --json) json=1 ;;
        --seconds) seconds=$2; shift ;;
        *) sed -n '2,11s/^# //p' "$0"; exit 2 ;;
    esac
    shift
done
command -v wrk >/dev/null || { echo "http: wrk is not installed"; exit 77; }

tmp=$(mktemp -d)
pids=
finish() {
    for p in $pids; do kill "$p" 2>/dev/null || true; done
    for p in $pids; do wait "$p" 2>/dev/null || true; done
    rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 1' INT TERM

say() { # NAME KEY VALUE KEY VALUE ...: one result, as words or as JSON
    name=$1; shift
    if [ -n "$json" ]; then
        printf '{"name":"%s"' "$name"
        while [ $# -gt 0 ]; do printf ',"%s":%s' "$1" "$2"; shift 2; done
        printf '}\n'
    else
        printf '%-7s' "$name"
        while [ $# -gt 0 ]; do printf ' %s=%s' "$1" "$2"; shift 2; done
        printf '\n'
    fi
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", (b > 0 ? a / b : 0) }'; }
mean() { awk '{ n += $1 } END { printf "%.5g", n / NR }' "$tmp/$1"; } # FILE
free_port() { awk -v s="$$$1" 'BEGIN { srand(s + systime()); print 20000 + int(rand() * 12000) }' 2>/dev/null ||
    echo $((20000 + ($$ * 7 + $1 * 131) % 12000)); }

start_daemon() {
    "$daemon" --listen 127.0.0.1:0 --data-dir "$tmp/data" --log-level warning \
        --max-connections 512 >"$tmp/out" 2>"$tmp/err" &
    daemon_pid=$!
    pids="$pids $daemon_pid"
    n=0
    until grep -q listening "$tmp/out"; do
        n=$((n + 1)); [ $n -lt 100 ] || { cat "$tmp/err"; exit 1; }
        sleep 0.1
    done
    url=$(sed 's/.*http/http/' "$tmp/out")
}

# Both try some ports: nobody promises that one stays free.
answers() { curl -s -o "$tmp/got" "$1" 2>/dev/null; }
start_nginx() {
    command -v nginx >/dev/null || return 1
    cp "$tmp/facts.json" "$tmp/file.json"
    chmod 755 "$tmp"
    for try in 1 2 3 4 5; do
        port=$(free_port "$try")
        {
            [ "$(id -u)" != 0 ] || echo "user root;"
            echo "worker_processes $(nproc); daemon off; pid $tmp/nginx.pid; error_log $tmp/nginx.log;"
            echo "events { worker_connections 1024; }"
            echo "http { access_log off; default_type application/json; keepalive_requests 1000000000;"
            for d in client_body proxy fastcgi uwsgi scgi; do echo "${d}_temp_path $tmp/$d;"; done
            echo "server { listen 127.0.0.1:$port; root $tmp; } }"
        } >"$tmp/nginx.conf"
        nginx -c "$tmp/nginx.conf" 2>/dev/null &
        p=$!
        sleep 0.5
        if kill -0 "$p" 2>/dev/null && answers "http://127.0.0.1:$port/file.json" &&
           cmp -s "$tmp/got" "$tmp/file.json"; then
            pids="$pids $p" nginx_url=http://127.0.0.1:$port/file.json
            nginx_pids="$p $(cat "/proc/$p/task/$p/children")"
            return 0
        fi
        kill "$p" 2>/dev/null || true
    done
    return 1
}
start_redis() {
    command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null || return 1
    for try in 6 7 8 9; do
        redis_port=$(free_port "$try")
        redis-server --port "$redis_port" --bind 127.0.0.1 --save '' --appendonly no \
            --dir "$tmp" >/dev/null 2>&1 &
        p=$!
        sleep 0.5
        if kill -0 "$p" 2>/dev/null; then pids="$pids $p"; return 0; fi
    done
    return 1
}

ticks() { for p in "$@"; do cat "/proc/$p/stat"; done | awk '{ n += $14 + $15 } END { print n }'; }
# NAME "PID..." WRK_ARG...: adds to NAME.rate and NAME.cpu; every reply must be a success.
rate() {
    name=$1 of=$2
    shift 2
    # shellcheck disable=SC2086
    before=$(ticks $of)
    wrk -t1 -c64 -d"${seconds}s" "$@" >"$tmp/wrk"
    if grep -q 'Non-2xx\|Socket errors' "$tmp/wrk"; then cat "$tmp/wrk" >&2; exit 1; fi
    awk '/^Requests\/sec/ { print $2 }' "$tmp/wrk" >>"$tmp/$name.rate"
    # shellcheck disable=SC2086
    awk -v t=$(($(ticks $of) - before)) -v hz="$(getconf CLK_TCK)" \
        '/ requests in / { print t / hz * 1e6 / $1 }' "$tmp/wrk" >>"$tmp/$name.cpu"
}

get() {
    curl -sS "$url/v1/sessions/s0" >"$tmp/facts.json"
    bytes=$(($(wc -c <"$tmp/facts.json")))
    have_nginx=; start_nginx && have_nginx=1
    have_redis=; start_redis && have_redis=1
    for _ in $(seq $rounds); do
        rate get "$daemon_pid" "$url/v1/sessions/s0"
        [ -z "$have_nginx" ] || rate nginx "$nginx_pids" "$nginx_url"
        [ -z "$have_redis" ] || redis-benchmark -p "$redis_port" -c 64 -n $((seconds * 30000)) \
            -t get -d "$bytes" --csv | awk -F'"' '/GET/ { print $4 }' >>"$tmp/redis.rate"
    done
    get_ratio=
    set -- requests_per_s "$(mean get.rate)" cpu_us "$(mean get.cpu)" bytes "$bytes"
    if [ -n "$have_redis" ]; then set -- "$@" redis_per_s "$(mean redis.rate)"; fi
    if [ -n "$have_nginx" ]; then
        get_ratio=$(ratio "$(mean get.rate)" "$(mean nginx.rate)")
        set -- "$@" nginx_per_s "$(mean nginx.rate)" nginx_cpu_us "$(mean nginx.cpu)" \
            ratio "$get_ratio"
    fi
    say get "$@"
}

lua() { # DURABILITY: 1 KB pieces of the text, over the sessions in turn
    cat >"$tmp/$1.lua" <<LUA
local file = io.open("$text", "rb")
local text = file:read("*a")
file:close()
local requests, n = {}, math.floor(#text / 1024)
local head = {["Content-Type"] = "text/plain"}
for i = 0, n - 1 do
    requests[i] = wrk.format("POST", "/v1/sessions/s" .. i % $sessions .. "/learn?durability=$1",
                             head, text:sub(i * 1024 + 1, i * 1024 + 1024))
end
local i = -1
function request()
    i = (i + 1) % n
    return requests[i]
end
LUA
}

learn() {
    lua async
    lua commit
    for _ in $(seq $rounds); do
        rate async "$daemon_pid" -s "$tmp/async.lua" "$url"
        "$here/http_learner" "$text" "$seconds" $sessions $state >"$tmp/alone"
        awk '{ print $1 }' "$tmp/alone" >>"$tmp/alone.rate"
        awk '{ print $2 }' "$tmp/alone" >>"$tmp/alone.cpu"
        rate commit "$daemon_pid" -s "$tmp/commit.lua" "$url"
    done
    async_ratio=$(ratio "$(mean async.rate)" "$(mean alone.rate)")
    commit_ratio=$(ratio "$(mean commit.rate)" "$(mean async.rate)")
    say async kb_per_s "$(mean async.rate)" cpu_us "$(mean async.cpu)" \
        alone_kb_per_s "$(mean alone.rate)" alone_cpu_us "$(mean alone.cpu)" ratio "$async_ratio"
    say commit kb_per_s "$(mean commit.rate)" cpu_us "$(mean commit.cpu)" ratio "$commit_ratio"
}

start_daemon
for i in $(seq 0 $((sessions - 1))); do
    curl -sS --fail -o "$tmp/got" -H 'Content-Type: application/json' "$url/v1/sessions" \
        -d "{\"id\": \"s$i\", \"model\": \"bytes\", \"config\": {\"state_bytes\": $state}}"
done
get
learn
least=$(printf '%s\n' $get_ratio "$async_ratio" "$commit_ratio" | sort -n | head -n 1)
if [ -n "$json" ]; then say http ratio "$least"; else echo "http ratio=$least"; fi
