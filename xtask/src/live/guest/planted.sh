# Faults that are planted for a change or a cure to be tried against: each keeps CPU 2 for 50 ms, twice a second, to the end.
insmod /lab/onbeat_fault.ko || echo "LAB: no module"
FAULTS=/sys/kernel/debug/onbeat_fault
# A module from elsewhere taints the kernel, which is no warning.
taint=$(cat /proc/sys/kernel/tainted)

# plant_thread: another program's thread, whose mask may be changed.
plant_thread() {
    user_faults spin 2 90 50000 100000 500 >/dev/null &
    spinner=$!
}

# series WORD: of the module, sent from CPU 0.
series() {
    echo "$1 cpu=2 from=0 us=50000 count=100000 period_ms=400 jitter_ms=99" >$FAULTS/inject
    value planted $?
}

# plant_storm: of a device's interrupts, which go where their affinity says.
plant_storm() { series storm; }

# plant_incurable: functions that CPU 0 has CPU 2 call, which no setting keeps it from.
plant_incurable() { series ipi; }

# plant_doubling: work with the name of the kernel's statistics of memory, which comes twice as often with the interval that is
# recommended for these.
plant_doubling() {
    while :; do
        # Not by `read`, which takes a byte at a time: such a file ends after the first.
        if [ $(cat /proc/sys/vm/stat_interval) = 10 ]; then series="count=2 period_ms=150"; else series="count=1 period_ms=350"; fi
        echo "vmstat cpu=2 from=0 us=50000 $series" >$FAULTS/inject
        usleep 500000
    done 2>/dev/null &
}

# hunted: what a hunt names.
hunted() {
    hold
    took hunt onbeat hunt -a 2 -D 8s --over 30ms -q -o /var/lib/hunt --json hunt.json
    send hunt hunt.json
}

# proof LABEL ARGUMENTS...: what an experiment says of a change, with segments of $segment.
segment=3s
proof() {
    proof=$1
    shift
    took $proof onbeat prove "$@" --limit 30ms -a 2 --segment $segment --settle 300ms --warm-up 3s --seed 11 -q \
        -o /var/lib/$proof --json $proof.json
    send $proof.document $proof.json
}
