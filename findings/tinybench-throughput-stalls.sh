#!/bin/sh
# tinybench states 980 calls a second, where 100 calls of 1 ms, two of which stalled for 100 ms, took 0.3 s.
#
# Version: tinybench 6.2.3 of npm, on Node.js 20 or later. Needs no root.
# Behaviour: "Throughput avg (ops/s)" is the mean of the throughput of each call, 1000 for one of 1 ms, and
# not the number of calls by their time. A call that takes long is one small number among many large ones, so
# that stalls hardly lower it, however long they are: with two of 10 s it is 980, where five calls a second
# were made. The latency beside it in the same table is right: its inverse is the throughput that was seen.
# A clock that only the calls advance is used here, so that the numbers are always the same.
# Seen, of 98 calls of 1 ms and two of 100 ms or 10 s:
#   two of 100 ms    throughput 980.2 calls/s, latency 2.98 ms; 100 calls in 298 ms are 335.6 calls/s
#   two of 10 s      throughput 980.0 calls/s, latency 200.98 ms; 100 calls in 20.1 s are 5.0 calls/s
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
command -v npm >/dev/null || cannot "npm is missing"
node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || cannot "Node.js is older than 20"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
echo '{ "private": true, "type": "module" }' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts tinybench@6.2.3 ||
    cannot "tinybench 6.2.3 is not to be had"

cat >stall.js <<'END'
import { Bench } from "tinybench";

let clock = 0;

// Calls of 1 ms, of which two stall.
async function measure(name, stall) {
    let calls = 0;
    const bench = new Bench({ time: 0, iterations: 100, warmup: false, now: () => clock });
    bench.add(name, () => {
        calls += 1;
        clock += calls % 50 === 0 ? stall : 1;
    });
    await bench.run();
    const { latency, throughput, totalTime } = bench.tasks[0].result;
    const count = latency.samplesCount;
    const seen = (count * 1000) / totalTime;
    console.log(name, count, throughput.mean.toFixed(1), latency.mean.toFixed(2), seen.toFixed(1));
    console.table(bench.table());
}

await measure("short", 100);
await measure("long", 10000);
END
node stall.js >stalls.txt || fail "a call is refused"
cat stalls.txt

# The numbers in the line of $1.
seen() { sed -n "s/^$1 //p" stalls.txt; }

[ "$(seen short)" = "100 980.2 2.98 335.6" ] || fail "with stalls of 100 ms, there are $(seen short)"
[ "$(seen long)" = "100 980.0 200.98 5.0" ] || fail "with stalls of 10 s, there are $(seen long)"
echo "ok: 100 calls in 20.1 s are 980.0 calls a second"
