#!/bin/sh
# fast-histogram counts no sample at the upper end of its range, so that the longest one is in no row.
#
# Version: fast-histogram 0.14 with numpy 2.4.6, on Python 3.11 or later. Needs no root.
# Behaviour: the package replaces numpy.histogram() for speed, with the same arguments, and says nothing of
# its rows' ends. A range from the least to the largest sample, which numpy takes where none is given, has all
# samples but the largest: the last row of numpy includes its upper end, and that of fast-histogram does not.
# Whole microseconds at the end of a range of whole microseconds are lost alike, all of them. With weights,
# as the counts of another histogram, and in two dimensions, as time and latency, it is the same.
# Seen, of 998 samples of 10, one of 500 and one of 1,000, in 10 rows from 10 to 1,000:
#   numpy.histogram    998 0 0 0 1 0 0 0 0 1    sum 1000
#   histogram1d        998 0 0 0 1 0 0 0 0 0    sum 999
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps \
    --only-binary :all: --target packages fast-histogram==0.14 numpy==2.4.6 ||
    cannot "fast-histogram 0.14 or numpy 2.4.6 is not to be had"
PYTHONPATH=$work/packages
export PYTHONPATH

cat >rows.py <<'END'
import numpy
from fast_histogram import histogram1d, histogram2d

samples = numpy.array([10.0] * 998 + [500.0, 1000.0])
range_ = (samples.min(), samples.max())
print("numpy", *numpy.histogram(samples, bins=10, range=range_)[0])
print("fast", *histogram1d(samples, bins=10, range=range_).astype(int))
values, counts = numpy.array([10.0, 500.0, 1000.0]), numpy.array([998.0, 1.0, 1.0])
print("weights", *histogram1d(values, bins=10, range=range_, weights=counts).astype(int))
times = numpy.arange(1000.0)
plane = histogram2d(times, samples, bins=[10, 10], range=[(0, 1000), range_])
expected, _, _ = numpy.histogram2d(times, samples, bins=[10, 10], range=[(0, 1000), range_])
print("plane", int(plane.sum()), int(expected.sum()))
whole = numpy.array([1.0] * 50 + [10.0] * 50)
print("whole", int(histogram1d(whole, bins=10, range=(0, 10)).sum()))
END
python3 rows.py >rows.txt || fail "the samples or the range are refused"
cat rows.txt

# The numbers in the line of $1.
seen() { sed -n "s/^$1 //p" rows.txt; }

[ "$(seen numpy)" = "998 0 0 0 1 0 0 0 0 1" ] || fail "numpy's rows are $(seen numpy)"
[ "$(seen fast)" = "998 0 0 0 1 0 0 0 0 0" ] || fail "the rows are $(seen fast)"
[ "$(seen weights)" = "998 0 0 0 1 0 0 0 0 0" ] || fail "the rows of weights are $(seen weights)"
[ "$(seen plane)" = "999 1000" ] || fail "in two dimensions, the sums are $(seen plane)"
[ "$(seen whole)" = 50 ] || fail "of 100 whole numbers, $(seen whole) are counted"
echo "ok: of 1,000 samples, 999 are in the rows, and the longest is not"
