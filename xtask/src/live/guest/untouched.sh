# What reads nothing that changes the machine leaves every setting as it was, and what writes do afterwards.

K=/proc/sys/kernel

# timers: on how many CPUs the lockup detectors' timer is armed; the list can be read without an effect.
timers() {
    grep -c watchdog_timer_fn /proc/timer_list
}

# reader NAME: one way of reading the machine; `none` reads nothing, `forget` is what an audit must never do.
reader() {
    case $1 in
        none) ;;
        audit) onbeat audit -q ;;
        user) su user -c 'onbeat audit -q' ;;
        root) onbeat audit -q --root / ;;
        capture) rm -rf taken; onbeat capture -o taken ;;
        bundle) onbeat audit -q --bundle taken ;;
        measure) rm -rf run; onbeat measure -q -D 1s -i 1000 -o run ;;
        forget) cat $K/watchdog $K/soft_watchdog $K/nmi_watchdog ;;
    esac >/dev/null 2>&1
}

# Both asked for, the switch of both off, then on again.
both() {
    echo 1 >$K/soft_watchdog
    echo 1 >$K/watchdog
    echo 0 >$K/watchdog
    reader $1
    value both.$1.off $(timers)
    echo 1 >$K/watchdog
    value both.$1 $(timers)
}

# The switch of both on, each detector off by its own, then one on again.
each() {
    echo 1 >$K/soft_watchdog
    echo 1 >$K/watchdog
    echo 0 >$K/soft_watchdog
    echo 0 >$K/nmi_watchdog 2>/dev/null
    reader $1
    value each.$1.off $(timers)
    echo 1 >$K/soft_watchdog
    value each.$1 $(timers)
}

# On, and left on.
on() {
    echo 1 >$K/soft_watchdog
    echo 1 >$K/watchdog
    reader $1
    echo 0 >$K/watchdog
    echo 1 >$K/watchdog
    value on.$1 $(timers)
}

# settings: every setting that can be read, a line each; counters and what acts when it is read are left out.
settings() {
    find /proc/sys /proc/irq /sys/kernel/mm /sys/kernel/rcu_* /sys/module/*/parameters /sys/devices/system \
        /sys/devices/virtual/workqueue /sys/kernel/debug/sched /sys/fs/cgroup /sys/class/net/*/queues -type f |
        grep -v -e '/[a-z_]*watchdog$' -e stat_refresh -e drop_caches -e compact_memory -e /sched/debug -e sched/domains \
            -e random/ -e ns_last_pid -e 'fs/[a-z]*-\(nr\|state\)' -e 'stat$' -e pressure -e /spurious -e uevent |
        xargs grep -s -H '' 2>/dev/null | sort
    for name in current_tracer tracing_on trace_clock trace_options buffer_size_kb tracing_cpumask set_event set_ftrace_filter \
        events/enable tracing_max_latency tracing_thresh; do
        grep -s -H '' /sys/kernel/debug/tracing/$name
    done
    ls /sys/kernel/debug/tracing/instances 2>/dev/null
    cut -d' ' -f1-4 /proc/mounts
    cat /proc/consoles
}

for name in none audit user root capture bundle measure forget; do
    for state in $states; do
        $state $name
    done
done

mount -t cgroup2 none /sys/fs/cgroup
echo '+cpuset +cpu' >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null
mkdir /sys/fs/cgroup/untouched

# What changes while nothing is read is noise.
settings >first
usleep 2000000
settings >second
for name in audit user root capture bundle measure; do reader $name; done
settings >third
diff first second | sed -n 's/^[<>] \([^:]*\):.*/\1/p' | sort -u >noise
diff second third | grep "^[<>]" | grep -v -F -e "no such line" $([ -s noise ] && echo -f noise) >changed
value compared $(wc -l <second)
value noise $(wc -l <noise)
send noise noise
send changed changed
rmdir /sys/fs/cgroup/untouched
umount /sys/fs/cgroup
true
