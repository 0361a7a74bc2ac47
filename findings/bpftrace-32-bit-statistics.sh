#!/bin/sh
# bpftrace's min(), max() and hist() have a range of 32 bits, and lose or misplace what is beyond it.
#
# Version: bpftrace 0.17.0-1 of Debian 12. Needs root and a kernel with BPF.
# Behaviour: the manual has all three with a value of 64 bits. min() keeps no value above 4,294,967,295, which
# are 4.3 s in nanoseconds: the map, or the key in it, is not printed at all, and 4,294,967,295 itself comes
# out as 0. max() keeps no negative value, such as the lateness of a timer that is always early. hist() counts
# all from 2^31 on in one row, whose label ends at 4G. avg(), sum() and stats() of the same values are right.
# Seen, of 5,000,000,000 and 6,000,000,000 ns:
#   @least = min(n); @average = avg(n); @rows = hist(n)    @average: 5500000000
#                                                          @rows: [2G, 4G) 2
#   of -7 and -5: @most = max(n); @sums = stats(n)         @sums: count 2, average -6, total -12
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
[ "$(id -u)" = 0 ] || cannot "bpftrace takes root"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
for package in bpftrace=0.17.0-1 libbpf1=1:1.1.2-0+deb12u1 libbpfcc=0.26.0+ds-1 libbsd0=0.11.7-2 \
    libclang1-14=1:14.0.6-12 libdw1=0.188-2.1 libedit2=3.1-20221030-2 libelf1=0.188-2.1 \
    libicu72=72.1-3+deb12u1 libllvm14=1:14.0.6-12 libxml2=2.9.14+dfsg-1.3~deb12u6 libz3-4=4.8.12-3.1; do
    apt-get -qq -o APT::Sandbox::User=root download "$package" || cannot "$package is not to be had"
done
for file in *.deb; do
    dpkg -x "$file" root
done
LD_LIBRARY_PATH=$(dirname "$work"/root/usr/lib/*/libedit.so.2)
export LD_LIBRARY_PATH
bpftrace() { "$work/root/usr/bin/bpftrace" "$@"; }

bpftrace --version
bpftrace -e 'BEGIN { exit() }' >probe.txt 2>&1 || cannot "no program can be loaded: $(tail -n 1 probe.txt)"
bpftrace -e 'BEGIN {
    @least = min(5000000000); @least = min(6000000000);
    @by_task["far"] = min(5000000000); @by_task["near"] = min(7);
    @edge = min(4294967295);
    @average = avg(5000000000); @average = avg(6000000000);
    @rows = hist(5000000000); @rows = hist(6000000000);
    @most = max(-7); @most = max(-5);
    @sums = stats(-7); @sums = stats(-5);
    exit();
}' >statistics.txt 2>statistics.err || fail "the exit status is $?"
grep -v -e '^$' -e ' 0 |  *|$' statistics.txt

grep -q '^@average: 5500000000$' statistics.txt || fail "the average of 5 and 6 s is another"
grep -q '^@sums: count 2, average -6, total -12$' statistics.txt || fail "the sums of -7 and -5 are others"
if grep -q '^@least' statistics.txt; then fail "the minimum of 5 and 6 s is printed"; fi
grep -q '^@by_task\[near\]: 7$' statistics.txt || fail "the minimum of 7 is not printed"
if grep -q '^@by_task\[far\]' statistics.txt; then fail "the minimum of the key \"far\" is printed"; fi
grep -q '^@edge: 0$' statistics.txt || fail "the minimum of 4,294,967,295 is not 0"
if grep -q '^@most' statistics.txt; then fail "the maximum of -7 and -5 is printed"; fi
grep -q '^\[2G, 4G)  *2 ' statistics.txt || fail "5 and 6 s are not in the row up to 4G"
echo "ok: there is no minimum of 5 and 6 s in ns, no maximum of -7 and -5, and a wrong row"
