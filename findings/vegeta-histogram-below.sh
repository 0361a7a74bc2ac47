#!/bin/sh
# vegeta's histogram counts samples below its first bound in the last row, as the longest ones.
#
# Version: vegeta 12.13.0 as a Go library, with Go 1.26. Needs no root.
# Behaviour: the bounds of a Histogram need not start at 0, and its documentation does not ask for it. A
# sample that is in no other row is counted in the last, which goes to infinity, and so is one that is shorter
# than the first bound. Calls that are faster than the first bound make a long tail, and the faster the
# machine, the longer. The command's own parser of "hist[1ms,2ms,5ms]" puts a 0 before the bounds.
# Seen, of four samples of 0.5 ms, and of 1, 3 and 9 ms:
#   Buckets{1 ms, 2 ms, 5 ms}      [1ms, 2ms] 1, [2ms, 5ms] 1, [5ms, +Inf] 5
#   UnmarshalText("[1ms,2ms,5ms]") [0s, 1ms] 4, [1ms, 2ms] 1, [2ms, 5ms] 1, [5ms, +Inf] 1
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
command -v go >/dev/null || cannot "go is missing"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
cat >go.mod <<'END'
module count

go 1.26.0

require github.com/tsenart/vegeta/v12 v12.13.0
END
cat >count.go <<'END'
package main

import (
	"fmt"
	"os"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

func main() {
	const ms = time.Millisecond
	given := vegeta.Buckets{1 * ms, 2 * ms, 5 * ms}
	var parsed vegeta.Buckets
	if err := parsed.UnmarshalText([]byte("[1ms,2ms,5ms]")); err != nil {
		panic(err)
	}
	for _, bounds := range []vegeta.Buckets{given, parsed} {
		histogram := vegeta.Histogram{Buckets: bounds}
		for _, sample := range []time.Duration{ms / 2, ms / 2, ms / 2, ms / 2, 1 * ms, 3 * ms, 9 * ms} {
			histogram.Add(&vegeta.Result{Latency: sample})
		}
		vegeta.NewHistogramReporter(&histogram).Report(os.Stdout)
		fmt.Println("counts", len(bounds), histogram.Counts)
	}
}
END
GOFLAGS=-mod=mod GOTOOLCHAIN=local go build -o count . || cannot "vegeta 12.13.0 or Go 1.26 is not to be had"
./count >rows.txt || fail "the samples or the bounds are refused"
cat rows.txt

# The counts of the histogram with $1 rows.
counts() { sed -n "s/^counts $1 //p" rows.txt; }

[ "$(counts 4)" = "[4 1 1 1]" ] || fail "from 0 on, the counts are $(counts 4)"
[ "$(counts 3)" = "[1 1 5]" ] || fail "from 1 ms on, the counts are $(counts 3)"
echo "ok: four samples of 0.5 ms are counted as 5 ms and more"
