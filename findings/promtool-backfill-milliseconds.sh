#!/bin/sh
# promtool's import of OpenMetrics keeps one sample per millisecond, and drops the others without a message.
#
# Version: prometheus 2.42.0+ds-5+deb12u1 of Debian 12. Needs no root.
# Behaviour: time stamps of OpenMetrics are seconds with a fraction of any length; the database has whole
# milliseconds, to which they are cut. Of the samples of a series that then have the same time, the first
# is kept, whatever the values: a thread of 10 kHz loses nine of ten, the maximum among them. The exit
# status is 0, standard error is empty, and the only sign is the number of samples in the block's line.
# Seen:
#   5 samples at .0001, .0004, .0009, .0021 and .0024 s, with the values 5, 9000, 7, 8 and 6
#   promtool tsdb create-blocks-from openmetrics FILE DIR    NUM SAMPLES 2, exit status 0
#   promtool tsdb dump DIR                                   5 at .000 s, 8 at .002 s
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
package=prometheus=2.42.0+ds-5+deb12u1
apt-get -qq -o APT::Sandbox::User=root download "$package" || cannot "$package is not to be had"
dpkg -x prometheus*.deb root
PATH=$work/root/usr/bin:$PATH

cat >samples.txt <<'END'
# TYPE latency_us gauge
latency_us{cpu="0"} 5 1790000000.0001
latency_us{cpu="0"} 9000 1790000000.0004
latency_us{cpu="0"} 7 1790000000.0009
latency_us{cpu="0"} 8 1790000000.0021
latency_us{cpu="0"} 6 1790000000.0024
# EOF
END
promtool --version 2>&1 | head -n 1
promtool tsdb create-blocks-from openmetrics samples.txt database >blocks.txt 2>blocks.err &&
    status=0 || status=$?
cat blocks.txt
mkdir -p database/wal
promtool tsdb dump database >dump.txt || fail "the database cannot be dumped"
cat dump.txt

[ "$status" = 0 ] || fail "the exit status of the import is $status"
[ ! -s blocks.err ] || fail "the import writes to standard error: $(cat blocks.err)"
[ "$(cut -d ' ' -f 3- dump.txt | tr '\n' ' ')" = "5 1790000000000 8 1790000000002 " ] ||
    fail "the database has other samples than the first of each millisecond"
echo "ok: of 5 samples, $(wc -l <dump.txt) are in the database, and the maximum of 9000 is not"
