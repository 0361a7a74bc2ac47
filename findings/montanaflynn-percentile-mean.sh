#!/bin/sh
# Percentile 99.9 of 999 samples of 10 and one of 1,000,000 is 500,005 by stats of montanaflynn.
#
# Version: github.com/montanaflynn/stats 0.7.1, with Go 1.26. Needs no root.
# Behaviour: Percentile() multiplies the number of samples by the percent and takes the sample of that rank
# if it is a whole number, and otherwise the mean of the samples before and after it, wherever between them it
# is. At the edge of a tail, the result is half of a long sample, a latency that never occurred. Of 1,000
# samples, 99.9 % are 999, but 99.9 / 100 is 0.9990000000000001, so that the rank is no whole number.
# PercentileNearestRank() has no such mean.
# Seen:
#   999 of 10, one of 1,000,000    Percentile 99.9: 500005    PercentileNearestRank 99.9: 10
#   149 of 10, two of 1,000        Percentile 99: 505         PercentileNearestRank 99: 1000
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
command -v go >/dev/null || cannot "go is missing"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
cat >go.mod <<'END'
module percentile

go 1.26.0

require github.com/montanaflynn/stats v0.7.1
END
cat >percentile.go <<'END'
package main

import (
	"fmt"

	"github.com/montanaflynn/stats"
)

// Prints percentiles of short samples of 10 and a number of long ones.
func percentiles(short, long int, longest float64, percent float64) {
	var samples stats.Float64Data
	for range short {
		samples = append(samples, 10)
	}
	for range long {
		samples = append(samples, longest)
	}
	mean, err := stats.Percentile(samples, percent)
	if err != nil {
		panic(err)
	}
	nearest, err := stats.PercentileNearestRank(samples, percent)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d %d %v: %.0f %.0f\n", short, long, percent, mean, nearest)
}

func main() {
	percentiles(999, 1, 1000000, 99.8)
	percentiles(999, 1, 1000000, 99.9)
	percentiles(998, 2, 1000000, 99.9)
	percentiles(149, 2, 1000, 99)
	percentiles(198, 2, 1000, 99)
}
END
GOFLAGS=-mod=mod GOTOOLCHAIN=local go build -o percentile . ||
    cannot "stats 0.7.1 or Go 1.26 is not to be had"
./percentile >percentiles.txt || fail "a percentile is refused"
echo "samples of 10, long ones, percent: Percentile, PercentileNearestRank"
cat percentiles.txt

expect() {
    seen=$(sed -n "s/^$1: //p" percentiles.txt)
    [ "$seen" = "$2" ] || fail "of $1, the percentiles are $seen"
}

expect "999 1 99.8" "10 10"
expect "999 1 99.9" "500005 10"
expect "998 2 99.9" "1000000 1000000"
expect "149 2 99" "505 1000"
expect "198 2 99" "10 10"
echo "ok: of 999 samples of 10 and one of 1,000,000, percentile 99.9 is 500005"
