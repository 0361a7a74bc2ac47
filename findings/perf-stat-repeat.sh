#!/bin/sh
# perf stat -r prints the counts of the last run only, with the deviation of all runs.
#
# Version: linux-perf 6.1.192-3 of Debian 12. Needs root. 6.12.117-1 of Debian 13 prints averages.
# Behaviour: the manual has -r print "average + stddev". The line of the elapsed time is the average of all
# runs, and so is user_time; duration_time, task-clock, page-faults and context-switches are those of the last
# run, on the screen and with -x and -j, which print no elapsed time. The value behind "+-" is not the
# deviation of the runs but that of their average, smaller by the root of the number of runs; on the lines
# of events it is in percent of the printed count, and in JSON it is "variance". 6.12 does the same.
# Seen, with runs of 0.6, 0.1, 0.6 and 0.1 s (their deviation is 0.243 s):
#   perf stat -r 4 -e duration_time ./run       161038934 ns duration_time, 0.399 +- 0.122 s elapsed
#   perf stat -r 4 -j -e duration_time ./run    "counter-value" : "169037393.000000", "variance" : 75.07
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
[ "$(id -u)" = 0 ] || cannot "counting takes root"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
for package in linux-perf=6.1.192-3 libbabeltrace1=1.5.11-1+b2 libdw1=0.188-2.1 libelf1=0.188-2.1 \
    libglib2.0-0=2.74.6-2+deb12u9 libnuma1=2.0.16-1 libopencsd1=1.3.3-1 libpcre2-8-0=10.42-1+deb12u2 \
    libperl5.36=5.36.0-7+deb12u4 libpython3.11=3.11.2-6+deb12u9 libslang2=2.3.3-3 libunwind8=1.6.2-3 \
    libuuid1=2.38.1-5+deb12u3 libzstd1=1.5.4+dfsg2-5; do
    apt-get -qq -o APT::Sandbox::User=root download "$package" || cannot "$package is not to be had"
done
for file in *.deb; do
    dpkg -x "$file" root
done
folder=$(dirname "$work"/root/usr/lib/*/libnuma.so.1)
LD_LIBRARY_PATH=$folder:$work/root/lib/${folder##*/}
PERF_CONFIG=/dev/null
LC_ALL=C
export LD_LIBRARY_PATH PERF_CONFIG LC_ALL
perf() { "$work/root/usr/bin/perf" "$@"; }

# Every second run starts 20 programs and takes 0.1 s; the others take 0.6 s. Each notes its nanoseconds.
cat >run <<'END'
#!/bin/sh
start=$(date +%s%N)
if [ -e short ]; then
    rm short
    for program in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        /bin/true
    done
    sleep 0.1
else
    : >short
    sleep 0.6
fi
echo $(($(date +%s%N) - start)) >>times
END
chmod +x run

# Counts an even number of runs, or one, with the options given; the first run is a long one, the next short.
count() {
    rm -f times
    perf stat -o counts -e duration_time,page-faults "$@" ./run || cannot "nothing can be counted here"
}
# The count of the event $1.
event() { awk -v event="$1" '{ for (i = 2; i <= NF; i++) if ($i == event) print $1 }' counts; }
# Of the runs: the average, the deviation, and the deviation of the average, in nanoseconds.
statistics() {
    awk '{ sum += $1; squares += $1 * $1 }
        END {
            deviation = sqrt((squares - sum * sum / NR) / (NR - 1))
            printf "%.0f %.0f %.0f\n", sum / NR, deviation, deviation / sqrt(NR)
        }' times
}
# Whether $1 and $2 differ by less than the part $3 of $2.
near() { awk -v a="$1" -v b="$2" -v part="$3" 'BEGIN { d = a - b; exit !((d < 0 ? -d : d) < part * b) }'; }
# 1,000,000,000 times $1, or the times $2.
scale() { awk -v a="$1" -v by="${2:-1e9}" 'BEGIN { printf "%.0f", a * by }'; }

perf --version
count
few=$(event page-faults)
count
many=$(event page-faults)
echo "page-faults of one long run: $few, of one short run: $many"

count -r 4
sed '/^#/d; /^$/d' counts
statistics >statistics.txt
read -r average deviation error <statistics.txt
last=$(tail -n 1 times)
echo "ns: average $average, last run $last, deviation $deviation, deviation of the average $error"
duration=$(event duration_time)
faults=$(event page-faults)
elapsed=$(sed -n 's/^ *\([0-9.]*\) +- [0-9.]* seconds time elapsed.*/\1/p' counts)
behind=$(sed -n 's/^ *[0-9.]* +- \([0-9.]*\) seconds time elapsed.*/\1/p' counts)
near "$(scale "$elapsed")" "$average" 0.1 || fail "the elapsed time of $elapsed s is no average"
near "$duration" "$last" 0.2 || fail "duration_time is $duration ns where the last run took $last"
near "$faults" "$many" 0.1 || fail "page-faults is $faults where the last run has some $many"
near "$(scale "$behind")" "$error" 0.1 || fail "the number behind +- is $behind s"

count -r 4 -j
grep duration_time counts
statistics >statistics.txt
read -r average deviation error <statistics.txt
last=$(tail -n 1 times)
value=$(sed -n 's/.*"counter-value" : "\([0-9]*\).*duration_time.*/\1/p' counts)
variance=$(sed -n 's/.*duration_time.*"variance" : \([0-9.]*\).*/\1/p' counts)
near "$value" "$last" 0.2 || fail "in JSON, duration_time is $value ns where the last run took $last"
near "$(scale "$variance" "$value")" "$(scale "$error" 100)" 0.1 || fail "in JSON, \"variance\" is $variance"
echo "ok: duration_time is $value ns where the average of the runs is $average"
