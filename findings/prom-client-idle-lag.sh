#!/bin/sh
# prom-client states a lag of 10 ms for an idle event loop, and a percentile 90 of as much for a blocked one.
#
# Version: prom-client 15.1.3 of npm; seen with Node.js 20. Needs no root.
# Behaviour: Node.js measures the time from one tick of its timer to the next, and prom-client prints that as
# the lag without taking off the interval, 10 ms unless eventLoopMonitoringPrecision is set: mean, minimum and
# percentiles are 10 ms too long, and with an interval of 50 ms they are 50 ms. While the loop is blocked,
# there are no ticks: a block of any length is one sample, so that percentile 90 has nothing of a loop that
# was blocked half of the time. The metric "nodejs_eventloop_lag_seconds" is measured otherwise.
# Seen, in 2 s, in milliseconds:
#   idle                    min 10.1, mean 10.3, p50 10.1, p99 13.9, max 14.7
#   idle, precision 50      min 50.1, mean 50.5, p50 50.1, p99 53.8, max 53.8
#   blocked once for 1 s    min 10.1, mean 21.6, p50 10.1, p90 13.6, max 1013.4
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

cat >lag.js <<'END'
const { collectDefaultMetrics, register } = require("prom-client");

const [precision, blocked] = process.argv.slice(2).map(Number);
collectDefaultMetrics({ eventLoopMonitoringPrecision: precision });
setTimeout(() => {
    const end = performance.now() + blocked;
    while (performance.now() < end);
}, 500);
setTimeout(async () => {
    console.log((await register.metrics()).replace(/^(?!nodejs_eventloop_lag_).*\n/gm, ""));
    process.exit();
}, 2000);
END
node --version
# Keeps the page of 2 s with the interval $1 and a block of $2 ms as $3, and prints its milliseconds.
measure() {
    node lag.js "$1" "$2" >"$3" || fail "the page is not written"
    echo "precision $1, blocked $2 ms: $(awk '{ sub(/.*lag_/, "", $1); sub(/_sec.*/, "", $1)
        printf "%s %.1f ", $1, $2 * 1000 }' "$3")"
}
# Whether the statistic $2 of the page $1 is from $3 to $4 ms.
within() {
    awk -v name="nodejs_eventloop_lag_$2_seconds" -v low="$3" -v high="$4" '
        $1 == name { ms = $2 * 1000; found = ms >= low && ms <= high }
        END { exit !found }' "$1"
}

measure 10 0 idle
measure 50 0 coarse
measure 10 1000 blocked
for statistic in min mean p50; do
    within idle $statistic 8 30 || fail "idle, $statistic is not some 10 ms"
    within coarse $statistic 48 75 || fail "idle with a precision of 50 ms, $statistic is not some 50 ms"
done
within blocked max 1000 3000 || fail "the block of 1 s is not the maximum"
for statistic in p50 p90; do
    within blocked $statistic 8 100 || fail "with a block of 1 s, $statistic is not some 10 ms"
done
echo "ok: an idle loop has a lag of 10 ms, and one that is blocked half of the time has p90 of as much"
