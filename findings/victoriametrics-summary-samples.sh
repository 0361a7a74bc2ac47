#!/bin/sh
# Percentile 99.9 of a VictoriaMetrics Summary is 10 where 200 of 100,000 samples are 1,000.
#
# Version: github.com/VictoriaMetrics/metrics 1.40.2, with Go 1.26. Needs no root.
# Behaviour: the quantiles of a Summary come from 1,000 samples that are kept at random, however many there
# are in its window; nothing documents that. Of those, percentile 99.9 is one of the two longest, so that it
# is left to chance whether it is long. The random numbers begin alike in each window and in each process, so
# that every run over the same samples has the same wrong result. The quantile 1 is exact, as the maximum is
# kept apart, and so are sum and count. A Histogram of the same package has all samples.
# Seen, with every 500th sample of 1,000 and all others of 10:
#   Summary      quantile 0.999: 10, quantile 1: 1000, count 100000
#   Histogram    99800 up to 10, 200 from 880 to 1000
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
command -v go >/dev/null || cannot "go is missing"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
cat >go.mod <<'END'
module wait

go 1.26.0

require github.com/VictoriaMetrics/metrics v1.40.2
END
cat >wait.go <<'END'
package main

import (
	"os"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

func main() {
	set := metrics.NewSet()
	quantiles := []float64{0.5, 0.99, 0.999, 1}
	summary := set.NewSummaryExt("summary", 5*time.Minute, quantiles)
	histogram := set.NewHistogram("histogram")
	for i := range 100000 {
		wait := 10.0
		if i%500 == 0 {
			wait = 1000
		}
		summary.Update(wait)
		histogram.Update(wait)
	}
	set.WritePrometheus(os.Stdout)
}
END
GOFLAGS=-mod=mod GOTOOLCHAIN=local go build -o wait . || cannot "metrics 1.40.2 or Go 1.26 is not to be had"
./wait >page.txt || fail "the samples are refused"
cat page.txt

expect() { grep -q -x -F "$1" page.txt || fail "there is no line $1"; }

expect 'summary{quantile="0.5"} 10'
expect 'summary{quantile="0.999"} 10'
expect 'summary{quantile="1"} 1000'
expect 'summary_count 100000'
expect 'histogram_bucket{vmrange="8.799e+02...1.000e+03"} 200'
expect 'histogram_bucket{vmrange="8.799e+00...1.000e+01"} 99800'
echo "ok: with 200 of 100,000 samples of 1000, percentile 99.9 is 10"
