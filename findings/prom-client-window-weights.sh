#!/bin/sh
# The first window of a prom-client summary counts early samples several times, and late ones once.
#
# Version: prom-client 15.1.3 with tdigest 0.1.3 of npm, on Node.js 20 or later. Needs no root.
# Behaviour: a summary with maxAgeSeconds and ageBuckets has one t-digest for each part of the window, and
# adds each sample to all of them. They begin as one and the same object, so that a sample of the first of
# five parts is in it five times and one of the last part once. Until the first window has passed, quantiles
# lean to how the run began: of a fifth of all samples, the last, one in fifteen is left. The count is right.
# The script sets the clock, so that 10 minutes take no time.
# Seen, of 10 samples a second for 599 s, from 10 to 11 us, in the last 120 s from 1000 to 1001 us:
#   maxAgeSeconds: 600, ageBuckets: 5    p90 10.96, count 5990
#   without them                         p90 1000.5, count 5990
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
command -v npm >/dev/null || cannot "npm is missing"
node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || cannot "Node.js is older than 20"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
echo '{ "private": true, "overrides": { "tdigest": "0.1.3" } }' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts prom-client@15.1.3 ||
    cannot "prom-client 15.1.3 is not to be had"

cat >observe.js <<'END'
const { Summary, register } = require("prom-client");

let now = 0;
Date.now = () => now;
const shared = { help: "latency in us", percentiles: [0.5, 0.9] };
const window = new Summary({ name: "window", ...shared, maxAgeSeconds: 600, ageBuckets: 5 });
const whole = new Summary({ name: "whole", ...shared });
for (let second = 1; second < 600; second++) {
    for (let i = 0; i < 10; i++) {
        const sample = (second < 480 ? 10 : 1000) + (second * 10 + i) % 1000 / 1000;
        now = second * 1000 + i * 100;
        window.observe(sample);
        whole.observe(sample);
    }
}
register.metrics().then((page) => console.log(page));
END
node observe.js >page.txt || fail "the summaries are refused"
grep -v '^#' page.txt

# Quantile 0.9 of the summary $1, in whole microseconds.
high() { sed -n "s/^$1{quantile=\"0.9\"} \([0-9]*\).*/\1/p" page.txt; }

for name in window whole; do
    grep -q "^${name}_count 5990\$" page.txt || fail "the count of $name is another"
done
[ "$(high whole)" = 1000 ] || fail "without a window, quantile 0.9 is $(high whole)"
[ "$(high window)" = 10 ] || fail "of the first window, quantile 0.9 is $(high window)"
echo "ok: a fifth of the samples is over 1000 us, and quantile 0.9 of the first window is $(high window) us"
