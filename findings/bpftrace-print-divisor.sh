#!/bin/sh
# bpftrace's print(@rows, 0, 1000) divides the counts of a hist() by 1000 and leaves its rows in nanoseconds.
#
# Version: bpftrace 0.17.0-1 of Debian 12. Needs root and a kernel with BPF.
# Behaviour: the third argument of print() divides what is printed, as from nanoseconds to microseconds, and
# so it does for avg(), max() and plain values. Of a hist() it divides the number of samples in each row:
# fewer than the divisor are 0, and all others lose their last digits, while the rows stay as they were. Bars
# are drawn from the counts before the division, so that a row of 0 can have the longest one. An lhist() and
# a stats() ignore the divisor.
# Seen, of 2,500 ns twice and 900,000 ns once, and a divisor of 1000:
#   @most = max(n)                         900
#   @rows = hist(n)                        [2K, 4K) 0, [512K, 1M) 0; without a divisor 2 and 1
#   @even = lhist(n, 0, 10000, 1000)       [2000, 3000) 2
# Of 2,500 ns 20 times, and a divisor of 7:
#   @many = hist(n)                        [2K, 4K) 2
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
    @rows = hist(2500); @rows = hist(2500); @rows = hist(900000);
    @even = lhist(2500, 0, 10000, 1000); @even = lhist(2500, 0, 10000, 1000);
    @most = max(900000); @average = avg(2500); @plain = 2500;
    @sums = stats(2500); @sums = stats(2500);
    print(@rows); printf("divided\n");
    print(@rows, 0, 1000); print(@even, 0, 1000); print(@most, 0, 1000); print(@average, 0, 1000);
    print(@plain, 0, 1000); print(@sums, 0, 1000);
    clear(@rows); clear(@even); clear(@most); clear(@average); clear(@plain); clear(@sums);
    unroll (20) { @many = hist(2500); }
    printf("many\n"); print(@many, 0, 7); clear(@many);
    exit();
}' >prints.txt 2>prints.err || fail "the exit status is $?"
grep -v -e '^$' -e ' 0 |  *|$' prints.txt

# The line of $2 in the part $1, without its bar.
line() {
    awk -v part="$1" -v row="$2" '
        $0 == "divided" || $0 == "many" { now = $0; next }
        now == part && index($0, row) == 1 { sub(/ *[|].*/, ""); gsub(/  +/, " "); print }' prints.txt
}
expect() { [ "$(line "$1" "$2")" = "$2$3" ] || fail "$4: '$(line "$1" "$2")'"; }

expect "" "[2K, 4K)" " 2" "without a divisor, the short ones are others"
expect "" "[512K, 1M)" " 1" "without a divisor, the long one is another"
expect divided "[2K, 4K)" " 0" "divided, the short ones are not 0"
expect divided "[512K, 1M)" " 0" "divided, the long one is not 0"
expect divided "[2000, 3000)" " 2" "the rows of lhist() are divided"
expect divided "@most:" " 900" "the maximum is not divided"
expect divided "@average:" " 2" "the average is not divided"
expect divided "@plain:" " 2" "the plain value is not divided"
expect divided "@sums:" " count 2, average 2500, total 5000" "stats() is divided"
expect many "[2K, 4K)" " 2" "20 samples divided by 7 are not 2"
echo "ok: of 900,000 ns, max() is 900 with a divisor of 1000, and hist() has 0 samples in [512K, 1M)"
