# What recording adds to a wake-up, of each binary in lab/builds, on a quiet CPU and on busy ones.

# one LABEL COMMAND...: a run's mean and median latency in ns.
one() {
    label=$1
    shift
    rm -rf /run/bundle
    "$@" -a 0 -i 500 -D 200ms -q -o /run/bundle --json /run/run.json >/dev/null 2>&1
    value $label "$(sed 's/.*"mean_ns":\([0-9]*\),.*"p50_ns":\([0-9]*\),.*/\1 \2/' /run/run.json)"
}

# all CONDITION: each build in turn.
all() {
    for n in $(cat /lab/rounds); do
        for build in $(cat /lab/builds); do
            one $1-$build-$n-none $build measure
            one $1-$build-$n-events $build hunt --no-stacks --over 100ms
            one $1-$build-$n-stacks $build hunt --over 100ms
        done
    done
}

echo "=== CHECK recording" >&3
all quiet
# A thread in user mode, and one in system calls.
sh -c 'while :; do :; done' &
busy=$!
all user
kill $busy
dd if=/dev/zero of=/dev/null bs=64 2>/dev/null &
busy=$!
all kernel
kill $busy
echo "=== OVER 0" >&3
