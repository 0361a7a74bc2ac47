# What the checks are written with. Everything is reported on descriptor 3, content lines behind a bar.

# send LABEL FILE: the file's content.
send() {
    if [ -f "$2" ]; then
        echo "=== FILE $1" >&3
        awk '{ print "|" $0 }' "$2" >&3
    else
        echo "=== ABSENT $1" >&3
    fi
}

# sendtree LABEL DIR: a folder as one archive, in text.
sendtree() {
    echo "=== FILE $1" >&3
    tar -C $2 -cf - . | gzip | base64 | sed 's/^/|/' >&3
}

# value LABEL TEXT
value() {
    echo "=== VALUE $1 $2" >&3
}

# run LABEL COMMAND...: runs it and reports exit code, output and errors.
run() {
    label=$1
    shift
    "$@" >/run/$label.out 2>/run/$label.err
    value $label.exit $?
    send $label.out /run/$label.out
    send $label.err /run/$label.err
    rm -f /run/$label.out /run/$label.err
}

# start LABEL COMMAND...: starts it beside us; $pid is its process.
start() {
    started=$1
    shift
    "$@" >/run/$started.out 2>/run/$started.err &
    pid=$!
}

# reap: waits for what `start` started, and reports as `run` does.
reap() {
    wait $pid
    value $started.exit $?
    send $started.out /run/$started.out
    send $started.err /run/$started.err
    rm -f /run/$started.out /run/$started.err
}

# underway DIR: waits until the run that writes this bundle has said so.
underway() {
    tries=0
    until [ -s $1/run.json ] || [ $tries -ge 200 ]; do usleep 50000; tries=$((tries + 1)); done
}

# closed DIR: how many intervals a record has.
closed() {
    cat $1/*.tail 2>/dev/null | grep -c '^end '
}

# recording DIR N: waits until a watch records to it, and has so many intervals.
recording() {
    tries=0
    until { [ -e $1/record.json ] && [ $(closed $1) -ge $2 ]; } || [ $tries -ge 600 ]; do
        usleep 50000
        tries=$((tries + 1))
    done
}

# now_ms: time since boot, in steps of 10 ms.
now_ms() {
    awk '{ print int($1 * 1000) }' /proc/uptime
}

# snapshot: the settings that must be as they were found.
snapshot() {
    for file in /proc/sys/kernel/sched_* /proc/sys/kernel/printk /proc/sys/vm/* \
        /proc/sys/kernel/timer_migration /sys/devices/system/cpu/online /proc/irq/*/smp_affinity \
        /sys/devices/system/clocksource/clocksource0/current_clocksource \
        /sys/kernel/debug/sched/preempt /sys/kernel/debug/sched/features \
        /sys/kernel/debug/sched/fair_server/*/* /sys/kernel/debug/tracing/tracing_on \
        /sys/kernel/debug/tracing/current_tracer; do
        # Reading /proc/sys/vm/stat_refresh and the like acts or is refused: only what can be set and read.
        case $file in */stat_refresh | */drop_caches | */compact_memory) continue ;; esac
        [ -f $file ] && [ -r $file ] && echo "$file $(cat $file 2>/dev/null | tr '\n' ' ')"
    done
    ls /sys/kernel/debug/tracing/instances 2>/dev/null | sed 's/^/instance /'
    cut -d' ' -f1-4 /proc/mounts
}

# each_check SECONDS PROGRAMS HELPERS...: runs the checks of lab/order, each in a shell and a folder of its own that knows the
# helpers, for so long at most; the programs are ended after each.
each_check() {
    limit=$1 programs=$2
    shift 2
    sources=". /lab/helpers.sh"
    for helpers in "$@"; do sources="$sources; . /lab/$helpers"; done
    while read -r name; do
        echo "LAB: $name"
        echo "=== CHECK $name" >&3
        begun=$(now_ms)
        mkdir -p /run/$name
        cd /run/$name
        timeout -s KILL $limit sh -c "$sources; . /lab/$name.sh" </dev/null
        ended=$?
        value ms $(($(now_ms) - begun))
        echo "=== OVER $ended" >&3
        killall -9 $programs 2>/dev/null
        cd /
        rm -rf /run/$name
    done </lab/order
}

# clock: our CLOCK_MONOTONIC, some times over, for whoever watches the emulator.
clock() {
    for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
        sed -n '3{s/[^0-9]*\([0-9]*\).*/=== CLOCK \1/p;q}' /proc/timer_list >&3
    done
}

# hold: has the tracepoints switched on for good. To switch one patches the kernel, which multi-threaded emulation sometimes gets
# wrong. Two silent instances hold them all: with a second user of a tracepoint its call goes through a list, and a third changes
# no code.
hold() {
    for name in lab-a lab-b; do
        dir=/sys/kernel/debug/tracing/instances/$name
        mkdir $dir
        echo 0 >$dir/tracing_on
        echo 4 >$dir/buffer_size_kb
        for group in sched irq irq_vectors timer ipi csd nmi workqueue power exceptions lock raw_syscalls printk; do
            [ -f $dir/events/$group/enable ] && echo 1 >$dir/events/$group/enable
        done
    done
}
