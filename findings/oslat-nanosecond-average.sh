#!/bin/sh
# oslat -W with a width that is not a multiple of 1,000 ns prints a wrong average, and JSON in two units.
#
# Version: rt-tests 2.6-1.1 of Debian 13 (says "V 2.60"); seen in 2.10-1, too. Needs root.
# Behaviour: gaps behind the last row are added in nanoseconds to a sum of microseconds, so that the average
# is above what the rows and the duration allow. In the JSON "min" and "max" are then nanoseconds,
# "avg" stays in microseconds, and no field says so; with a multiple of 1,000 ns all are microseconds.
# A thread of higher priority than oslat causes a gap of 20 ms here.
# Seen:
#   oslat -q -D 2 -c 0 -C 0 -W 1500    Average: 2.849 (us), at most 1.529 by its rows and duration
#                                      Maximum: 25610.371 (us); JSON "avg": 2.848593, "max": 25610371
#   the same with -W 2000              Maximum: 24258 (us); JSON "max": 24258
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
[ "$(id -u)" = 0 ] || cannot "a real-time priority takes root"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"

# Debian 13 next to the machine's own release, with a separate configuration and lists.
uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' \
    'Label: Debian' | head -n 1)
[ -n "$uri" ] || cannot "apt has no source of Debian's"
mkdir -p lists/partial cache/archives/partial
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri trixie main" >sources.list
cat >apt.conf <<END
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$work/lists";
Dir::Cache "$work/cache";
APT::Sandbox::User "root";
Acquire::Languages "none";
END
APT_CONFIG=$work/apt.conf
export APT_CONFIG
apt-get -qq update || cannot "the lists of Debian 13 are not to be had"
for package in rt-tests=2.6-1.1 libnuma1=2.0.19-1 libc6=2.41-12+deb13u5; do
    apt-get -qq download "$package" || cannot "$package is not to be had"
done
for file in *.deb; do
    dpkg -x "$file" root
done

# Keeps CPU 0 from everything below priority 90 for 20 ms.
hog() {
    chrt -f 90 taskset -c 0 sh -c '
        end=$(($(date +%s%N) + 20000000))
        while [ "$(date +%s%N)" -lt "$end" ]; do :; done'
}

# Runs oslat on Debian 13's C library.
oslat() {
    loader=$(ls "$work"/root/usr/lib/*/ld-linux*.so.*)
    "$loader" --library-path "${loader%/*}" "$work/root/usr/bin/oslat" "$@"
}
# Runs oslat with the width $1: a second to find the clock's frequency, then two that count.
measure() {
    oslat -q -D 2 -c 0 -C 0 -W "$1" --json="$1.json" >"$1.txt" 2>&1 &
    oslat=$!
    sleep 2.2
    hog
    wait "$oslat"
}
text() { sed -n "s/.*$2:[[:space:]]*\([0-9.]*\) (.*/\1/p" "$1.txt"; }
json() { sed -n "s/.*\"$2\": *\([0-9.]*\).*/\1/p" "$1.json"; }

measure 1500
measure 2000
sed -n 1p 1500.txt
# All rows at their upper ends; the gaps of the last row cannot be longer than the run.
bound=$(awk -F '[":, ]+' -v run="$(text 1500 Duration)" '
    /^ *"[0-9.]+": *[0-9]+,?$/ { sum += $2 * $3; n += $3 }
    END { printf "%.3f", (sum + run * 1000000) / n }' 1500.json)
for width in 1500 2000; do
    echo "-W $width: Average $(text $width Average), Maximum $(text $width Maximum) us;" \
        "JSON avg $(json $width avg), max $(json $width max)"
done

average=$(json 1500 avg)
awk -v average="$average" -v bound="$bound" 'BEGIN { exit !(average > bound) }' ||
    fail "with -W 1500, the average of $average us is within its rows ($bound us)"
[ "$(json 1500 max)" = "$(text 1500 Maximum | tr -d .)" ] ||
    fail "with -W 1500, \"max\" is not in nanoseconds"
[ "$(json 2000 max)" = "$(text 2000 Maximum)" ] || fail "with -W 2000, \"max\" is not in microseconds"
echo "ok: with -W 1500, the average is $average us where its rows allow $bound, and \"max\" is nanoseconds"
