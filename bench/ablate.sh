#!/bin/sh
# What each part of the bytes learner is worth: the learner is built as it is, and once per part
# with that part taken out by an edit of a copy of its source; bench/stream runs on the files.
# One row per build: name, bits per byte of each file, KB/s of CPU time over all files.
#
#     bench/ablate.sh BUILD_DIR [--only NAME] [--state-bytes N] FILE...
#
# BUILD_DIR is a build in which `make bench-programs` has run. CC and CFLAGS may be given.
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
shift
only='' state_bytes=4194304
while :; do
  case ${1-} in
    --only) only=$2; shift 2 ;;
    --state-bytes) state_bytes=$2; shift 2 ;;
    *) break ;;
  esac
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
flags="${CFLAGS:--O2} -ffp-contract=off -fno-math-errno -fno-trapping-math -w"
flags="$flags -I$build -I$source/include -I$work"
archives=
for a in libtensor.a libnum.a libnum_v3.a libbase.a; do
  [ ! -f "$build/src/$a" ] || archives="$archives $build/src/$a"
done

begin() { # NAME: a fresh copy
  name=$1 skip=
  [ -z "$only" ] || [ "$only" = "$name" ] || skip=1
  [ -n "$skip" ] || { rm -f "$work"/*; cp "$source"/src/stream/*.[ch] "$work"; rm "$work"/*_test.c; }
}

edit() { # FILE SED-EXPRESSION: it must change something
  [ -z "$skip" ] || return 0
  sed "$2" "$work/$1" >"$work/edited"
  ! cmp -s "$work/edited" "$work/$1" || { echo "$name: nothing to edit in $1" >&2; exit 1; }
  mv "$work/edited" "$work/$1"
}

run() { # FILE...: builds and prints the row
  [ -z "$skip" ] || return 0
  # shellcheck disable=SC2086
  ${CC:-cc} $flags -march=x86-64-v3 -DFW_LEVEL_V3 -c "$work/node.c" -o "$work/node_v3.o"
  # shellcheck disable=SC2086
  ${CC:-cc} $flags "$source/bench/stream.c" "$work"/*.c "$work/node_v3.o" $archives \
    -lopenblas -lxxhash -lm -lpthread -o "$work/stream"
  printf '%-12s' "$name"
  "$work/stream" --alone --state-bytes "$state_bytes" "$@" | awk '
    NF == 5 { printf " %s", $4; n++; s += 1 / $5 } END { if (!n) exit 1; printf "  %.0f\n", n / s }'
}

begin all; run "$@"

# One head less: its line in context.c and its place in the count.
head_less() { # NAME SALT WHAT COUNT
  begin "-$1"
  edit context.c "/= mix($2, /d"
  edit context.h "s/\(#define CONTEXT_$3  *\)$4/\1$(($4 - 1))/"
}
head_less order1 1 HEADS 8; run "$@"
head_less order2 2 HEADS 8; run "$@"
head_less order3 3 HEADS 8; run "$@"
head_less order4 4 HEADS 8; run "$@"
head_less word 8 HEADS 8; run "$@"
head_less above 18 HEADS 8; run "$@"
head_less shape8 19 HEADS 8; run "$@"
head_less coarse 20 HEADS 8; run "$@"
head_less order5 5 RUNS 4; run "$@"
head_less skip 10 RUNS 4; run "$@"
head_less shape 14 RUNS 4; run "$@"
head_less field 15 RUNS 4; run "$@"

no_copy='(struct core_guess){ 0 };'
begin -match; edit context.c "s/copy\[0\] = .*/copy[0] = $no_copy/"; run "$@"
begin -above_copy; edit context.c "s/copy\[1\] = .*/copy[1] = $no_copy/"; run "$@"
begin -copies; edit context.c "s/copy\[[01]\] = .*/&/; s/copy\[\([01]\)\] = .*/copy[\1] = $no_copy/"
run "$@"

for k in 0 1 2; do # a gate that says nothing, the others sharing its part
  begin "-gate$k"
  edit node.c "s/= clip(dot(w, n->x), D_MAX)/= k == $k ? 0 : clip(dot(w, n->x), D_MAX)/"
  edit core.c 's,1.0F / CORE_GATES,1.0F / (CORE_GATES - 1),'
  run "$@"
done
begin -final; edit bytes.c 's/eta_final = .*/eta_final = 0,/'; run "$@"
begin -linear; edit node.c 's/= linear(p).*/= 0;/'; run "$@"
begin -cut; edit tables.c 's/if (n <= 2)/if (1)/'; run "$@"
begin -maps; edit bytes.c 's/map_limit = .*/map_limit = 0,/'
edit tables.c 's,65536 / (n + 1.5),65536 / 64.0,'; run "$@"
begin -ageing; edit bytes.c 's/\.age = .*/.age = 0,/'; run "$@"
# Checks of two bits: the four rows of a line are found by hash alone, nothing is ever evicted.
begin -checks; edit rows.h 's/= (uint8_t)(hash \* 0x9E3779B1u >> 24)/= 1 + (hash * 0x9E3779B1u >> 30)/'
run "$@"
