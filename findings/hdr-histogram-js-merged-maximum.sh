#!/bin/sh
# The maximum of a JavaScript HdrHistogram grows with each histogram that is added to it, even an empty one.
#
# Version: hdr-histogram-js 3.0.1 of npm, on Node.js 20 or later. Needs no root.
# Behaviour: with a lowest discernible value, for nanoseconds of which only microseconds matter, the maximum
# is kept as the end of its unit. add() does that anew to the maximum that it has: with 1,000 ns, each
# add() makes it 511 ns longer. An hour of one-second intervals whose longest sample is 19,000 ns has a
# maximum of 1.86 ms in maxValue, in the summary and under "#[Max" of the text. Percentile 100, the mean and
# the rows are right, so that the text contradicts itself.
# Seen, of 3,600 histograms with samples from 10,000 to 19,000 ns, added to an empty one:
#   maxValue after 1, 100 and 3,600     20022, 70611, 1859111
#   getValueAtPercentile(100)           19455
#   text in us                          19.455 1.000000000000      36000
#                                       #[Max     =     1859.111, Total count    =        36000]
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
npm install --silent --no-audit --no-fund --ignore-scripts hdr-histogram-js@3.0.1 ||
    cannot "hdr-histogram-js 3.0.1 is not to be had"

cat >merge.js <<'END'
const { build } = require("hdr-histogram-js");

const empty = () => build({ lowestDiscernibleValue: 1000, highestTrackableValue: 3600e9 });
const interval = empty();
for (let sample = 10000; sample < 20000; sample += 1000) interval.recordValue(sample);
const total = empty();
for (let added = 1; added <= 3600; added++) {
    total.add(interval);
    if ([1, 100, 3600].includes(added)) {
        console.log(added, total.maxValue, total.summary.max, total.getValueAtPercentile(100));
    }
}
const before = interval.maxValue;
interval.add(empty());
console.log("empty", before, interval.maxValue, interval.totalCount);
console.log(total.outputPercentileDistribution(1, 1000));
END
node merge.js >merged.txt || fail "the histograms cannot be added"
echo "histograms added, maxValue, maximum of the summary, percentile 100:"
grep -e '^[0-9e]' -e ' 1.000000000000 ' -e Max merged.txt

# The values in the line of $1.
seen() { sed -n "s/^$1 //p" merged.txt; }

[ "$(seen 1)" = "20022 20022 19455" ] || fail "of one histogram, the values are $(seen 1)"
[ "$(seen 100)" = "70611 70611 19455" ] || fail "of 100 histograms, the values are $(seen 100)"
[ "$(seen 3600)" = "1859111 1859111 19455" ] || fail "of 3600 histograms, the values are $(seen 3600)"
[ "$(seen empty)" = "19511 20022 10" ] || fail "after an empty one, the values are $(seen empty)"
grep -q '^#\[Max  *=  *1859.111,' merged.txt || fail "the text has another maximum"
grep -q '^  *19.455 1.000000000000  *36000$' merged.txt || fail "the text ends with another row"
echo "ok: no sample is longer than 19,000 ns, and the maximum of an hour is 1,859,111 ns"
