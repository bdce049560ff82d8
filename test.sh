#!/bin/sh
# test.sh [--full] - builds out of tree and runs the tests; on a bare Debian 12 it first installs
# what is missing, with apt. --full adds: a clang build with equal bytes, AddressSanitizer and
# UBSan, ThreadSanitizer, valgrind, the fuzz targets, distcheck, a million hostile tokens for
# every rule and the long kill -9 loops.
# Its last line says `N passed, N failed`; it exits non-zero when a test failed.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
full=
case ${1:-} in
    --full) full=1 ;;
    "") ;;
    *) sed -n '2,6s/^# //p' "$0"; exit 2 ;;
esac
. "$here/tools/packages.sh"

passed=0 failed=0 started=$(date +%s)
logs=$here/build/test-logs
jobs=$(nproc)
python=$(command -v /usr/bin/python3 || command -v python3)

tally() { # PASSED FAILED
    passed=$((passed + $1))
    failed=$((failed + $2))
}

count() { grep -c -E "$1" "$2"; } # REGEX LOG

# Of `make check`: automake's summary. Of our own scripts: TAP lines.
tally_log() {
    if grep -q '^# TOTAL:' "$1"; then
        # shellcheck disable=SC2046
        tally $(awk '/^# PASS:/ { p += $3 } /^# (FAIL|ERROR|XPASS):/ { f += $3 } END { print p + 0, f + 0 }' "$1")
    else
        tally "$(count '^ok ' "$1")" "$(count '^not ok ' "$1")"
    fi
}

# stage NAME COMMAND...: runs it with its output in a log, adds its tests to the sum. A stage
# that fails without a failed test (it did not build, it crashed) is one failed test.
stage() {
    name=$1; shift
    log=$logs/$name.log
    before=$failed began=$(date +%s)
    : >"$logs/began"
    ("$@") >"$log" 2>&1
    code=$?
    tally_log "$log"
    [ $code -eq 0 ] || [ "$failed" -gt "$before" ] || tally 0 1
    if [ "$failed" -gt "$before" ]; then verdict=FAILED; else verdict=ok; fi
    printf '%-12s %-6s %5d passed so far, %d s\n' "$name" "$verdict" "$passed" $(($(date +%s) - began))
    [ $verdict = ok ] || show "$log"
}

# What went wrong, at most a few pages; the rest is in the logs.
show() {
    echo "---- $1"
    grep -E -A 30 '^(not ok|FAIL:|ERROR:|XPASS:)|error:|\*\*\*' "$1" | grep -v -E '^(ok|PASS:|SKIP:|--)' | head -n 150
    for f in "$here"/build*/test-suite.log; do
        [ -n "$(find "$f" -newer "$logs/began" 2>/dev/null)" ] || continue
        echo "---- $f"
        grep -E -A 30 '^(not ok|FAIL:|ERROR:|XPASS:)' "$f" | grep -v -E '^(ok|PASS:|SKIP:|--)' | head -n 150
    done
    echo "---- the last lines"
    tail -n 20 "$1"
    echo "----"
}

tree() { # NAME CONFIGURE_ARG...
    name=$1; shift
    build_tree "$here" "$here/$name" "$@"
}

check() { make -C "$here/$1" -j"$jobs" check; }
unit() { # BUILD [REGEX]: the unit tests, or those whose path matches
    make -C "$here/$1" -j"$jobs" check \
        TESTS="$(make -s -C "$here/$1" print-unit-tests | tr ' ' '\n' | grep -E "${2:-.}" | tr '\n' ' ')"
}

e2e() { # BUILD ARG...
    build=$1; shift
    top_builddir=$here/$build PYTHONDONTWRITEBYTECODE=1 "$python" "$here/tests/e2e/run" "$@"
}

clang_tree() { tree build-clang CC=clang --enable-werror && unit build-clang; }

asan_tree() {
    tree build-asan --enable-werror --enable-sanitizers=address,undefined && unit build-asan
}

tsan_tree() { # the learners have no threads of their own
    tree build-tsan --enable-werror --enable-sanitizers=thread &&
        unit build-tsan '/(base|store|engine|http|api|daemon)/|arena'
}

# One TAP line a unit test program; libcheck must not fork, or leaks stay unseen. Short: fewer
# rounds of the same (tests/test_main.h); ASan runs them all.
valgrind_one() {
    log=$logs/valgrind-$(basename "$1").log
    if (cd "$here/build" && env top_srcdir="$here" top_builddir=. FW_TEST_SHORT=1 CK_FORK=no CK_TIMEOUT_MULTIPLIER=50 \
        OPENBLAS_NUM_THREADS=1 CK_TAP_LOG_FILE_NAME=/dev/null valgrind -q --error-exitcode=9 \
        --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite "./$1") >"$log" 2>&1; then
        echo "ok - valgrind $1"
    else
        printf 'not ok - valgrind %s\n%s\n' "$1" "$(head -n 60 "$log")"
    fi
}

valgrind_unit() {
    running=0
    for t in $(make -s -C "$here/build" print-unit-tests); do
        valgrind_one "$t" &
        running=$((running + 1))
        [ $((running % jobs)) -ne 0 ] || wait
    done
    wait
}

valgrind_daemon() { # every endpoint once, with a daemon inside valgrind
    wrapper=$logs/fastweightd-in-valgrind
    printf '#!/bin/sh\nexec valgrind -q --error-exitcode=9 --leak-check=full %s "%s" "$@"\n' \
        '--show-leak-kinds=definite --errors-for-leak-kinds=definite' "$here/build/src/fastweightd" >"$wrapper"
    chmod +x "$wrapper"
    e2e build --daemon "$wrapper" api
}

million() { (export FW_FULL=1 && unit build memory/rules_hostile_test); }

fuzz() {
    tree build-fuzz CC=clang --enable-fuzz --enable-sanitizers=address,undefined || return 1
    n=0
    for t in $(make -s -C "$here/build-fuzz" print-fuzz-targets); do
        n=$((n + 1))
        if "$here/build-fuzz/$t" -max_total_time=30 -rss_limit_mb=4096 -print_final_stats=0 2>&1; then
            echo "ok $n - fuzz $t"
        else
            echo "not ok $n - fuzz $t"
        fi
    done
}

distcheck() { make -C "$here/build" -j"$jobs" distcheck; }

# shellcheck disable=SC2086
install_packages $BUILD_PACKAGES $TEST_PACKAGES ${full:+$FULL_PACKAGES} || exit 1
mkdir -p "$logs"
stage build tree build --enable-werror
stage check check build
if [ -n "$full" ]; then
    stage million million
    stage clang clang_tree
    stage equal-bytes e2e build --daemon2 "$here/build-clang/src/fastweightd" same_bytes
    stage asan asan_tree
    stage asan-e2e env FW_LOAD_SECONDS=60 top_builddir="$here/build-asan" "$python" \
        "$here/tests/e2e/run" --jobs "$jobs"
    stage tsan tsan_tree
    stage tsan-load env FW_LOAD_SECONDS=60 top_builddir="$here/build-tsan" "$python" \
        "$here/tests/e2e/run" load order
    stage valgrind valgrind_unit
    stage valgrind-api valgrind_daemon
    stage fuzz fuzz
    stage long e2e build --full nothing_lost coder bad_input idempotency lifetime
    stage distcheck distcheck
fi
echo "took $((($(date +%s) - started) / 60)) minutes"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
