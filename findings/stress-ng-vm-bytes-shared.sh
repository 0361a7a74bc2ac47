#!/bin/sh
# stress-ng --vm 2 --vm-bytes 256M writes to 128 MiB per worker, where its manual has 256 MiB per worker.
#
# Version: stress-ng 0.15.06-2 of Debian 12. Needs no root.
# Behaviour: the manual's entry of --vm-bytes is the size per vm worker, and so it is with the older stress,
# whose options stress-ng takes. The size is that of all workers together: each gets its part. A load of one
# worker per CPU is as much smaller than intended as there are CPUs, and may fit into a cache. Neither -v nor
# the metrics state a size; only an example at the end of the manual, with a percentage, has it so.
# Seen, as resident memory of the workers, in MiB:
#   --vm 1 --vm-bytes 256M    258
#   --vm 2 --vm-bytes 256M    130 130
#   --vm 4 --vm-bytes 256M    66 66 66 66
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
for package in stress-ng=0.15.06-2 libipsec-mb1=1.3-2 libjudydebian1=1.0.5-5+b2 libsctp1=1.0.19+dfsg-2 \
    libapparmor1=3.0.8-3 libbsd0=0.11.7-2 libdrm2=2.4.114-1+b1 libegl1=1.6.0-1 libexpat1=2.5.0-1+deb12u5 \
    libffi8=3.4.4-1 libgbm1=22.3.6-1+deb12u2 libgles2=1.6.0-1 libglvnd0=1.6.0-1 libjpeg62-turbo=1:2.1.5-2 \
    libkmod2=30+20221128-1 libmd0=1.0.4-2 libwayland-server0=1.21.0-1 libxxhash0=0.8.1-1; do
    apt-get -qq -o APT::Sandbox::User=root download "$package" || cannot "$package is not to be had"
done
for file in *.deb; do
    dpkg -x "$file" root
done
LD_LIBRARY_PATH=$(dirname "$work"/root/usr/lib/*/libsctp.so.1):$(dirname "$work"/root/lib/*/libkmod.so.2)
export LD_LIBRARY_PATH

# Prints the memory of each of $1 workers in MiB, as soon as a second changes nothing in it.
memory() {
    "$work/root/usr/bin/stress-ng" --vm "$1" --vm-bytes 256M --vm-keep --vm-method zero-one --timeout 60 \
        --temp-path "$work" >stress.txt 2>&1 &
    stress=$!
    before=none
    for second in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        sleep 1
        # Each worker is a process with a child, and the child has the memory.
        now=$(for main in $(pgrep -P "$stress"); do
            for child in $(pgrep -P "$main"); do
                awk '/^VmRSS:/ { printf "%d ", $2 / 1024 }' "/proc/$child/status"
            done
        done)
        [ "$now" != "$before" ] || [ -z "$now" ] || break
        before=$now
    done
    kill "$stress"
    wait "$stress" || true
    echo "${now% }"
}
# Succeeds if there are $2 numbers in $1, each from $3 to $4.
within() {
    echo "$1" | awk -v n="$2" -v least="$3" -v most="$4" '
        { if (NF != n) exit 1; for (i = 1; i <= NF; i++) if ($i < least || $i > most) exit 1 }'
}

zcat root/usr/share/man/man1/stress-ng.1.gz | grep -q '^mmap N bytes per vm worker' ||
    fail "the manual has no size per worker"
one=$(memory 1)
two=$(memory 2)
four=$(memory 4)
echo "--vm 1: $one"
echo "--vm 2: $two"
echo "--vm 4: $four"
within "$one" 1 250 280 || fail "one worker has $one MiB"
within "$two" 2 125 150 || fail "two workers have $two MiB"
within "$four" 4 62 85 || fail "four workers have $four MiB"
echo "ok: with --vm-bytes 256M, two workers have $two MiB, and four $four MiB"
