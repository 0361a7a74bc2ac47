# What the fault series are written with, beside helpers.sh.

FAULTS=/sys/kernel/debug/onbeat_fault

# hunting ARGS...: a hunt beside us, started through $through, waited for until it has measured for a second.
through=
over=10ms
hunting() {
    start h $through onbeat hunt -D 120s --over $over -q -o b "$@"
    tries=0
    until [ -s b/blocks.jsonl ] || [ $tries -ge 400 ]; do
        usleep 50000
        kill -0 $pid 2>/dev/null || break
        tries=$((tries + 1))
    done
    if [ -n "$traced" ]; then trace; fi
    clock
}

# trace: has trace-cmd record the events that the hunt has armed, with stacks where it takes them, until `hunted`.
traced=
trace() {
    set --
    for event in $(cat /sys/kernel/debug/tracing/instances/onbeat*/set_event); do
        set -- "$@" -e $event
        case $event in
        timer:hrtimer_expire_entry) set -- "$@" -R "stacktrace if common_pid != 0" ;;
        sched:sched_switch) set -- "$@" -R "stacktrace if prev_pid != 0" ;;
        esac
    done
    ld.so --library-path /lab /lab/trace-cmd record -q -C mono -b 8192 -o b/trace.dat "$@" >/run/t.out 2>&1 &
    tracer=$!
    tries=0
    until [ -s b/trace.dat.cpu1 ] || [ $tries -ge 400 ]; do usleep 50000; tries=$((tries + 1)); done
}

# stopping COUNT: as long as so many stops take, with their pauses.
stopping() {
    usleep $(($1 * 230000 + 1000000))
}

# serve RUNTIME_NS PERIOD_NS: what the fair server of CPU 1 gives; the runtime is never above the period.
serve() {
    server=/sys/kernel/debug/sched/fair_server/cpu1
    echo 1000000 >$server/runtime
    echo $2 >$server/period
    echo $1 >$server/runtime
}

# inject WORD ARGS...: asks the module for a series and waits for its end.
inject() {
    echo "$@" >$FAULTS/inject
    value injected $?
    tries=0
    until [ "$(cat $FAULTS/state)" = idle ] || [ $tries -ge 1000 ]; do
        usleep 100000
        tries=$((tries + 1))
    done
    grep -e "fault=$1 " -e dropped $FAULTS/log >log
}

# hunted: ends the hunt, after what is still to be collected, and sends what it found and what was done; the bundle, too, if
# $tree is set.
tree=
hunted() {
    usleep 500000
    if [ -n "$traced" ]; then
        kill -INT $tracer
        wait $tracer
        value t.exit $?
        send t.out /run/t.out
    fi
    kill -TERM $pid
    reap
    send log log
    send run b/run.json
    if [ -f /lab/keep ] || [ -n "$tree" ]; then sendtree bundle b; fi
}
