#!/bin/sh
# datamash prints for perc:99.9 the percentile before it, and refuses perc:99.9 alone.
#
# Version: datamash 1.7-2 of Debian 12; seen in 1.9-1, too. Needs no root.
# Behaviour: the manual has perc:PERCENTILE, and does not say that the percentile has to be a whole number. Of
# one with a fraction, perc has the last whole parameter in the same command: in the usual list of rising
# percentiles, perc:99.9 and perc:99.99 are printed as perc:99, without a message, and look like a short tail.
# Without such a parameter before it, the command ends with an error. The header line of -H tells.
# Seen, of the numbers from 1 to 1,000:
#   perc:50 1 perc:99 1 perc:99.9 1 perc:99.99 1 max 1       500.5 990.01 990.01 990.01 1000
#   perc:99 1 perc:50 1 perc:99.9 1                          990.01 500.5 500.5
#   perc:99.9 1                                              invalid percentile value 0, exit status 1
#   -H perc:99 1 perc:99.9 1, after a line "us"              perc:99(us) perc:99(us)
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
apt-get -qq -o APT::Sandbox::User=root download datamash=1.7-2 || cannot "datamash=1.7-2 is not to be had"
dpkg -x datamash_*.deb root
PATH=$work/root/usr/bin:$PATH
LC_ALL=C
export PATH LC_ALL
seq 1 1000 >samples

# Prints and keeps what datamash has of the samples with the operations given.
print() {
    datamash -W "$@" <samples >line 2>&1 && status=0 || status=$?
    line=$(tr '\t' ' ' <line)
    echo "$*: $line"
}

datamash --version | head -n 1
print perc:50 1 perc:99 1 perc:99.9 1 perc:99.99 1 max 1
[ "$status" = 0 ] || fail "the exit status is $status"
[ "$line" = "500.5 990.01 990.01 990.01 1000" ] || fail "after 99, the percentiles are others"
print perc:99 1 perc:50 1 perc:99.9 1
[ "$status" = 0 ] || fail "the exit status is $status"
[ "$line" = "990.01 500.5 500.5" ] || fail "after 50, the percentiles are others"
print perc:99.9 1
[ "$status" != 0 ] || fail "alone, the percentile is printed"
case $line in
*"invalid percentile value 0"*) ;;
*) fail "alone, the message is another" ;;
esac
sed -i '1i us' samples
print -H perc:99 1 perc:99.9 1
[ "$(sed -n 1p line | tr '\t' ' ')" = "perc:99(us) perc:99(us)" ] || fail "the header line is another"
echo "ok: perc:99.9 of 1 to 1,000 is 990.01 after perc:99, 500.5 after perc:50, and an error alone"
