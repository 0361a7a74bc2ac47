#!/bin/sh
# numpy.percentile(x, 99.9) of 1,000 samples is the maximum where numpy.quantile(x, 0.999) is not.
#
# Version: numpy 2.4.6, on Python 3.11 or later. Needs no root.
# Behaviour: with the method "inverted_cdf", the result is the least sample that as many samples as asked for
# do not exceed: of 1,000 samples, the 999th for 99.9 %. percentile() divides by 100 first, and 99.9 / 100 is
# 0.9990000000000001, so that it takes one sample more; quantile() divides nothing, and is right.
# nanpercentile() and rows with counts as weights, which this method alone takes, are off alike. So it is of
# 2,000 and of 1,000,000 samples, and for 135 of the percents with one decimal (99.4, 98.9, 98.4, ...); 99.5
# is right. Methods that interpolate are hardly changed, as the error is a small part of a step.
# Seen, of 999 samples of 10 and one of 1,000,000:
#   percentile(x, 99.9, method="inverted_cdf")                              1000000
#   quantile(x, 0.999, method="inverted_cdf")                               10
#   percentile([10, 1000000], 99.9, weights=[999, 1], the same method)      1000000
#   quantile([10, 1000000], 0.999, weights=[999, 1], the same method)       10
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps \
    --only-binary :all: --target packages numpy==2.4.6 || cannot "numpy 2.4.6 is not to be had"
PYTHONPATH=$work/packages
export PYTHONPATH

cat >percentiles.py <<'END'
import warnings

import numpy

warnings.simplefilter("error")
step = {"method": "inverted_cdf"}
samples = [10] * 999 + [1000000]
rows = {"weights": [999, 1], **step}
print("samples", numpy.percentile(samples, 99.9, **step), numpy.quantile(samples, 0.999, **step))
print("nan", numpy.nanpercentile(samples, 99.9, **step), numpy.nanquantile(samples, 0.999, **step))
print("rows", numpy.percentile([10, 1000000], 99.9, **rows), numpy.quantile([10, 1000000], 0.999, **rows))
for count in (2000, 10000, 1000000):
    order = numpy.arange(1, count + 1)
    print(count, numpy.percentile(order, 99.9, **step), numpy.quantile(order, 0.999, **step))
order = numpy.arange(1, 1001)
off = {"percentile": [], "quantile": []}
for rank in range(1, 1000):
    if numpy.percentile(order, rank / 10, **step) != rank:
        off["percentile"].append(rank / 10)
    if numpy.quantile(order, rank / 1000, **step) != rank:
        off["quantile"].append(rank / 1000)
print("off", len(off["percentile"]), len(off["quantile"]), *off["percentile"][-4:])
END
python3 percentiles.py >percentiles.txt || fail "the percentiles raise or warn"
echo "samples, percentile 99.9, quantile 0.999; of 1,000, how many percents are off, and the last four:"
cat percentiles.txt

# The results in the line of $1.
seen() { sed -n "s/^$1 //p" percentiles.txt; }

for line in samples nan rows; do
    [ "$(seen $line)" = "1000000 10" ] || fail "of 999 and 1 ($line), the results are $(seen $line)"
done
[ "$(seen 2000)" = "1999 1998" ] || fail "of 2,000 samples, it takes the samples $(seen 2000)"
[ "$(seen 10000)" = "9991 9990" ] || fail "of 10,000 samples, it takes the samples $(seen 10000)"
[ "$(seen 1000000)" = "999001 999000" ] || fail "of 1,000,000 samples, it takes the samples $(seen 1000000)"
[ "$(seen off)" = "135 0 98.4 98.9 99.4 99.9" ] || fail "of the percents, there are off: $(seen off)"
echo "ok: percentile 99.9 of 1,000 samples is 1000000, and quantile 0.999 of the same is 10"
