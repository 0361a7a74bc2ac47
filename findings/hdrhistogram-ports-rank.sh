#!/bin/sh
# Of one and the same HdrHistogram, the percentile 99 is 10 in Python and 1000 in JavaScript.
#
# Version: hdrhistogram 0.10.8 of PyPI with pbr 7.1.3, on Python 3.11 or later; hdr-histogram-js 3.0.1 of npm,
# on Node.js 20 or later. Needs no root.
# Behaviour: a percentile is the value that so many percent of the samples do not exceed. The port to
# JavaScript rounds that number of samples up, and the port to Python to the nearest. Of 151 samples, 99 % are
# 149.49: the 150th sample in the one, the 149th in the other, which 98.7 % do not exceed. So it is at each
# percentile whose number of samples has a fraction below a half, as 99.9 % of 1,600 samples. The samples are
# written once, in the common format, and both ports count them alike.
# Seen, of 149 samples of 10 and two of 1,000:
#   hdr-histogram-js    151 samples, p98 10, p99 1000, p100 1000
#   hdrhistogram        151 samples, p98 10, p99 10,   p100 1000
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
command -v npm >/dev/null || cannot "npm is missing"
node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || cannot "Node.js is older than 20"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
echo '{ "private": true }' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts hdr-histogram-js@3.0.1 ||
    cannot "hdr-histogram-js 3.0.1 is not to be had"
python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps --target packages \
    hdrhistogram==0.10.8 pbr==7.1.3 || cannot "hdrhistogram 0.10.8 is not to be had"
PYTHONPATH=$work/packages
export PYTHONPATH

cat >write.js <<'END'
const hdr = require("hdr-histogram-js");
const { writeFileSync } = require("fs");

for (const [name, short] of [["151", 149], ["1600", 1598]]) {
    const histogram = hdr.build();
    histogram.recordValueWithCount(10, short);
    histogram.recordValueWithCount(1000, 2);
    writeFileSync(name, hdr.encodeIntoCompressedBase64(histogram));
    const percentiles = [98, 99, 99.9, 100].map((percent) => histogram.getValueAtPercentile(percent));
    console.log("js", histogram.totalCount, ...percentiles);
}
END
cat >read.py <<'END'
from hdrh.histogram import HdrHistogram

for name in ("151", "1600"):
    with open(name, "rb") as text:
        histogram = HdrHistogram.decode(text.read())
    percentiles = (histogram.get_value_at_percentile(percent) for percent in (98, 99, 99.9, 100))
    print("python", histogram.get_total_count(), *percentiles)
END
node write.js >percentiles.txt || fail "JavaScript does not write the histograms"
python3 read.py >>percentiles.txt || fail "Python does not read the histograms"
echo "port, samples, p98, p99, p99.9, p100:"
cat percentiles.txt

# The percentiles in the line of $1.
seen() { sed -n "s/^$1 //p" percentiles.txt; }

[ "$(seen 'js 151')" = "10 1000 1000 1000" ] || fail "of 151 samples, JavaScript has $(seen 'js 151')"
[ "$(seen 'python 151')" = "10 10 1000 1000" ] || fail "of 151 samples, Python has $(seen 'python 151')"
[ "$(seen 'js 1600')" = "10 10 1000 1000" ] || fail "of 1,600 samples, JavaScript has $(seen 'js 1600')"
[ "$(seen 'python 1600')" = "10 10 10 1000" ] || fail "of 1,600 samples, Python has $(seen 'python 1600')"
echo "ok: of one histogram, percentile 99 is 1000 in JavaScript and 10 in Python"
