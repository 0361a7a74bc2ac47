#!/bin/sh
# pandas 3 cuts the mean and the deviation of durations to whole microseconds.
#
# Version: pandas 3.1.1 with numpy 2.4.6, on Python 3.11 or later. Needs no root.
# Behaviour: durations made of whole microseconds, and differences of time stamps that have no nanoseconds,
# have the type timedelta64[us] since pandas 3. All values computed from them have the same type, with the
# fraction cut off, not rounded: a mean and a quantile are up to 1 us too small, and a deviation below 1 us
# is 0. There is no warning. The release notes mention the type, and name conversion to integers as the one
# big exception that is noticed. The same durations as timedelta64[ns], the type of pandas 1, give the right
# results.
# Seen, of one sample of 1 us and nine of 2 us:
#   to_timedelta(samples, unit="us")                  mean 1000 ns, std 0 ns, quantile(0.05) 1000 ns
#   to_datetime(times).diff()                         mean 1000 ns, std 0 ns, quantile(0.05) 1000 ns
#   to_timedelta(samples, unit="us").as_unit("ns")    mean 1900 ns, std 316 ns, quantile(0.05) 1450 ns
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps \
    --only-binary :all: --target packages pandas==3.1.1 numpy==2.4.6 python-dateutil==2.9.0.post0 \
    six==1.17.0 tzdata==2026.6 || cannot "pandas 3.1.1 is not to be had"
PYTHONPATH=$work/packages
export PYTHONPATH

cat >statistics.py <<'END'
import warnings

import pandas

warnings.simplefilter("error")
samples = [1] + [2] * 9
times = ["2026-01-01 00:00:00.%06d" % time for time in (0, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19)]
micro = pandas.to_timedelta(samples, unit="us")
for name, durations in (
        ("us", micro),
        ("differences", pandas.Series(pandas.to_datetime(times)).diff().dropna()),
        ("ns", micro.as_unit("ns"))):
    series = pandas.Series(durations)
    statistics = series.mean(), series.std(), series.quantile(0.05)
    print(name, series.dtype, *(value.as_unit("ns").value for value in statistics))
END
python3 statistics.py >statistics.txt || fail "the statistics raise or warn"
echo "made of, type, mean, std, quantile 0.05, in ns:"
cat statistics.txt

# The mean, the deviation and the quantile of the durations $1.
seen() { sed -n "s/^$1 [^ ]* //p" statistics.txt; }

[ "$(seen us)" = "1000 0 1000" ] || fail "of microseconds, the statistics are $(seen us)"
[ "$(seen differences)" = "1000 0 1000" ] || fail "of differences, the statistics are $(seen differences)"
[ "$(seen ns)" = "1900 316 1450" ] || fail "of nanoseconds, the statistics are $(seen ns)"
echo "ok: the mean of 1.9 us is 1 us, and its deviation of 0.3 us is 0"
