# As good as this lab can be: CPUs 2 and 3 are kept free of everything that can be kept away.
sysctl -w -q kernel.sched_rt_runtime_us=-1
# In this order: with the throttling on, a fair server cannot be lowered.
echo 0 >/sys/kernel/debug/sched/fair_server/cpu2/runtime
echo 0 >/sys/kernel/debug/sched/fair_server/cpu3/runtime

for mask in /sys/devices/virtual/workqueue/cpumask /sys/devices/virtual/workqueue/*/cpumask; do
    echo 3 >$mask
done
# Kernel threads that may be moved: PF_KTHREAD without PF_NO_SETAFFINITY. Some end in between.
for stat in /proc/[0-9]*/stat; do
    line=$(cat $stat 2>/dev/null) || continue
    set -- ${line##*) }
    [ $(($7 & 0x200000)) -ne 0 ] && [ $(($7 & 0x4000000)) -eq 0 ] || continue
    pid=${stat#/proc/}
    taskset -p 3 ${pid%/stat} >/dev/null 2>&1 || true
done
# Interrupts of a CPU refuse it.
echo 3 >/proc/irq/default_smp_affinity
for list in /proc/irq/*/smp_affinity_list; do echo 0-1 >$list 2>/dev/null || true; done

sysctl -w -q vm.stat_interval=120
sysctl -w -q vm.swappiness=10
sysctl -w -q vm.compaction_proactiveness=0
sysctl -w -q vm.dirty_writeback_centisecs=1500
sysctl -w -q vm.zone_reclaim_mode=0
sysctl -w -q kernel.timer_migration=0
sysctl -w -q kernel.hung_task_timeout_secs=0
sysctl -w -q kernel.perf_cpu_time_max_percent=0
sysctl -w -q kernel.printk="3 4 1 3"
for machine_check in /sys/devices/system/machinecheck/machinecheck*/check_interval; do
    echo 0 >$machine_check
done
echo 0 >/sys/kernel/mm/ksm/run

# The request to the idle loop lasts as long as the file is open.
(exec 5>/dev/cpu_dma_latency && printf '\0\0\0\0' >&5 && exec sleep 1000000) >/dev/null 2>&1 3>&- &
