#!/usr/bin/env bash
# Fetches Debian's kernel for the guests of tests/guest into a folder: the image and the modules that
# the tests load, 30 MiB. Nothing is installed: this machine goes on starting with its own kernel.
#
#   scripts/guest-kernel.sh [FOLDER]      build/dev/guest-kernel when none is named
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

folder=${1:-$(build_folder dev)/guest-kernel}
if compgen -G "$folder/boot/vmlinuz-*" >/dev/null; then
  say "guest kernel: $folder"
  exit 0
fi
# The package that the meta package stands for: it has the name of its version.
package=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image/ {print $2; exit}')
[ -n "$package" ] || fail "apt knows no linux-image-amd64; run apt-get update"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say "guest kernel: fetching $package"
(cd "$work" && apt-get -o APT::Sandbox::User=root -o Acquire::Retries=3 download "$package" >"$work/log" 2>&1) ||
  { cat "$work/log" >&2; fail "apt-get could not download $package; run apt-get update"; }
dpkg-deb --fsys-tarfile "$work"/*.deb | tar -x -C "$work" --wildcards ./boot/vmlinuz-* \
  './lib/modules/*/modules.builtin' './lib/modules/*/kernel/drivers/infiniband/*' \
  './lib/modules/*/kernel/drivers/net/veth.ko' './lib/modules/*/kernel/net/ipv[46]/*' \
  './lib/modules/*/kernel/fs/configfs/*' './lib/modules/*/kernel/crypto/crc32_generic.ko'
mkdir -p "$folder"
# The image last: it says that the rest is there.
cp -r "$work/lib" "$folder/"
cp -r "$work/boot" "$folder/"
