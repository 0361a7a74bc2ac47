#!/bin/sh
# The tdigest package returns percentiles of whole microseconds that are far from every sample.
#
# Version: tdigest 0.5.2.2 with accumulation-tree 0.6.4 (pip builds it, which takes a C compiler) and
# pyudorandom 1.0.0, on Python 3.11. Needs no root.
# Behaviour: equal samples share one centroid, however many they are, and percentile() draws a line from the
# middle of each centroid to that of the next, as if samples lay between. Latencies in whole microseconds
# have few values: one long sample then lifts half of the value before it, and the median of two values can
# be 100 times the value of 99.9 % of the samples. Low percentiles can be negative. The exact maximum
# comes out, so that the ends of the list look right. Latencies with a fraction are estimated well.
# Seen:
#   999 samples of 10, 1 of 1,000,000              p1 -978980, p50 1010, p99 981000, p100 1000000
#   19,999 samples from 10 to 13, 1 of 1,000,000   p50 11.5, p90 200370 (exact: 13), p99 920217 (exact: 13)
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps --target packages \
    tdigest==0.5.2.2 accumulation-tree==0.6.4 pyudorandom==1.0.0 || cannot "tdigest 0.5.2.2 is not to be had"
PYTHONPATH=$work/packages
export PYTHONPATH

cat >percentiles.py <<'END'
from tdigest import TDigest

for count, values in ((1000, 1), (20000, 4)):
    samples = [1000000 if i == 77 else 10 + i % values for i in range(count)]
    digest = TDigest()
    for sample in samples:
        digest.update(sample)
    samples.sort()
    for percent in (1, 50, 90, 99, 100):
        exact = samples[min(count - 1, count * percent // 100)]
        print(count, percent, round(digest.percentile(percent)), exact)
END
python3 percentiles.py >percentiles.txt
echo "samples, percent, tdigest, exact:"
cat percentiles.txt

# The percentile $2 of the $1 samples.
estimate() { awk -v count="$1" -v percent="$2" '$1 == count && $2 == percent { print $3 }' percentiles.txt; }

[ "$(estimate 1000 1)" -lt 0 ] || fail "percentile 1 of 1,000 samples is not negative"
[ "$(estimate 1000 50)" -gt 500 ] || fail "the median of 1,000 samples is $(estimate 1000 50)"
for count in 1000 20000; do
    [ "$(estimate $count 90)" -gt 100000 ] || fail "percentile 90 of $count samples is $(estimate $count 90)"
    [ "$(estimate $count 99)" -gt 500000 ] || fail "percentile 99 of $count samples is $(estimate $count 99)"
    [ "$(estimate $count 100)" = 1000000 ] || fail "the maximum of $count samples is $(estimate $count 100)"
done
echo "ok: of 20,000 samples, percentile 99 is $(estimate 20000 99) where all but one are 13 and less"
