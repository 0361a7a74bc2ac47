# Runs the checks in their order.

# Settings off their defaults on purpose: putting back a default would not pass for leaving them alone.
echo 940000 >/proc/sys/kernel/sched_rt_runtime_us
echo 40 >/proc/sys/kernel/sched_rr_timeslice_ms

snapshot >/run/before
each_check 100 onbeat
