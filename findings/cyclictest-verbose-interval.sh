#!/bin/sh
# cyclictest -v states the next thread's interval for each thread.
#
# Version: rt-tests 2.4-1 of Debian 12 (says "V 2.40"); seen in 2.10-1, too. Needs root.
# Behaviour: the lines "Thread N Interval:" are printed after the distance was added for the next thread.
# With -i 2000 and -d 500, thread 0 runs every 2,000 us and its line says 2,500.
# Seen:
#   cyclictest -v -t 2 -i 2000 -d 500 -l 3    Thread 0 Interval: 2500
#                                             Thread 1 Interval: 3000
#   cyclictest -q -t 2 -i 2000 -d 500 -l 3    T: 0 ... I:2000 ...
#                                             T: 1 ... I:2500 ...
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
[ "$(id -u)" = 0 ] || cannot "a real-time priority takes root"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
for package in rt-tests=2.4-1 libnuma1=2.0.16-1; do
    apt-get -qq -o APT::Sandbox::User=root download "$package" || cannot "$package is not to be had"
done
for file in *.deb; do
    dpkg -x "$file" root
done
PATH=$work/root/usr/bin:$PATH
LD_LIBRARY_PATH=$(dirname "$work"/root/usr/lib/*/libnuma.so.1)
export LD_LIBRARY_PATH

cyclictest --help | head -n 1
cyclictest -v -t 2 -i 2000 -d 500 -l 3 >verbose.txt 2>&1
cyclictest -q -t 2 -i 2000 -d 500 -l 3 >summary.txt 2>&1
grep '^Thread' verbose.txt || fail "-v prints no intervals"
grep '^T:' summary.txt || fail "-q prints no threads"

for thread in 0 1; do
    stated=$(sed -n "s/^Thread $thread Interval: *//p" verbose.txt)
    used=$(sed -n "s/^T: *$thread .*I:\([0-9]*\).*/\1/p" summary.txt)
    [ "$used" = $((2000 + thread * 500)) ] || fail "thread $thread has an interval of $used us"
    [ "$stated" = $((used + 500)) ] || fail "-v states $stated us for thread $thread, which has $used us"
done
echo "ok: -v states 500 us more than the interval of each thread"
