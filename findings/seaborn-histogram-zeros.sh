#!/bin/sh
# A seaborn histogram on a logarithmic scale drops the samples of 0, and distributes 100 % over the others.
#
# Version: seaborn 0.13.2 with matplotlib 3.11.2, pandas 3.1.1 and numpy 2.4.6, on Python 3.11 or later. Needs
# no root.
# Behaviour: latencies in whole microseconds have samples of 0. histplot() with log_scale=True omits them
# from the rows and from the total of "percent", "probability" and "density", without a warning or a mark in
# the picture: the share of the long samples grows, and a cumulative histogram starts above the zeros.
# ecdfplot() of the same samples on the same scale has them, so that two pictures of one run disagree.
# Seen, of 50 samples of 0 us, 40 of 1 us and 10 of 10 us, as parts of 100 %:
#   histplot(x, stat="percent")                                      10 us: 10 %
#   histplot(x, stat="percent", log_scale=True)                      10 us: 20 %
#   histplot(x, stat="percent", log_scale=True, cumulative=True)     up to 1 us: 80 %
#   ecdfplot(x, stat="percent", log_scale=True)                      up to 1 us: 90 %
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps \
    --only-binary :all: --target packages seaborn==0.13.2 matplotlib==3.11.2 pandas==3.1.1 numpy==2.4.6 \
    contourpy==1.3.3 cycler==0.12.1 fonttools==4.68.0 kiwisolver==1.5.1 packaging==26.4 pillow==13.0.0 \
    pyparsing==3.3.3 python-dateutil==2.9.0.post0 six==1.17.0 tzdata==2026.6 ||
    cannot "seaborn 0.13.2 is not to be had"
PYTHONPATH=$work/packages
MPLCONFIGDIR=$work/matplotlib
MPLBACKEND=agg
export PYTHONPATH MPLCONFIGDIR MPLBACKEND

cat >histograms.py <<'END'
import warnings

import matplotlib.pyplot
import seaborn

warnings.simplefilter("error")
samples = [0] * 50 + [1] * 40 + [10] * 10


def rows(**options):
    axes = matplotlib.pyplot.figure().subplots()
    seaborn.histplot(x=samples, ax=axes, **options)
    axes.figure.canvas.draw()
    heights = [bar.get_height() for bar in axes.patches]
    words = sum(bool(text.get_text()) for text in axes.texts)
    matplotlib.pyplot.close(axes.figure)
    return *(f"{height:.0f}" for height in heights if height), f"words:{words}"


def steps(**options):
    axes = matplotlib.pyplot.figure().subplots()
    seaborn.ecdfplot(x=samples, ax=axes, **options)
    points = {f"{x:.0f}": f"{y:.0f}" for x, y in axes.lines[0].get_xydata() if x >= 0}
    matplotlib.pyplot.close(axes.figure)
    return points.values()


# Rows of half a microsecond, and on the logarithmic scale two rows, from 1 and from 3.2 us.
print("linear", *rows(stat="percent", bins=20))
print("log", *rows(stat="percent", bins=2, log_scale=True))
print("log-count", *rows(stat="count", bins=2, log_scale=True))
print("log-cumulative", *rows(stat="percent", bins=2, log_scale=True, cumulative=True))
print("log-ecdf", *steps(stat="percent", log_scale=True))
END
python3 histograms.py >histograms.txt 2>errors.txt ||
    { tail -n 1 errors.txt; fail "the pictures raise or warn"; }
echo "rows in percent that are not empty, and words in the picture:"
cat histograms.txt

# The rows in the line of $1.
seen() { sed -n "s/^$1 //p" histograms.txt; }

[ "$(seen linear)" = "50 40 10 words:0" ] || fail "on the linear scale, the rows are $(seen linear)"
[ "$(seen log)" = "80 20 words:0" ] || fail "on the logarithmic scale, the rows are $(seen log)"
[ "$(seen log-count)" = "40 10 words:0" ] || fail "the counts are $(seen log-count)"
[ "$(seen log-cumulative)" = "80 100 words:0" ] || fail "the cumulative rows are $(seen log-cumulative)"
[ "$(seen log-ecdf)" = "50 90 100" ] || fail "the steps of ecdfplot() are $(seen log-ecdf)"
echo "ok: of 100 samples with 50 of 0 us, the histogram has 20 % at 10 us where there are 10"
