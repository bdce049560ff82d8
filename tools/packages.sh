# packages.sh - sourced by quickstart.sh and test.sh: installs what is missing, with apt.
# Only Debian's own packages; nothing else is ever downloaded.
BUILD_PACKAGES="gcc make autoconf automake pkg-config libc6-dev libmicrohttpd-dev libjansson-dev
libopenblas-dev liblapacke-dev libsqlite3-dev libinih-dev libsystemd-dev libcurl4-openssl-dev
libxxhash-dev libpng-dev libpcre2-dev check curl jq ca-certificates"
TEST_PACKAGES="python3 procps"
FULL_PACKAGES="clang libclang-rt-14-dev clang-format valgrind systemd xz-utils"

# install_packages NAME...: only those that dpkg does not know as installed.
install_packages() {
    missing=
    for p in "$@"; do
        dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $p"
    done
    [ -n "$missing" ] || return 0
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    echo "installing:$missing"
    export DEBIAN_FRONTEND=noninteractive
    $as_root apt-get update -qq
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

# build_tree SOURCE BUILD [CONFIGURE_ARG...]: out of tree, quietly; says where the log is on failure.
build_tree() {
    src=$1; out=$2; shift 2
    mkdir -p "$out"
    log=$out/build.log
    if ! { [ -x "$src/configure" ] && [ "$src/configure" -nt "$src/configure.ac" ] || (cd "$src" && autoreconf -fi); } >"$log" 2>&1 ||
       ! (cd "$out" && { [ -f Makefile ] || "$src/configure" "$@"; } && make -j"$(nproc)") >>"$log" 2>&1; then
        tail -n 40 "$log" >&2
        echo "build failed; the whole log is $log" >&2
        return 1
    fi
}
