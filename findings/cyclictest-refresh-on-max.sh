#!/bin/sh
# cyclictest -M ends with the count of the last new maximum, not of the run.
#
# Version: rt-tests 2.4-1 of Debian 12 (says "V 2.40"); seen in 2.10-1, too. Needs root.
# Behaviour: without -q, the last "T:" line of a run is taken for its summary. With -M (refresh on a new
# maximum) nothing is printed at the end, so count, average and last value are those of the last maximum.
# The JSON of the same run has all cycles. A thread above cyclictest makes an early maximum here.
# Seen:
#   cyclictest -M -p 80 -a 0 -t 1 -i 1000 -l 3000 --json=FILE    T: 0 ... C:    499 ...    "cycles": 3000
#   the same without -M                                         T: 0 ... C:   3000 ...    "cycles": 3000
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

# Keeps CPU 0 from everything below priority 90 for 20 ms.
hog() {
    chrt -f 90 taskset -c 0 sh -c '
        end=$(($(date +%s%N) + 20000000))
        while [ "$(date +%s%N)" -lt "$end" ]; do :; done'
}

# Runs cyclictest with the options $2, and sets the counts of the text and of the JSON.
count() {
    cyclictest $2 -p 80 -a 0 -t 1 -i 1000 -l 3000 --json="$1.json" >"$1.txt" 2>&1 &
    cyclictest=$!
    sleep 0.5
    hog
    wait "$cyclictest"
    text=$(sed -n 's/.* C: *\([0-9]*\) Min.*/\1/p' "$1.txt" | tail -n 1)
    json=$(sed -n 's/.*"cycles": *\([0-9]*\).*/\1/p' "$1.json")
    echo "$1: text C: $text, JSON cycles: $json"
}

cyclictest --help | head -n 1
count always ""
[ "$text" = 3000 ] && [ "$json" = 3000 ] || fail "without -M, the text ends with $text, the JSON with $json"
count on-max -M
[ "$json" = 3000 ] || fail "with -M, the JSON has $json cycles"
[ "$text" -lt 3000 ] || fail "with -M, the text ends with the count of the run"
echo "ok: with -M, the text ends with $text of $json cycles"
