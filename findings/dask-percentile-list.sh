#!/bin/sh
# dask's percentile 99 of the same samples is 910 if it is asked for alone, and 10 in a list with others.
#
# Version: dask 2026.8.0 and numpy 2.4.6, on Python 3.11 or later. Needs no root.
# Behaviour: the manual of dask.array.percentile() calls it approximate, without an error. Of each chunk only
# the percentiles asked for are computed, with the minimum and the maximum, and the result is drawn
# through these few points, weighted by their distances. A burst of long samples in one chunk, or a latency
# that rises from chunk to chunk, makes the result some times the exact one, the median too, and the same
# percentile differs by which others are in the list.
# Seen:
#   10,000 samples in 10 chunks, the last 50 are 1,000, all others 10     exact: p99 10
#     percentile(x, [99])                                                 910
#     percentile(x, [50, 90, 99, 99.9])                                   10, 10, 10, 1000
#   10 chunks, in the first from 0 to 10, in the last from 0 to 10,000    exact: median 116
#     percentile(x, [50])                                                 215
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps \
    --only-binary :all: --target packages dask==2026.8.0 numpy==2.4.6 toolz==1.2.0 cloudpickle==3.1.3 \
    click==8.5.1 fsspec==2026.9.0 packaging==26.4 partd==1.4.2 locket==1.0.0 pyyaml==6.0.4 \
    importlib-metadata==10.2.0 zipp==4.1.2 lazy-importer==0.1.0 ||
    cannot "dask 2026.8.0 is not to be had"
PYTHONPATH=$work/packages
export PYTHONPATH

cat >percentiles.py <<'END'
import dask.array
import numpy

burst = numpy.full(10_000, 10.0)
burst[-50:] = 1000.0
rising = numpy.concatenate([numpy.linspace(0, 10 ** (1 + chunk / 3), 1000) for chunk in range(10)])


def show(name, samples, *percents):
    chunks = dask.array.from_array(samples, chunks=1000)
    estimated = dask.array.percentile(chunks, percents).compute()
    exact = numpy.percentile(samples, percents)
    for percent, one, other in zip(percents, estimated, exact):
        print(name, percent, f"{one:.0f} {other:.0f}")


show("alone", burst, 99)
show("list", burst, 50, 90, 99, 99.9)
show("rising", rising, 50)
END
python3 percentiles.py >percentiles.txt || fail "the percentiles are not computed"
echo "samples, percent, dask, exact:"
cat percentiles.txt

# dask's and numpy's percentile $2 of the samples $1.
seen() { sed -n "s/^$1 $2 //p" percentiles.txt; }

[ "$(seen alone 99)" = "910 10" ] || fail "asked for alone, percentile 99 is $(seen alone 99)"
for percent in 50 90 99; do
    [ "$(seen list $percent)" = "10 10" ] || fail "in a list, percentile $percent is $(seen list $percent)"
done
[ "$(seen list 99.9)" = "1000 1000" ] || fail "in a list, percentile 99.9 is $(seen list 99.9)"
[ "$(seen rising 50)" = "215 116" ] || fail "the median of rising samples is $(seen rising 50)"
echo "ok: percentile 99 is 910 alone and 10 in a list, and a median of 116 is 215"
