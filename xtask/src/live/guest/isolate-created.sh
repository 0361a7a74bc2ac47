# Two CPUs are set apart, and given back. Which interrupts can move is asked of the kernel, by writing what is there already; those
# without a handler cannot come, and take the default when they get one.
for irq in $(ls /proc/irq | grep '^[0-9]'); do
    [ -n "$(cat /sys/kernel/irq/$irq/actions)" ] || continue
    mask=$(cat /proc/irq/$irq/smp_affinity)
    { echo $mask >/proc/irq/$irq/smp_affinity; } 2>/dev/null && echo $irq
done >movable
send movable movable
# A thread of somebody's that is pinned there, and one that may run anywhere.
taskset 8 sleep 1000 &
pinned=$!
sleep 1000 &
free=$!
value pinned $pinned
value free $free
state before
took create onbeat isolate create 2-3 --yes -q
state created
value partition "$(partition)"
run list onbeat isolate list -q --json list.json
send list list.json
run inside onbeat isolate run -c 3 -p 80 -- sh -c 'cat /proc/self/cgroup; grep Cpus_allowed_list /proc/self/status; cut -d" " -f40,41 /proc/$$/stat'
run barred onbeat measure -q -a 2-3 -D 1s
run measured onbeat isolate run -c 2-3 -- onbeat measure -q -a 2-3 --load cpu:2 -D 3s --json measured.json
send measured measured.json
undoing undo onbeat isolate undo -q
state after
run list-after onbeat isolate list -q --json after.json
send given-back after.json
kill $pinned $free
documented planned onbeat isolate create 3 --dry-run
documented create onbeat isolate create 3
documented create-again onbeat isolate create 3
documented undo onbeat isolate undo
documented undo-again onbeat isolate undo
documented checked onbeat isolate create 3 --check
documented undo-forced onbeat isolate undo --force
