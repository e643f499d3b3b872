#!/usr/bin/env bash
# Fetches NVIDIA's CUDA runtime library as Debian packages it (non-free) into a folder, with its licence beside it,
# for the tests of programs that use it. Nothing is installed, and what apt knows of this machine stays as it is.
# Where it cannot be had this says so, and the tests that want it are skipped.
#
#   scripts/cuda-runtime.sh [FOLDER]      build/dev/third_party/cuda-runtime when none is named
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

package=libcudart11.0
folder=${1:-$(build_folder dev)/third_party/cuda-runtime}
if [ -e "$folder/libcudart.so.11.0" ]; then
  say "CUDA runtime: $folder"
  exit 0
fi
skip() {
  say "no CUDA runtime: $*; its tests will be skipped"
  exit 0
}
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip "this is not a Debian system"
[ "$(dpkg --print-architecture)" = amd64 ] || skip "it is for amd64 alone"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/parts" "$work/lists/partial" "$work/cache/archives/partial" "$work/state"

# The machine's own sources of Debian, with non-free added.
for source in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
  [ -r "$source" ] && grep -q 'debian-archive-keyring\|deb .*debian' "$source" || continue
  case $source in
    *.sources) sed 's/^Components:.*/Components: main non-free/' "$source" >"$work/parts/$(basename "$source")" ;;
    *.list) sed 's/ main\b.*/ main non-free/' "$source" >"$work/parts/$(basename "$source")" ;;
  esac
done
apt() {
  (cd "$work" && apt-get -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/parts" -o Dir::State="$work/state" \
    -o Dir::State::Lists="$work/lists" -o Dir::State::status=/var/lib/dpkg/status -o Dir::Cache="$work/cache" \
    -o APT::Sandbox::User=root -o Acquire::Retries=2 -o Acquire::http::Timeout=20 "$@" >"$work/log" 2>&1 </dev/null)
}
say "CUDA runtime: fetching $package"
apt update || true # a source that fails is one of many
apt download "$package" || skip "apt-get could not download $package"
dpkg-deb -x "$work"/"$package"*.deb "$work/root"
mkdir -p "$folder"
cp "$work/root/usr/share/doc/$package/copyright" "$folder/"
cp "$work"/root/usr/lib/*/libcudart.so.11.*.* "$folder/"
# The name last: it says that the rest is there.
ln -s "$(basename "$folder"/libcudart.so.11.*.*)" "$folder/libcudart.so.11.0"
say "CUDA runtime: $folder, under NVIDIA's licence ($folder/copyright)"
