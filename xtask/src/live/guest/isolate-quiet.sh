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
# where_is LABEL: its CPU, priority and policy, fields 39 to 41, and where it may run.
where_is() {
    value $1 "$(cut -d' ' -f39,40,41 /proc/$task/stat) $(sed -n 's/^Cpus_allowed_list:.//p' /proc/$task/status)"
}
# It takes onbeat's place, beside the load in its own time.
onbeat isolate run -c 3 -p 80 -- spin 60 >spin.out 2>spin.err &
task=$!
tries=0
until [ "$(cat /proc/$task/comm)" = spin ] || [ $tries -ge 400 ]; do usleep 50000; tries=$((tries + 1)); done
usleep 1000000
where_is first.where
from=$(now_ms)
cat /proc/interrupts >first
usleep 10000000
cat /proc/interrupts >second
value window.ms $(($(now_ms) - from))
where_is second.where
alive=0
for load in $loads; do kill -0 $load && alive=$((alive + 1)); done
value loads $alive
kill -TERM $task
wait $task
send spin.err spin.err
send first first
send second second
kill -9 $loads
run undo onbeat isolate undo -q
