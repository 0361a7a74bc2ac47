#!/bin/sh
# jitterdebugger leaves samples of 1,000 us and more out of its histogram, and says so nowhere.
#
# Version: jitterdebugger 0.3.1+git20200117.b90ff3a-4 of Debian 12 (says "0.3"). Needs root.
# Behaviour: the rows of the JSON end at 999 us. A longer sample is in count, min, max and avg and in no
# row, and there is no count of overflows: the rows' sum is below "count", and a percentile of the rows
# cannot see the worst samples. A thread above jitterdebugger makes some 20 of them here.
# Seen:
#   jitterdebugger -o DIR -a 0 -p 80 -D 2s    "count": 1994, "max": 22508; rows up to 844 with 1972 samples
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
[ "$(id -u)" = 0 ] || cannot "a real-time priority takes root"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
for package in jitterdebugger=0.3.1+git20200117.b90ff3a-4; do
    apt-get -qq -o APT::Sandbox::User=root download "$package" || cannot "$package is not to be had"
done
for file in *.deb; do
    dpkg -x "$file" root
done
PATH=$work/root/usr/bin:$PATH

# Keeps CPU 0 from everything below priority 90 for 20 ms.
hog() {
    chrt -f 90 taskset -c 0 sh -c '
        end=$(($(date +%s%N) + 20000000))
        while [ "$(date +%s%N)" -lt "$end" ]; do :; done'
}

jitterdebugger --version
jitterdebugger -o result -a 0 -p 80 -D 2s >screen.txt 2>&1 &
jitterdebugger=$!
sleep 1
hog
wait "$jitterdebugger"

json=result/results.json
field() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$json"; }
rows=$(awk -F '[":, ]+' '/^ *"[0-9]+": *[0-9]+,?$/ { sum += $3; last = $2 }
    END { print sum + 0, last + 0 }' "$json")
sum=${rows% *} last=${rows#* }
count=$(field count) max=$(field max)
echo "count $count, max $max; rows up to $last us with $sum samples"

[ "$max" -ge 1000 ] || fail "no sample of 1,000 us in spite of 20 ms without the CPU"
[ "$last" -lt 1000 ] || fail "there is a row of $last us"
[ "$sum" -lt "$count" ] || fail "the rows have all samples"
if grep -qi 'overflow' "$json"; then fail "the JSON counts overflows"; fi
echo "ok: $((count - sum)) of $count samples are in no row, the maximum of $max us among them"
