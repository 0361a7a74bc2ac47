# What the fault series are written with, beside helpers.sh.

FAULTS=/sys/kernel/debug/onbeat_fault

# hunting ARGS...: a hunt beside us, waited for until it has measured for a second.
hunting() {
    start h onbeat hunt -D 120s --over 10ms -q -o b "$@"
    tries=0
    until [ -s b/blocks.jsonl ] || [ $tries -ge 400 ]; do
        usleep 50000
        kill -0 $pid 2>/dev/null || break
        tries=$((tries + 1))
    done
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

# hunted: ends the hunt, after what is still to be collected, and sends what it found and what was done.
hunted() {
    usleep 1000000
    kill -INT $pid
    reap
    send log log
    send run b/run.json
    if [ -f /lab/keep ]; then sendtree bundle b; fi
}
