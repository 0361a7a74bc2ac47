# A real-time task alone on CPU 3, with load on CPUs 0 and 1: which interrupts still come there.
loads=
load() {
    for cpu in 0 1; do
        taskset $((1 << cpu)) sh -c 'while :; do :; done' &
        loads="$loads $!"
        taskset $((1 << cpu)) sh -c "while dd if=/dev/zero of=/var/lib/load.$cpu bs=64k count=64 conv=fsync; do :; done" 2>/dev/null &
        loads="$loads $!"
    done
}
took create onbeat isolate create 2-3 --yes -q
load
onbeat isolate run -c 3 -p 80 -- spin 14 >spin.out 2>spin.err &
task=$!
usleep 2000000
cat /proc/interrupts >first
spin=$(pidof -s spin)
# CPU, priority and policy: fields 39 to 41.
value where "$(cut -d' ' -f39,40,41 /proc/$spin/stat) $(grep Cpus_allowed_list /proc/$spin/status | tr '\t' ' ')"
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
