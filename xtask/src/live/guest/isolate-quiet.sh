# A real-time task alone on CPU 3, with load on CPUs 0 and 1: which interrupts still come there.
loads=
load() {
    for cpu in 0 1; do
        taskset $((1 << cpu)) sh -c 'while :; do :; done' &
        loads="$loads $!"
        taskset $((1 << cpu)) sh -c 'while :; do dd if=/dev/zero of=/var/lib/load.'$cpu' bs=64k count=64 conv=fsync; rm -f /var/lib/load.'$cpu'; done' 2>/dev/null &
        loads="$loads $!"
    done
}
took create onbeat isolate create 2-3 --yes -q
load
onbeat isolate run -c 3 -p 80 -- spin 14 >spin.out 2>spin.err &
task=$!
usleep 2000000
cat /proc/interrupts >first
value where "$(for stat in /proc/[0-9]*/stat; do sed -n 's/^\([0-9]*\) (spin) .*/\1/p' $stat; done | head -n 1 | xargs -I X sh -c 'cut -d" " -f39,40,41 /proc/X/stat; grep Cpus_allowed_list /proc/X/status' | tr '\n\t' '  ')"
usleep 10000000
cat /proc/interrupts >second
wait $task
value task.exit $?
send spin spin.out
send spin.err spin.err
send first first
send second second
kill -9 $loads
run undo onbeat isolate undo -q
