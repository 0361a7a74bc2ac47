#!/bin/sh
# cyclictest -h changes the intervals of all threads but the first.
#
# Version: rt-tests 2.4-1 of Debian 12 (says "V 2.40"); seen in 2.10-1, too. Needs root and two CPUs.
# Behaviour: the distance between the threads' intervals is 0 with a histogram (-h), even where -d states
# another. So the same command with and without -h measures the second CPU at different intervals. Only a
# warning on standard error says it, and only where -d is stated; the histogram and the JSON do not.
# Seen:
#   cyclictest -q -S -p 80 -i 200 -d 500 -D 1         T: 0 ... I:200 C:   4996     T: 1 ... I:700 C:   1426
#   cyclictest -q -S -p 80 -i 200 -d 500 -D 1 -h 3    "cycles": 4999 and 4978
#       WARN: distance is ignored and set to 0, if histogram enabled
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
[ "$(id -u)" = 0 ] || cannot "a real-time priority takes root"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
[ "$(nproc)" -ge 2 ] || cannot "-S takes two CPUs"
for package in rt-tests=2.4-1 libnuma1=2.0.16-1; do
    apt-get -qq -o APT::Sandbox::User=root download "$package" || cannot "$package is not to be had"
done
for file in *.deb; do
    dpkg -x "$file" root
done
PATH=$work/root/usr/bin:$PATH
LD_LIBRARY_PATH=$(dirname "$work"/root/usr/lib/*/libnuma.so.1)
export LD_LIBRARY_PATH

# The cycles of thread 1 in the JSON $1, in percent of those of thread 0.
share() {
    awk '/"cycles"/ { gsub(/[^0-9]/, ""); cycles[n++] = $0 }
        END { printf "%d", cycles[0] ? 100 * cycles[1] / cycles[0] : -1 }' "$1"
}

cyclictest --help | head -n 1
cyclictest -q -S -p 80 -i 200 -d 500 -D 1 --json=plain.json >plain.txt 2>&1
cyclictest -q -S -p 80 -i 200 -d 500 -D 1 -h 3 --json=histogram.json >histogram.txt 2>stated.txt
cyclictest -q -S -p 80 -i 200 -D 1 -h 3 >unstated-histogram.txt 2>unstated.txt
grep '^T:' plain.txt | head -n 2
echo "with -h: $(grep '"cycles"' histogram.json | head -n 2 | tr -d '\n')"
cat stated.txt

grep -q '^T: *1 .* I:700 ' plain.txt || fail "thread 1 has another interval than 700 us without -h"
plain=$(share plain.json) histogram=$(share histogram.json)
[ "$plain" -lt 50 ] || fail "thread 1 has $plain % of the cycles without -h"
[ "$histogram" -gt 75 ] || fail "thread 1 has $histogram % of the cycles with -h"
grep -q '^WARN: distance' stated.txt || fail "no warning with -d and -h"
if grep -q '^WARN' unstated.txt; then fail "a warning with -h alone"; fi
echo "ok: thread 1 has $plain % of thread 0's cycles without -h, $histogram % with it"
