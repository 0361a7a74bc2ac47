# A suite that gives real-time tasks limits, to its end; then one that is killed and one that is interrupted: the limits come back.
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug

# limits: what real-time tasks may take, in one line.
limits() {
    cat /proc/sys/kernel/sched_rt_runtime_us /proc/sys/kernel/sched_rt_period_us /sys/kernel/debug/sched/fair_server/*/* 2>/dev/null |
        tr '\n' ' '
}

# ended_by SIGNAL LABEL: starts a suite, ends it in its first phase, and says what the limits are then and some time later.
ended_by() {
    onbeat suite throttling --phase 9s -q -o /var/lib/$2 >/dev/null 2>&1 &
    suite=$!
    tries=0
    until [ "$(limits)" != "$found" ] || [ $tries -ge 100 ]; do usleep 100000; tries=$((tries + 1)); done
    value $2.set "$(limits)"
    usleep 3000000
    kill -$1 $suite
    usleep 6000000
    value $2.given-back "$(limits)"
    value $2.left "$(pidof onbeat)"
}

found="$(limits)"
value found "$found"
took suite onbeat suite throttling --yes -q -o /var/lib/suite --json suite.json
send suite suite.json
value after "$(limits)"
run plan onbeat suite throttling --plan
run alone onbeat suite throttling -a 0-3 --plan
ended_by KILL killed
# A shell has its background jobs ignore SIGINT.
ended_by TERM interrupted
