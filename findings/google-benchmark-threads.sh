#!/bin/sh
# Google Benchmark divides the real time of a call by the number of threads: 10 ms of four threads are 2.6 ms.
#
# Version: libbenchmark-dev 1.7.1-1 of Debian 12, with a C++ compiler. Needs no root.
# Behaviour: Threads(4) runs the function in four threads at once, for example to find out how long a
# lock takes with others. The column "Time" and "real_time" of the JSON are then the mean time of a call
# divided by four, with and without UseRealTime(), although each thread waits for the whole time. The manual
# does not say so. A call seems to become faster the more threads there are.
# Seen, of a function that sleeps for 10 ms:
#   wait/iterations:50/real_time/threads:1     10.3 ms
#   wait/iterations:50/real_time/threads:4     2.59 ms
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
command -v c++ >/dev/null || cannot "a C++ compiler is missing"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
for package in libbenchmark-dev=1.7.1-1 libbenchmark1debian=1.7.1-1; do
    apt-get -qq -o APT::Sandbox::User=root download "$package" || cannot "$package is not to be had"
done
for file in *.deb; do
    dpkg -x "$file" root
done
library=$(ls root/usr/lib/*/libbenchmark.so.1.7.1)
LD_LIBRARY_PATH=$work/${library%/*}
LC_ALL=C
export LD_LIBRARY_PATH LC_ALL

cat >wait.cc <<'END'
#include <benchmark/benchmark.h>

#include <chrono>
#include <thread>

static void wait(benchmark::State &state) {
    for (auto _ : state) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}
BENCHMARK(wait)->Iterations(50)->UseRealTime()->Unit(benchmark::kMillisecond)->Threads(1)->Threads(4);
BENCHMARK(wait)->Iterations(50)->Unit(benchmark::kMillisecond)->Threads(4);
BENCHMARK_MAIN();
END
c++ -std=c++17 -O1 -I root/usr/include wait.cc -o wait "$library" -pthread ||
    fail "the library cannot be used"
./wait --benchmark_format=console --benchmark_out_format=json --benchmark_out=wait.json 2>/dev/null ||
    fail "the benchmarks end with an error"

# The real time of the benchmark $1, in milliseconds.
time_of() {
    awk -F '[:,]+ *' -v name="\"$1\"" '
        $1 ~ /"name"/ { found = index($0, name) > 0 }
        found && $1 ~ /"real_time"/ { print $2 + 0 }' wait.json
}
# Whether the milliseconds $1 are from $2 to below $3.
within() { awk -v ms="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(ms != "" && ms >= low && ms < high) }'; }

one=$(time_of wait/iterations:50/real_time/threads:1)
four=$(time_of wait/iterations:50/real_time/threads:4)
cpu=$(time_of wait/iterations:50/threads:4)
within "$one" 10 20 || fail "a sleep of 10 ms in one thread has a time of $one ms"
within "$four" 2.5 9 || fail "a sleep of 10 ms in each of four threads has a time of $four ms"
within "$cpu" 2.5 9 || fail "without UseRealTime(), a sleep of 10 ms in each of four threads has $cpu ms"
echo "ok: a sleep of 10 ms has a time of $one ms in one thread, and of $four ms in each of four"
