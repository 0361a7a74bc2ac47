#!/bin/sh
# prom-client counts samples beyond the last bound as at most -1, if -1 is a bound of the histogram.
#
# Version: prom-client 15.1.3 of npm, on Node.js 20 or later. Needs no root.
# Behaviour: the lateness of a timer that can be early takes bounds below 0. A sample beyond all bounds is
# found at the place -1, which is then taken for the bound -1: it is in the row "-1" and all rows above. No
# sample is beyond the last bound, quantiles of the rows have the longest samples as the earliest, and a limit
# is met that was missed. The sum has the sample at its length. Bounds without -1 are counted right.
# Seen, of the samples -3, 0, 1, 4, 1000 and 2000 us:
#   buckets: [-5, -1, 0, 1, 5]    le="-1" 3, le="0" 4, le="1" 5, le="5" 6, le="+Inf" 6, sum 3002
#   buckets: [-5, -2, 0, 1, 5]    le="-2" 1, le="0" 2, le="1" 3, le="5" 4, le="+Inf" 6, sum 3002
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
command -v npm >/dev/null || cannot "npm is missing"
node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || cannot "Node.js is older than 20"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
echo '{ "private": true }' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts prom-client@15.1.3 ||
    cannot "prom-client 15.1.3 is not to be had"

cat >observe.js <<'END'
const { Histogram, register } = require("prom-client");

for (const [name, buckets] of [["one", [-5, -1, 0, 1, 5]], ["two", [-5, -2, 0, 1, 5]]]) {
    const lateness = new Histogram({ name, help: "lateness in us", buckets });
    for (const sample of [-3, 0, 1, 4, 1000, 2000]) lateness.observe(sample);
}
register.metrics().then((page) => console.log(page));
END
node observe.js >page.txt || fail "the samples or the bounds are refused"
grep -v '^#' page.txt

# The rows of the histogram $1, from the lowest bound on.
rows() { sed -n "s/^$1_bucket{.*} //p" page.txt | tr '\n' ' '; }

[ "$(rows two)" = "0 1 2 3 4 6 " ] || fail "with the bound -2, the rows are $(rows two)"
[ "$(rows one)" = "0 3 4 5 6 6 " ] || fail "with the bound -1, the rows are $(rows one)"
grep -q '^one_sum 3002$' page.txt || fail "the sum is another"
echo "ok: samples of 1000 and 2000 us are counted as at most -1 us, and none as beyond 5 us"
