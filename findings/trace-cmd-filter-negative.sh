#!/bin/sh
# trace-cmd report takes a negative field for a huge number, in filters and in what it prints.
#
# Version: trace-cmd 3.1.6-1 and libtraceevent 1.7.1-1 of Debian 12; Python 3 writes a trace. Needs no root.
# Behaviour: a field that the event's format declares as signed is compared as unsigned. SCHED_DEADLINE
# threads have the priority -1 in the scheduler's events: the filter for real-time threads, "next_prio < 100",
# omits them, "next_prio >= 100" includes them, and "< 0" finds none. "== -1" is accepted and
# taken as "next_prio - 1", true for every priority but 1. There is no message. Arithmetic in the format of
# an event is unsigned, too: if it divides the priority -1 by 10, 429496729 is printed.
# Seen, of one switch each to threads of SCHED_DEADLINE (-1), SCHED_FIFO (49) and SCHED_OTHER (120):
#   next_prio < 100: fifo     next_prio >= 100: deadline, batch     next_prio < 0: none
#   next_prio == -1: deadline, fifo, batch                          next_prio == 49: fifo
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
"""A trace.dat of version 6 with one CPU and three switches."""
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
SWITCH = """name: sched_switch
ID: 300
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char next_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int next_prio;\toffset:28;\tsize:4;\tsigned:1;

print fmt: "%s [%d] tenth=%d", REC->next_comm, REC->next_prio, REC->next_prio / 10
"""


def sized(data):
    return struct.pack("=Q", len(data)) + data


events, running = b"", 0
for name, thread, priority in ((b"deadline", 41, -1), (b"fifo", 42, 49), (b"batch", 43, 120)):
    record = struct.pack("=HBBi16sii", 300, 0, 0, running, name, thread, priority)
    events += struct.pack("=I", 1000 << 5 | len(record) // 4) + record
    running = thread
page = struct.pack("=QQ", 10**9, len(events)) + events

head = b"\x17\x08\x44tracing6\0" + struct.pack("=BBI", 0, 8, 4096)
head += b"header_page\0" + sized(PAGE.encode()) + b"header_event\0" + sized(EVENT.encode())
head += struct.pack("=II", 0, 1) + b"sched\0" + struct.pack("=I", 1) + sized(SWITCH.encode())
head += struct.pack("=II", 0, 0) + sized(b"41 deadline\n42 fifo\n43 batch\n")
head += struct.pack("=I", 1) + b"flyrecord\0" + struct.pack("=QQ", 4096, 4096)
with open("trace.dat", "wb") as file:
    file.write(head.ljust(4096, b"\0") + page.ljust(4096, b"\0"))
END
[ "$(python3 -c 'import sys; print(sys.byteorder)')" = little ] || cannot "the trace is little-endian"
python3 write.py

# Reports the switches that pass the filter $1, without plugins, and sets the names of their threads.
report() {
    "$work/root/usr/bin/trace-cmd" report -N -F "sched_switch: $1" -i trace.dat >report.txt 2>report.err ||
        fail "$1: exit status $?"
    [ ! -s report.err ] || fail "$1: $(cat report.err)"
    threads=$(sed -n 's/.*sched_switch: *\([a-z]*\) .*/\1/p' report.txt | tr '\n' ' ')
    echo "$1: ${threads:-none}"
}

report 'next_pid != 0'
[ "$threads" = "deadline fifo batch " ] || fail "the trace has the switches to $threads"
cat report.txt
grep -q 'deadline \[-1\] tenth=429496729$' report.txt || fail "a tenth of -1 is printed otherwise"
report 'next_prio == 49'
[ "$threads" = "fifo " ] || fail "priority 49 is that of $threads"
report 'next_prio < 100'
[ "$threads" = "fifo " ] || fail "below 100 are $threads"
report 'next_prio >= 100'
[ "$threads" = "deadline batch " ] || fail "from 100 on are $threads"
report 'next_prio < 0'
[ -z "$threads" ] || fail "below 0 are $threads"
report 'next_prio == -1'
[ "$threads" = "deadline fifo batch " ] || fail "equal to -1 are $threads"
echo "ok: the priority -1 is above 100 to a filter, and \"== -1\" is true for all"
