# shellcheck shell=bash
# Sourced by the other scripts: where the tree and the build are, and how to configure and build.
# Uses and sets: root (the checkout).

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '== %s\n' "$*"; }
fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# A folder for the build of a preset: build/PRESET, or one of the user's own when the checkout
# belongs to somebody else.
build_folder() {
  local folder="$root/build/$1"
  if mkdir -p "$folder" 2>/dev/null && [ -w "$folder" ] &&
     { [ ! -e "$folder/CMakeCache.txt" ] || [ -w "$folder/CMakeCache.txt" ]; }; then
    echo "$folder"
  else
    echo "${TMPDIR:-/tmp}/regatta-build-$(id -u)/$1"
  fi
}

# Compilers at once: one a core, fewer when memory is short (a libtorch source takes up to 2 GiB).
jobs() {
  local cores memory_gib
  cores=$(nproc)
  memory_gib=$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  local fit=$((memory_gib / 2))
  [ "$fit" -ge 1 ] || fit=1
  echo $((cores < fit ? cores : fit))
}

# configure PRESET FOLDER [CMAKE ARGUMENT...]
configure() {
  local preset=$1 folder=$2
  shift 2
  # A home that cannot be written (a service user) leaves ccache without a folder.
  [ -w "${CCACHE_DIR:-${HOME:-/nonexistent}}" ] || export CCACHE_DISABLE=1
  mkdir -p "$folder" || fail "cannot write $folder; give a writable TMPDIR"
  if ! cmake -S "$root" --preset "$preset" -B "$folder" "$@" >"$folder/configure.log" 2>&1; then
    cat "$folder/configure.log" >&2
    fail "cmake could not configure $folder; the lines above say why"
  fi
}

# build FOLDER [TARGET...]
build() {
  local folder=$1
  shift
  # One line that changes on a terminal; elsewhere only what went wrong.
  local quiet=(--quiet)
  [ ! -t 1 ] || quiet=()
  NINJA_STATUS='[%f of %t, %e s] ' ninja -C "$folder" -j "$(jobs)" "${quiet[@]}" "$@"
}
