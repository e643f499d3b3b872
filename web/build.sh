#!/bin/sh
# Builds the page into FOLDER, for the controller to serve. Where npm is missing, too old or cannot
# fetch its packages, it says so and succeeds: everything else works without the page.
#
#   web/build.sh FOLDER
set -u
cd "$(dirname "$0")" || exit 1
folder=${1:?usage: web/build.sh FOLDER}

left_out() {
  echo "page: left out: $1; regatta works without it, by the command line and the API"
  exit 0
}

command -v npm >/dev/null 2>&1 || left_out "there is no npm (Debian: npm)"
node -e 'process.exit(process.versions.node.split(".")[0] >= 18 ? 0 : 1)' 2>/dev/null ||
  left_out "node is older than 18"
# The packages are those of the lock file; they are fetched again when it has changed.
if ! cmp -s package-lock.json node_modules/.fetched-lock; then
  timeout 120 npm ci --ignore-scripts --no-audit --no-fund --loglevel=error \
    --fetch-retries=1 --fetch-timeout=20000 </dev/null || left_out "npm ci failed"
  cp package-lock.json node_modules/.fetched-lock
fi
exec node_modules/.bin/vite build --logLevel warn --outDir "$folder" --emptyOutDir </dev/null
