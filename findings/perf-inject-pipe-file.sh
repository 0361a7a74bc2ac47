#!/bin/sh
# perf inject of a saved stream writes a file that perf cannot read, unless standard input is the stream.
#
# Version: linux-perf 6.1.192-3 of Debian 12. Needs root.
# Behaviour: `perf record -o -` writes a stream, which perf reads from standard input or from a file. perf
# inject is what turns a stream into an ordinary file; given the stream as a file, it exits with 0 and writes
# one of about the right size, whose records perf refuses. With the same bytes on standard input the file is
# good.
# Seen:
#   perf inject -i stream -o file; perf script -i file       failed to process type: 141 [Invalid argument]
#   perf inject -i - -o file <stream; perf script -i file    the samples of the stream
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
[ "$(id -u)" = 0 ] || cannot "recording takes root"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
for package in linux-perf=6.1.192-3 libbabeltrace1=1.5.11-1+b2 libdw1=0.188-2.1 libelf1=0.188-2.1 \
    libglib2.0-0=2.74.6-2+deb12u9 libnuma1=2.0.16-1 libopencsd1=1.3.3-1 libpcre2-8-0=10.42-1+deb12u2 \
    libperl5.36=5.36.0-7+deb12u4 libpython3.11=3.11.2-6+deb12u9 libslang2=2.3.3-3 libunwind8=1.6.2-3 \
    libuuid1=2.38.1-5+deb12u3 libzstd1=1.5.4+dfsg2-5; do
    apt-get -qq -o APT::Sandbox::User=root download "$package" || cannot "$package is not to be had"
done
for file in *.deb; do
    dpkg -x "$file" root
done
folder=$(dirname "$work"/root/usr/lib/*/libnuma.so.1)
LD_LIBRARY_PATH=$folder:$work/root/lib/${folder##*/}
PERF_CONFIG=/dev/null
export LD_LIBRARY_PATH PERF_CONFIG
perf() { "$work/root/usr/bin/perf" "$@"; }
# The number of samples in a file.
samples() { perf script -i "$1" -F event 2>"$1.err" | grep -c cpu-clock || true; }

perf --version
perf record -q -o - -e cpu-clock -F 999 -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done' >stream
perf inject -i stream -o by_name && status=0 || status=$?
perf inject -i - -o by_input <stream || fail "with the stream on standard input, the exit status is $?"
all=$(samples stream)
echo "samples: $all in the stream, $(samples by_name) after perf inject -i stream," \
    "$(samples by_input) after perf inject -i -"
sed -n 1p by_name.err

[ "$all" -gt 0 ] || cannot "nothing was sampled here"
[ "$status" = 0 ] || fail "with the stream as a file, the exit status is $status"
[ "$(samples by_name)" = 0 ] || fail "with the stream as a file, the result has samples"
[ "$(samples by_input)" = "$all" ] || fail "with the stream on standard input, samples are missing"
echo "ok: perf inject -i stream exits with 0, and perf reads nothing of its result"
