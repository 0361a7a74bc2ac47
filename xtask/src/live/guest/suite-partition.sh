# A suite that sets CPUs apart for one of its phases, to its end and killed inside; over ssh it is refused.
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug

# inside: the programs in the partition.
inside() {
    for process in $(cat /sys/fs/cgroup/onbeat/rt/cgroup.procs 2>/dev/null); do basename "$(readlink /proc/$process/exe)"; done | sort -u | tr '\n' ' '
}

# until_inside: waits until a program runs in the partition.
until_inside() {
    tries=0
    until [ -n "$(inside)" ] || [ $tries -ge 600 ]; do usleep 100000; tries=$((tries + 1)); done
}

try_isolation() {
    onbeat isolate create 2-3 -q >/dev/null 2>&1
    machine_state >touched
    onbeat isolate undo -q >/dev/null 2>&1
}

# As enea-partition; the disk here is too small for its load, and the emulator too slow.
cat >partition.toml <<'RECIPE'
name = "partition"
title = "outside and inside"
interval = "1ms"
priority = 99
load-on = "other"
[[phase]]
id = "outside"
load = "cpu:1"
load-on = "all"
samples = 300000
[[phase]]
id = "inside"
load = "cpu:1"
samples = 300000
settings = ["isolate"]
RECIPE

machine_state >untouched
try_isolation
files_changed untouched touched | grep -v -e '^/sys/kernel/slab/' -e '^/sys/fs/cgroup/' -e effective >listed
settings_of listed >before
run ssh env SSH_CONNECTION=somewhere onbeat suite enea-partition --phase 3s -a 2-3 -o /var/lib/ssh
onbeat suite ./partition.toml --phase 3s -a 2-3 -q -o /var/lib/suite --json suite.json >/run/suite.out 2>&1 &
suite=$!
until_inside
value inside "$(inside)"
value during "$(partition)"
wait $suite
value suite.exit $?
send suite suite.json
send suite.out /run/suite.out
value after "$(partition)"
onbeat suite ./partition.toml --phase 20s -a 2-3 -q -o /var/lib/killed >/dev/null 2>&1 &
suite=$!
until_inside
kill -9 $suite
usleep 8000000
value killed "$(partition)"
settings_of listed >later
files_changed before later >differ
send differ differ
