# What a search for a fault leaves behind.
cd /sys/kernel/tracing
echo 1 >events/sched/sched_switch/enable
echo 1 >events/irq/enable
echo 8192 >buffer_size_kb
sysctl -w -q kernel.printk="8 4 1 7"
sysctl -w -q kernel.sched_schedstats=1
sysctl -w -q kernel.hung_task_timeout_secs=10

mkswap /dev/ram0 >/dev/null
swapon /dev/ram0

# A thread at FIFO 99.
cd /root
onbeat measure -D 1h -i 10000 -p 99 -a 1 -q -o above >/dev/null 2>&1 3>&- &
tries=0
until [ -s above/run.json ] || [ $tries -ge 100 ]; do usleep 100000; tries=$((tries + 1)); done
[ -s above/run.json ]
