# The program that never sleeps, alone on its CPU.
sysctl -w -q kernel.sched_rt_runtime_us=-1
sysctl -w -q vm.stat_interval=120
taskset 4 sh -c 'while :; do :; done' >/dev/null 2>&1 3>&- &
