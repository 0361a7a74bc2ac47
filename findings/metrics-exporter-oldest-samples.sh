#!/bin/sh
# Of the samples between two scrapes, metrics-exporter-prometheus has only the newest in its quantiles.
#
# Version: metrics-exporter-prometheus 0.18.3 with metrics-util 0.20.4 and metrics 0.24.6, with Rust 1.85 or
# later. Needs no root.
# Behaviour: a histogram without bounds is rendered as a summary of the last minute. Samples wait in blocks of
# 64 (on 64-bit machines) until a scrape or upkeep, which reads the newest block first. Where the minute
# before was quiet, as at the start, the window begins with the first sample read, and all older blocks are
# dropped from the quantiles, the longest samples of a burst among them. The quantile 1 is then not the
# maximum, and contradicts the count and the sum, which have all samples. Upkeep after each 50 samples keeps
# them.
# Seen, of 900 samples of 1,000 and then 100 of 10:
#   one scrape at the end          every quantile from 0 to 1 is 10; sum 901000, count 1000
#   upkeep after each 50 samples   quantile 0.5 and quantile 1 are 1000; the same sum and count
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
command -v cargo >/dev/null || cannot "cargo is missing"
[ "$(getconf LONG_BIT)" = 64 ] || cannot "the blocks are of 64 samples on 64-bit machines only"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
CARGO_TARGET_DIR=$work/target
export CARGO_TARGET_DIR
mkdir src
cat >Cargo.toml <<'END'
[package]
name = "render"
version = "0.0.0"
edition = "2024"

[dependencies]
metrics = "=0.24.6"
metrics-exporter-prometheus = { version = "=0.18.3", default-features = false }
metrics-util = { version = "=0.20.4", default-features = false }
END
cat >src/main.rs <<'END'
use metrics_exporter_prometheus::PrometheusBuilder;

fn main() {
    for (name, upkeep) in [("once", 1000), ("often", 50)] {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            let wait = metrics::histogram!(name);
            for sample in 1..=1000 {
                wait.record(if sample <= 900 { 1000.0 } else { 10.0 });
                if sample % upkeep == 0 && sample < 1000 {
                    handle.run_upkeep();
                }
            }
        });
        print!("{}", handle.render());
    }
}
END
cargo build --quiet || cannot "metrics-exporter-prometheus 0.18.3 is not to be had"
target/debug/render >page.txt || fail "nothing is rendered"
grep '^o' page.txt

# The value of the quantile $2 of the summary $1, rounded.
quantile() { sed -n "s/^$1{quantile=\"$2\"} //p" page.txt | awk '{ printf "%.0f\n", $1 }'; }

for series in once often; do
    grep -q "^${series}_sum 901000\$" page.txt || fail "the sum of $series is another"
    grep -q "^${series}_count 1000\$" page.txt || fail "the count of $series is another"
done
for part in 0 0.5 0.9 0.99 0.999 1; do
    [ "$(quantile once $part)" = 10 ] || fail "scraped once, quantile $part is $(quantile once $part)"
done
[ "$(quantile often 0)" = 10 ] || fail "with upkeep, quantile 0 is $(quantile often 0)"
for part in 0.5 1; do
    [ "$(quantile often $part)" = 1000 ] || fail "with upkeep, quantile $part is $(quantile often $part)"
done
echo "ok: 900 of 1,000 samples are 1,000, and all quantiles of the page are 10"
