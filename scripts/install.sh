#!/usr/bin/env bash
# Installs the Debian packages of scripts/packages.txt, or of the lists named, that are missing; does nothing
# when none is. As root, or through sudo where it asks for no password.
#
#   scripts/install.sh [LIST...]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

command -v dpkg-query >/dev/null ||
  fail "this is not a Debian system; install what scripts/packages.txt names with your package manager"

lists=("$@")
[ ${#lists[@]} -gt 0 ] || lists=("$root/scripts/packages.txt")
mapfile -t wanted < <(sed 's/#.*//' "${lists[@]}" | tr -s ' \t' '\n' | sed '/^$/d')
missing=()
for package in "${wanted[@]}"; do
  # A line for each architecture that the package is known for.
  status=$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null || true)
  grep -qx installed <<<"$status" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  say "packages: all ${#wanted[@]} are installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  else
    fail "these packages are missing and only root can install them: ${missing[*]}; run scripts/install.sh as root"
  fi
fi
say "packages: installing ${missing[*]} (this takes minutes)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  # A fresh machine may still be upgrading itself: wait for its lock.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 \
    -o DPkg::Lock::Timeout=300 "$@"
}
# The package lists of a fresh machine are empty or old: refresh them only when the install needs it.
if ! apt install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 </dev/null; then
  # One broken source among many fails the refresh, but not what the others offer.
  if ! { apt update || true; apt install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    fail "apt-get could not install ${missing[*]}; the lines above say why"
  fi
fi
say "packages: ${#missing[@]} installed"
