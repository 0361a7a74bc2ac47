# A suite under each preemption model that the kernel offers; then one that is killed in the middle: the model comes back.
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
switch=/sys/kernel/debug/sched/preempt
offered="$(cat $switch 2>/dev/null)"
value offered "$offered"
took suite onbeat suite enea --phase 2s -q -o /var/lib/suite --json suite.json
send suite suite.json
value after "$(cat $switch 2>/dev/null)"
if [ -n "$offered" ]; then
    other=$(echo "$offered" | tr ' ' '\n' | grep -v '(' | head -n 1)
    onbeat suite enea --phase 20s --models $other -q -o /var/lib/killed >/dev/null 2>&1 &
    suite=$!
    tries=0
    until grep -q "($other)" $switch || [ $tries -ge 100 ]; do usleep 100000; tries=$((tries + 1)); done
    value switched "$(cat $switch)"
    kill -9 $suite
    usleep 5000000
    value given-back "$(cat $switch)"
fi
value groups "$(find /sys/fs/cgroup -name 'onbeat-load-*' | wc -l)"
