#!/bin/sh
# The Go log reader of HdrHistogram skips no warm-up: a relative range is taken from twice the start time.
#
# Version: hdrhistogram-go 1.4.0, with Go 1.26. Needs no root.
# Behaviour: NextIntervalHistogramWithRange() has a parameter "absolute"; if it is false, the range counts
# from the start of the log. The start is added there instead of subtracted, so that a lower limit omits
# nothing, and an upper limit leaves nothing: no histogram, no error, as at the end of a log. The same range
# as absolute time is right, but an untagged histogram after a skipped one gets the tag of the skipped one.
# Seen, of four histograms of 10 s, the first tagged "warm-up" with 9,007, the others untagged with 10:
#   from 10 s on, relative       4 histograms, maximum 9007
#   up to 20 s, relative         0 histograms, no error
#   from 10 s on, absolute       3 histograms, maximum 10, the first of them tagged "warm-up"
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
command -v go >/dev/null || cannot "go is missing"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
cat >go.mod <<'END'
module read

go 1.26.0

require github.com/HdrHistogram/hdrhistogram-go v1.4.0
END
cat >read.go <<'END'
package main

import (
	"bytes"
	"fmt"
	"math"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

const start = 1790000000

func main() {
	var log bytes.Buffer
	writer := hdr.NewHistogramLogWriter(&log)
	writer.OutputStartTime(start * 1000)
	writer.OutputLegend()
	for i := int64(0); i < 4; i++ {
		interval := hdr.New(1, 3600000000, 3)
		interval.SetStartTimeMs((start + i*10) * 1000)
		interval.SetEndTimeMs((start + i*10 + 10) * 1000)
		if i == 0 {
			interval.SetTag("warm-up")
			interval.RecordValue(9007)
		} else {
			interval.RecordValue(10)
		}
		writer.OutputIntervalHistogram(interval)
	}
	for _, times := range []struct {
		name     string
		from, to float64
		absolute bool
	}{
		{"relative-from-10", 10, math.MaxFloat64, false},
		{"relative-to-20", 0, 20, false},
		{"absolute-from-10", start + 10, math.MaxFloat64, true},
	} {
		reader := hdr.NewHistogramLogReader(bytes.NewReader(log.Bytes()))
		count, maximum, tags := 0, int64(0), ""
		for {
			interval, err := reader.NextIntervalHistogramWithRange(times.from, times.to, times.absolute)
			if err != nil {
				panic(err)
			}
			if interval == nil {
				break
			}
			count, maximum = count+1, max(maximum, interval.Max())
			tags += "[" + interval.Tag() + "]"
		}
		fmt.Println(times.name, count, maximum, tags)
	}
}
END
GOFLAGS=-mod=mod GOTOOLCHAIN=local go build -o read . || cannot "hdrhistogram-go 1.4.0 is not to be had"
./read >ranges.txt || fail "the log is refused"
echo "range, histograms, maximum, tags:"
cat ranges.txt

# The values in the line of $1.
seen() { sed -n "s/^$1 //p" ranges.txt; }

[ "$(seen relative-from-10)" = "4 9007 [warm-up][][][]" ] || fail "from 10 s on: $(seen relative-from-10)"
[ "$(seen relative-to-20)" = "0 0 " ] || fail "up to 20 s: $(seen relative-to-20)"
[ "$(seen absolute-from-10)" = "3 10 [warm-up][][]" ] || fail "absolute: $(seen absolute-from-10)"
echo "ok: after the first 10 s that are to be skipped, the maximum is still theirs, 9007"
