#!/bin/sh
# trace-cmd report --profile leaves out the first wake-up of each thread, which often is the longest.
#
# Version: trace-cmd 3.1.6-1 and libtraceevent 1.7.1-1 of Debian 12; Python 3 writes a trace. Needs no root.
# Behaviour: the manual has --profile show where wake-up latencies are. The wake-up at which a thread is seen
# for the first time is in no number: not in the count, the average or the maximum. A thread that wakes once
# has no wake-ups at all. The first is that with cold caches and page faults, and in a short trace it weighs
# most. The option -w of the same command has all of them. The exit status is 0, without a message.
# Seen, of a thread "loop" with waits of 10, 1, 2 and 3 us, and a thread "once" with one of 50 us:
#   trace-cmd report --profile    loop: (3) ... Avg: 2000 Max: 3000; once: nothing
#   trace-cmd report -w           Average wakeup latency: 13.200, Maximum Latency: 50.000 usecs
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
command -v python3 >/dev/null || cannot "python3 is missing"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
for package in trace-cmd=3.1.6-1 libtraceevent1=1:1.7.1-1 libtracefs1=1.6.4-1; do
    apt-get -qq -o APT::Sandbox::User=root download "$package" || cannot "$package is not to be had"
done
for file in *.deb; do
    dpkg -x "$file" root
done
LD_LIBRARY_PATH=$(dirname "$work"/root/usr/lib/*/libtraceevent.so.1)
export LD_LIBRARY_PATH

cat >write.py <<'END'
"""A trace.dat of version 6 with one CPU and five wake-ups of two threads."""
import struct

PAGE = """\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;
"""
EVENT = """# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\tdata max type_len  == 28
"""
COMMON = """name: %s
ID: %d
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

"""
WAKEUP = COMMON % ("sched_wakeup", 301) + """\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;

print fmt: "%s:%d", REC->comm, REC->pid
"""
SWITCH = COMMON % ("sched_switch", 300) + """\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;
\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;

print fmt: "%s:%d ==> %s:%d", REC->prev_comm, REC->prev_pid, REC->next_comm, REC->next_pid
"""
IDLE = (b"swapper/0", 0, 120)


def sized(data):
    return struct.pack("=Q", len(data)) + data


def wakeup(thread):
    return struct.pack("=HBBi16siii", 301, 0, 0, 0, *thread, 0)


def switch(thread, next_thread, state):
    return struct.pack("=HBBi16siiq16sii", 300, 0, 0, thread[1], *thread, state, *next_thread)


records = []
for index, (name, tid, wait) in enumerate(
    ((b"loop", 42, 10), (b"loop", 42, 1), (b"loop", 42, 2), (b"loop", 42, 3), (b"once", 43, 50))
):
    thread, start = (name, tid, 49), 1_000_000 * index + 1000
    records += [(start, wakeup(thread)), (start + wait * 1000, switch(IDLE, thread, 0))]
    records.append((start + 100_000, switch(thread, IDLE, 1)))
events, last = b"", 0
for time, record in records:
    events += struct.pack("=I", (time - last) << 5 | len(record) // 4) + record
    last = time
page = struct.pack("=QQ", 10**9, len(events)) + events

head = b"\x17\x08\x44tracing6\0" + struct.pack("=BBI", 0, 8, 4096)
head += b"header_page\0" + sized(PAGE.encode()) + b"header_event\0" + sized(EVENT.encode())
head += struct.pack("=II", 0, 1) + b"sched\0" + struct.pack("=I", 2)
head += sized(SWITCH.encode()) + sized(WAKEUP.encode())
head += struct.pack("=II", 0, 0) + sized(b"42 loop\n43 once\n")
head += struct.pack("=I", 1) + b"flyrecord\0" + struct.pack("=QQ", 8192, 4096)
with open("trace.dat", "wb") as file:
    file.write(head.ljust(8192, b"\0") + page.ljust(4096, b"\0"))
END
[ "$(python3 -c 'import sys; print(sys.byteorder)')" = little ] || cannot "the trace is little-endian"
python3 write.py

# Reports the trace with the option $1, without plugins of the machine, as $2.
report() {
    "$work/root/usr/bin/trace-cmd" report -N "$1" -i trace.dat >"$2" 2>report.err || fail "$1 exits with $?"
}

report --profile profile.txt
report -w wakeups.txt
echo "--profile:"
grep -e '^task:' -e sched_wakeup profile.txt
echo "-w:"
grep -e 'wakeup latency' -e 'imum Latency' wakeups.txt | head -n 3

waits=$(sed -n 's/.*sched_wakeup:.* (\([0-9]*\)).* Avg: \([0-9]*\) Max: \([0-9]*\).*/\1 \2 \3/p' \
    profile.txt)
grep -q '^task: once-43' profile.txt || fail "the thread that wakes once is not in the profile"
[ "$waits" = "3 2000 3000" ] || fail "the profile has count, average and maximum $waits"
[ "$(grep -c 'Latency: [0-9.]* usecs$' wakeups.txt)" = 5 ] || fail "-w has another number of wake-ups"
grep -q '^Average wakeup latency: 13.200 usecs' wakeups.txt || fail "-w has another average"
grep -q '^Maximum Latency: 50.000 usecs' wakeups.txt || fail "-w has another maximum"
echo "ok: of five waits of 10, 1, 2, 3 and 50 us, --profile has three, and a maximum of 3 us"
