# What happens to a machine while it is watched: a CPU goes and comes, the clock is set, it is suspended.
start watch onbeat watch -q --interval 2s -o rec
watch=$pid
# Wakes all the time, on every CPU.
onbeat measure -p 80 -i 10000 -D 120s -q -o b >/dev/null 2>&1 &
measure=$!
underway b
recording rec 2
usleep 2500000
echo 0 >/sys/devices/system/cpu/cpu3/online
usleep 4500000
echo 1 >/sys/devices/system/cpu/cpu3/online
usleep 4500000
now=$(date +%s)
date -s @1000 >/dev/null
usleep 4500000
date -s @$((now + 5)) >/dev/null
usleep 4500000
from=$(now_ms)
echo $(($(cat /sys/class/rtc/rtc0/since_epoch) + 6)) >/sys/class/rtc/rtc0/wakealarm
value slept "$(cat /sys/power/mem_sleep) $(echo mem 2>&1 >/sys/power/state)"
value slept.ms $(($(now_ms) - from))
usleep 4500000
kill -TERM $measure
pid=$watch
kill -TERM $pid
reap
run report onbeat report rec -q --json r.json
send record r.json
