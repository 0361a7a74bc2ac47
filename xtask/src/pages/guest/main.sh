# Records a busy second of this machine, and sends the raw pages, what is needed to read them, and the kernel's own rendering.

tracing=/sys/kernel/tracing
mount -t tracefs tracefs $tracing
here=$tracing/instances/lab
pages=/run/pages
mkdir $here $pages

echo "LAB: record"
echo "=== CHECK pages" >&3
value uname "$(uname -r)"
echo mono >$here/trace_clock
# Addresses as they are, so that they can be compared; after the machine is off they are nobody's.
for option in nohash-ptr sym-addr sym-offset; do echo $option >$here/trace_options; done
subbuf=$(cat /lab/subbuf)
[ $subbuf = 4 ] || echo $subbuf >$here/buffer_subbuf_size_kb
cat /lab/buffer >$here/buffer_size_kb
# Of the system calls only clock_nanosleep, by its number on x86 and on arm64.
for event in sys_enter sys_exit; do
    echo 'id == 230 || id == 115' >$here/events/raw_syscalls/$event/filter
done
# New processes fault all the time: of these, the fetches of instructions.
echo 'error_code == 20' >$here/events/exceptions/page_fault_user/filter 2>/dev/null
echo stacktrace >$here/events/sched/sched_migrate_task/trigger

while read -r event; do
    dir=$here/events/$event
    [ -d $dir ] || continue
    cat $dir/format >>$pages/formats
    # The stack's has no switch.
    [ ! -f $dir/enable ] || echo 1 >$dir/enable
done </lab/events
cat $here/events/header_page >$pages/header_page 2>/dev/null || cat $tracing/events/header_page >$pages/header_page

# Threads that wake each other on one CPU and across, new processes, timers.
busy() {
    for cpu in 0 1; do
        taskset $((cpu + 1)) sh -c 'while :; do echo a; usleep 700; done' | while read -r line; do echo $line; done >/dev/null &
        taskset $((cpu + 1)) sh -c 'while :; do ls /sys/kernel >/dev/null; done' &
    done
    (while :; do taskset 1 true; taskset 2 true; done) &
}
busy
sleep 2
echo 0 >$here/tracing_on

# Not consuming, then consuming.
cat $here/trace >$pages/trace
for cpu in 0 1; do
    cat $here/per_cpu/cpu$cpu/stats >$pages/cpu$cpu.stats
    timeout 3 cat $here/per_cpu/cpu$cpu/trace_pipe_raw >$pages/cpu$cpu.raw
done
cp $tracing/printk_formats $pages/printk_formats
sendtree pages $pages
echo "=== OVER 0" >&3
