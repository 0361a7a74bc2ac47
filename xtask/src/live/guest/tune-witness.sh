# Two looks at an untouched machine, one after changes by hand, one after they were taken back.
from=$(now_ms)
state first
value first.ms $(($(now_ms) - from))
usleep 3000000

sleep 1000 &
victim=$!
start=$(cut -d' ' -f22 /proc/$victim/stat)
irq=$(sed -n 's/^ *\([0-9]*\):.*virtio.*config.*/\1/p' /proc/interrupts | head -n 1)
[ -n "$irq" ] || irq=$(sed -n 's/^ *\([0-9]*\):.*nvme0q0.*/\1/p' /proc/interrupts)
state second

interval=$(cat /proc/sys/vm/stat_interval)
value moved $irq
was=$(cat /proc/irq/$irq/smp_affinity)
echo 117 >/proc/sys/vm/stat_interval
echo 1 >/proc/irq/$irq/smp_affinity
taskset -p 2 $victim >/dev/null
mkdir /sys/fs/cgroup/by-hand
echo 3 >/sys/devices/virtual/workqueue/cpumask
echo 0 >/proc/sys/kernel/watchdog
state changed
cat >by-hand <<END
/proc/sys/vm/stat_interval
/proc/irq/$irq/smp_affinity
/proc/irq/$irq/smp_affinity_list
task:$victim/$start/mask
/sys/fs/cgroup/by-hand
/sys/devices/virtual/workqueue/cpumask
/proc/sys/kernel/watchdog
timers:watchdog
END
send by-hand by-hand

echo $interval >/proc/sys/vm/stat_interval
echo $was >/proc/irq/$irq/smp_affinity
taskset -p f $victim >/dev/null
rmdir /sys/fs/cgroup/by-hand
echo f >/sys/devices/virtual/workqueue/cpumask
echo 1 >/proc/sys/kernel/watchdog
state restored
kill $victim
