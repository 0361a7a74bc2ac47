#!/bin/sh
# ptsematest, pmqtest and svsematest state an interval without its whole seconds.
#
# Version: rt-tests 2.4-1 of Debian 12 (says "V 2.40").
# Behaviour: the interval in the JSON ("interval") and on the screen ("I") is only the part below a second.
# The programs do wait for the whole interval, which only the command line shows. One second is stated as 0.
# Seen:
#   ptsematest -i 1500000 -l 2    "I500000", "interval": 500000, 3 s; pmqtest and svsematest: the same JSON
#   ptsematest -i 1000000 -l 2    "I0", "interval": 0, 2 s
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

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
LD_LIBRARY_PATH=$(dirname "$work"/root/usr/lib/*/libnuma.so.1)
export LD_LIBRARY_PATH

# Prints what program $1 states of the interval $2, in us, and how many seconds its 2 samples took.
stated() {
    begun=$(date +%s)
    "$work/root/usr/bin/$1" -t1 -a0 -i "$2" -l 2 --json="$1.json" >"$1.out" 2>"$1.err" || fail "$1 exits with $?"
    took=$(($(date +%s) - begun))
    json=$(sed -n 's/.*"interval": \([0-9]*\).*/\1/p' "$1.json")
    echo "$1 -i $2: JSON $json, $took s"
}

for program in ptsematest pmqtest svsematest; do
    stated "$program" 1500000
    [ "$json" = 500000 ] || fail "$program states $json"
    [ "$took" -ge 2 ] || fail "$program took $took s"
    stated "$program" 1000000
    [ "$json" = 0 ] || fail "$program states $json"
done
screen=$(sed -n 's/.*, I\([0-9]*\);.*/\1/p' ptsematest.out | tail -n 1)
echo "ptsematest -i 1000000: screen $screen"
[ "$screen" = 0 ] || fail "ptsematest shows $screen"
