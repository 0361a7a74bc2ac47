#!/bin/sh
# scipy's fit of extreme values has different shapes in nanoseconds and in microseconds, without a warning.
#
# Version: scipy 1.17.1 with numpy 2.4.6, on Python 3.11 or later. Needs no root.
# Behaviour: the shape of a distribution has no unit, so that it is the same for maxima in ns, us, ms and s.
# genextreme.fit() starts its search at a scale of 1, whatever the unit: with a scale of 5,000 ns it
# stops far from there, at another shape, and the worst case that is read from it is off by tens of powers
# of ten. It raises nothing and warns of nothing; the manual says that a fit may be a local optimum, and
# does not mention the unit. pyextremes 2.6.1 fits with it and has the same. The maxima here are the 500
# middle quantiles of a Gumbel distribution (shape 0).
# Seen, of the same 500 maxima:
#   genextreme.fit(us)     shape  0.00093, scale 4.99 us     exceeded once in 1e6 blocks: 98.6 us
#   genextreme.fit(ns)     shape -8.02,    scale 0.0018 us   exceeded once in 1e6 blocks: 2.86e+44 us
#   genextreme.fit(s)      shape -0.784,   scale 8.12 us     exceeded once in 1e6 blocks: 5.24e+05 us
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps \
    --only-binary :all: --target packages numpy==2.4.6 scipy==1.17.1 || cannot "scipy 1.17.1 is not to be had"
PYTHONPATH=$work/packages
export PYTHONPATH

cat >fit.py <<'END'
import warnings

import numpy
from scipy.stats import genextreme

warnings.simplefilter("error")
rank = (numpy.arange(500) + 0.5) / 500
maxima = numpy.round(30000 - 5000 * numpy.log(-numpy.log(rank)))
for unit, length in (("ns", 1), ("us", 1e3), ("ms", 1e6), ("s", 1e9)):
    shape, place, scale = genextreme.fit(maxima / length)
    worst = genextreme.isf(1e-6, shape, place, scale)
    print(unit, f"{shape:.3g} {scale * length / 1e3:.3g} {worst * length / 1e3:.3g}")
END
python3 fit.py >fits.txt || fail "a fit raises or warns"
echo "unit, shape, scale in us, exceeded once in 1e6 blocks, in us:"
cat fits.txt

# Succeeds if the shape in the unit $1 is between $2 and $3.
shape() { awk -v unit="$1" -v low="$2" -v high="$3" '$1 == unit { exit !(low < $2 && $2 < high) }' fits.txt; }

shape us -0.05 0.05 || fail "in microseconds, the shape is not that of the data"
shape ms -0.05 0.05 || fail "in milliseconds, the shape is not that of the data"
shape ns -100 -1 || fail "in nanoseconds, the shape is above -1"
shape s -100 -0.5 || fail "in seconds, the shape is above -0.5"
echo "ok: the same maxima have the shape 0 in us and ms, and a heavy tail in ns and s"
