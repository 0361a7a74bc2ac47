#!/bin/sh
# signaltest measures its own pause of 10 ms, and names one CPU for all threads.
#
# Version: rt-tests 2.4-1 of Debian 12 (says "V 2.40"); seen in 2.10-1, too. Needs root and two CPUs.
# Behaviour: the signal goes round the threads, and every 16th time one of them pauses for 10 ms, which all
# threads but the first measure. On an idle machine their maximum is over 10,000 us and their average over
# 600 us, whatever the kernel. With -a each thread has its own CPU; the JSON's "cpu" is 0 for all.
# Seen:
#   signaltest -q -a -t 2 -p 80 -l 1600 --json=FILE    T: 0 ... Avg:   30 Max:     182
#                                                      T: 1 ... Avg:  659 Max:   10181
#   Cpus_allowed_list of the threads: 0 and 1; the JSON: "cpu": 0 and "cpu": 0
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
[ "$(id -u)" = 0 ] || cannot "a real-time priority takes root"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
[ "$(nproc)" -ge 2 ] || cannot "threads on CPUs of their own take two CPUs"
for package in rt-tests=2.4-1 libnuma1=2.0.16-1; do
    apt-get -qq -o APT::Sandbox::User=root download "$package" || cannot "$package is not to be had"
done
for file in *.deb; do
    dpkg -x "$file" root
done
PATH=$work/root/usr/bin:$PATH
LD_LIBRARY_PATH=$(dirname "$work"/root/usr/lib/*/libnuma.so.1)
export LD_LIBRARY_PATH

signaltest --help | head -n 1 || true
signaltest -q -a -t 2 -p 80 -l 1600 --json=result.json >result.txt 2>&1 &
signaltest=$!
sleep 0.5
cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/"$signaltest"/task/*/status |
    tail -n 2 | sort -u | wc -l)
wait "$signaltest"
grep '^T:' result.txt || fail "-q prints no threads"
echo "the threads run on $cpus CPUs; the JSON:$(grep '"cpu"' result.json | tr -d '\n')"

# The field $2 of thread $1 in the text.
field() { sed -n "s/^T: *$1 .* $2: *\([0-9]*\).*/\1/p" result.txt; }

[ "$(field 0 Avg)" -lt 600 ] || fail "thread 0 has the pause in its average, $(field 0 Avg) us"
[ "$(field 1 Avg)" -ge 600 ] || fail "thread 1 has an average of $(field 1 Avg) us"
[ "$(field 1 Max)" -ge 10000 ] || fail "thread 1 has a maximum of $(field 1 Max) us"
[ "$cpus" = 2 ] || fail "the threads have the same CPUs"
[ "$(grep -c '"cpu": 0' result.json)" = 2 ] || fail "the JSON has other CPUs than 0"
echo "ok: thread 1 has its tool's 10 ms in average and maximum, and both threads have \"cpu\": 0"
