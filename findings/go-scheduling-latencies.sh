#!/bin/sh
# Go's histogram of scheduling latencies has one of eight waits; the others, and the longest, are in no row.
#
# Version: Go 1.26, and client_golang 1.25.0 for the page of Prometheus. Needs no root.
# Behaviour: the runtime metric "/sched/latencies:seconds" is documented as the distribution of the time that
# goroutines were runnable before they ran. The runtime times one of eight such waits of a goroutine, and the
# counts are not multiplied. A long wait is thus missed seven times of eight, and the rate of the count is
# an eighth of that of the wake-ups. client_golang exports it as go_sched_latencies_seconds.
# Seen, with one processor, on which each wake-up waits for a loop of 25 ms:
#   72 of 80 waits of more than 5 ms by the goroutine's own clock, 10 of more than 5 ms in the histogram
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

require github.com/prometheus/client_golang v1.25.0
END
cat >wait.go <<'END'
package main

import (
	"fmt"
	"regexp"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

const wakeups = 80

var registry = prometheus.NewRegistry()

// long is the number of waits in rows above some milliseconds.
func long() uint64 {
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		if family.GetName() != "go_sched_latencies_seconds" {
			continue
		}
		histogram := family.Metric[0].GetHistogram()
		short := uint64(0)
		for _, row := range histogram.Bucket {
			if row.GetUpperBound() < 0.005 {
				short = row.GetCumulativeCount()
			}
		}
		return histogram.GetSampleCount() - short
	}
	panic("the page has no go_sched_latencies_seconds")
}

func main() {
	runtime.GOMAXPROCS(1)
	rule := collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile("^/sched/latencies:seconds$")}
	registry.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(rule)))
	wake, woken := make(chan time.Time), make(chan time.Duration, 1)
	go func() {
		for start := range wake {
			woken <- time.Since(start)
		}
	}()
	runtime.Gosched()

	before, clocked := long(), 0
	for range wakeups {
		start := time.Now()
		wake <- start
		for time.Since(start) < 25*time.Millisecond {
		}
		if <-woken > 5*time.Millisecond {
			clocked++
		}
	}
	fmt.Println(wakeups, clocked, long()-before)
}
END
GOFLAGS=-mod=mod GOTOOLCHAIN=local go build -o wait . ||
    cannot "client_golang 1.25.0 or Go 1.26 is not to be had"
go version
./wait >waits.txt || fail "the waits are not measured"
read -r wakeups clocked counted <waits.txt
echo "wake-ups $wakeups, by the clock $clocked of more than 5 ms, in the histogram $counted"

[ "$clocked" -ge 40 ] || cannot "the loop does not keep the goroutine waiting here"
[ "$counted" -ge 5 ] || fail "the histogram has $counted of $clocked long waits"
[ $((counted * 4)) -le "$clocked" ] || fail "the histogram has $counted of $clocked long waits"
echo "ok: of $clocked waits of more than 5 ms, the histogram has $counted"
