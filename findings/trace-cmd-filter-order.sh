#!/bin/sh
# trace-cmd report shows all events, without a message, if its filter follows the file's name.
#
# Version: trace-cmd 3.1.6-1 and libtraceevent 1.7.1-1 of Debian 12; Python 3 writes a trace. Needs no root.
# Behaviour: the manual gives -F no place among the options. After -i FILE it has no effect, not even if it
# is not a filter, which is refused before -i. A query that matches no event then shows all events. Of two
# files, only the first is filtered, wherever -F is. The exit status is 0 in each case.
# Seen, of three switches, one of them to the thread 43:
#   trace-cmd report -F 'sched_switch: next_pid == 43' -i FILE            1 event
#   trace-cmd report -i FILE -F 'sched_switch: next_pid == 43'            3 events, as with -F 'no filter'
#   trace-cmd report -F 'sched_switch: next_pid == 43' -i FILE -i OTHER   1 event of FILE, 3 of OTHER
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

print fmt: "%s:%d [%d]", REC->next_comm, REC->next_pid, REC->next_prio
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
cp trace.dat other.dat

# Reports with the options of the command line, without plugins, and prints and counts the events.
report() {
    "$work/root/usr/bin/trace-cmd" report -N "$@" >report.txt 2>report.err && status=0 || status=$?
    events=$(grep -c sched_switch: report.txt || true)
    echo "trace-cmd report $*: $events events, exit status $status$(cat report.err)"
}

filter='sched_switch: next_pid == 43'
report -i trace.dat
[ "$events" = 3 ] || fail "without a filter there are $events events"
report -F "$filter" -i trace.dat
[ "$events" = 1 ] || fail "the filter before the file leaves $events events"
report -i trace.dat -F "$filter"
[ "$events" = 3 ] || fail "the filter after the file leaves $events events"
[ "$status" = 0 ] && [ ! -s report.err ] || fail "the filter after the file is remarked on"
report -F 'no filter' -i trace.dat
[ "$status" != 0 ] || fail "a text that is not a filter is accepted before the file"
report -i trace.dat -F 'no filter'
[ "$status" = 0 ] && [ "$events" = 3 ] || fail "a text that is not a filter is refused after the file"

# Succeeds if the first of two files is filtered, and the second is not.
first_alone() {
    [ "$(grep -c 'trace.dat:.*sched_switch:' report.txt)" = 1 ] || fail "the first of two is not filtered"
    [ "$(grep -c 'other.dat:.*sched_switch:' report.txt)" = 3 ] || fail "the second of two is filtered"
}
report -F "$filter" -i trace.dat -i other.dat
first_alone
report -i trace.dat -F "$filter" -i other.dat
first_alone
echo "ok: -F after -i FILE filters nothing, and of two files the first alone is filtered"
