#!/bin/sh
# Logs of Python's HdrHistogram have maxima cut to whole units, and its text a deviation in another unit.
#
# Version: hdrhistogram 0.10.8 of PyPI with pbr 7.1.3, on Python 3.11 or later. Needs no root.
# Behaviour: a line of a log has the maximum of its interval, Interval_Max, beside the encoded histogram. The
# writer divides it by the unit, drops the rest, and prints six decimals: what is below 1 ms is 0.000000. The
# histogram's tag, by which the threads in a log are separated, is not written, though the reader knows tags.
# In the text of percentiles, the rows, mean and maximum are in the unit asked for; the deviation beside the
# mean is not.
# Seen, of samples of 950,000 and 1,990,000 ns, tagged "cpu0", with a unit of 1,000,000 ns:
#   log      1790000000.000000,10.000000,1.000000,HISTF...
#   text     #[Mean    =        1.470, StdDeviation   =   520064.000]
#            #[Max     =        1.991, TotalCount     =        2.000]
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps --target packages \
    hdrhistogram==0.10.8 pbr==7.1.3 || cannot "hdrhistogram 0.10.8 is not to be had"
PYTHONPATH=$work/packages
export PYTHONPATH

cat >write.py <<'END'
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader, HistogramLogWriter

with open("intervals.hlog", "w") as log:
    writer = HistogramLogWriter(log)
    writer.output_log_format_version()
    writer.output_legend()
    for samples in ([950000, 1990000], [950000]):
        interval = HdrHistogram(1, 3600 * 10**9, 3)
        interval.set_tag("cpu0")
        for sample in samples:
            interval.record_value(sample)
        writer.output_interval_histogram(interval, 1790000000, 1790000010, 1e6)
        if len(samples) == 2:
            with open("interval.hgrm", "wb") as text:
                interval.output_percentile_distribution(text, 1e6)
reader = HistogramLogReader("intervals.hlog", HdrHistogram(1, 3600 * 10**9, 3))
while interval := reader.get_next_interval_histogram():
    print("read", interval.get_tag(), interval.get_max_value())
END
python3 write.py >read.txt || fail "the log cannot be written or read"
cut -c -60 intervals.hlog
cat read.txt
grep '^#' interval.hgrm

maxima=$(sed -n 's/^1790000000.0*,10.0*,\(.*\),HISTF.*/\1/p' intervals.hlog | tr '\n' ' ')
[ "$maxima" = "1.000000 0.000000 " ] || fail "the log has the maxima $maxima"
[ "$(tr '\n' ' ' <read.txt)" = "read None 1990655 read None 950271 " ] || fail "the log has other histograms"
grep -q '^#\[Mean  *=  *1.470, StdDeviation  *=  *520064.000\]$' interval.hgrm ||
    fail "the text has another mean or deviation"
grep -q '^#\[Max  *=  *1.991,' interval.hgrm || fail "the text has another maximum"
echo "ok: maxima of 1.99 and 0.95 ms are logged as 1 and 0, a deviation of 0.52 ms is printed as 520064"
