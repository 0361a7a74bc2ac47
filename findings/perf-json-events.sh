#!/bin/sh
# perf data convert --to-json omits the event of each sample, and the fields of tracepoints.
#
# Version: linux-perf 6.1.192-3 of Debian 12. Needs root.
# Behaviour: of a recording of several events, such as wakeups and switches, the JSON has all samples in one
# list with time, task, CPU and call chain. No field has the event of a sample, and none has the data of the
# tracepoint (prev_state, target_cpu, priorities), so that no latency can be read from it. The converter
# reports that it converted all samples, and exits with 0; perf script shows both from the file.
# Seen:
#   perf record -e sched:sched_waking,sched:sched_switch -a -- sleep 0.3
#   perf script       sched:sched_waking: comm=sleep pid=... prio=120 target_cpu=001
#   the JSON          all samples have "timestamp", "pid", "tid", "cpu", "comm" and "callchain", and no more
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
[ "$(id -u)" = 0 ] || cannot "recording takes root"

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
export LD_LIBRARY_PATH PERF_CONFIG
perf() { "$work/root/usr/bin/perf" "$@"; }

perf --version
perf record -q -e sched:sched_waking,sched:sched_switch -a -o recording -- sleep 0.3 2>record.err ||
    cannot "the scheduler's tracepoints cannot be recorded here"
perf script -i recording -F event,trace >script.txt 2>/dev/null
perf data convert -i recording --to-json samples.json >convert.txt 2>&1 && status=0 || status=$?
cat convert.txt
wakings=$(grep -c 'sched_waking:.*target_cpu=' script.txt || true)
switches=$(grep -c 'sched_switch:.*prev_state=' script.txt || true)
samples=$(grep -c '"timestamp":' samples.json || true)
# What follows the headers, which have the command line.
sed '1,/"samples":/d' samples.json >list.json
keys=$(sed -n 's/^\t\t\t"\([a-z_]*\)":.*/\1/p' list.json | sort -u | tr '\n' ' ')
echo "perf script: $wakings wakings and $switches switches; JSON: $samples samples with $keys"

[ "$wakings" -gt 0 ] && [ "$switches" -gt 0 ] || cannot "nothing was recorded here"
[ "$status" = 0 ] || fail "the exit status of the converter is $status"
[ "$samples" = $((wakings + switches)) ] || fail "the JSON has $samples samples"
[ "$keys" = "callchain comm cpu pid tid timestamp " ] || fail "the samples have the fields $keys"
if grep -q -e sched:sched -e target_cpu -e prev_state list.json; then fail "the JSON has events or fields"; fi
echo "ok: none of $samples samples in the JSON has an event or a field of it"
