#!/usr/bin/env bash
# Installs the peers that Weir is measured against: `bench/setup.sh DIR` puts into DIR/bin what apt does not have.
#
# A peer that cannot be installed is named and left out; bench/run.py then prints its rows as not measured.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=${1:?usage: bench/setup.sh DIR}
export PATH=$tools/bin:$PATH

# Fixed, so that two runs of the bench compare the same programs.
oha=1.16.0
hey=v0.1.5

.ci/setup cc nginx openssl wrk h2load

skip() { echo "bench: $1 could not be installed; its rows are left out" >&2; }

command -v oha >/dev/null ||
  { command -v cargo >/dev/null && cargo install --locked --root "$tools" "oha@$oha"; } </dev/null || skip oha
command -v hey >/dev/null ||
  { command -v go >/dev/null && GOBIN=$tools/bin go install "github.com/rakyll/hey@$hey"; } </dev/null || skip hey
for peer in wrk h2load nginx; do
  command -v "$peer" >/dev/null || [ -x "/usr/sbin/$peer" ] || skip "$peer"
done
