# Runs the fault series: the module, the tracepoints that are held, then the checks in their order.

# Switching a tracepoint patches the kernel, which multi-threaded emulation sometimes gets wrong. Two silent
# instances hold them all: with a second user of a tracepoint its call goes through a list, and a third changes no code.
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

insmod /lab/onbeat_fault.ko || echo "LAB: no module"
hold
each_check 150 "onbeat user_faults followed" fault-helpers.sh
