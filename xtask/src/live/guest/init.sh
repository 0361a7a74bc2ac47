#!/bin/busybox sh
# The first process of the virtual machine: mounts what every machine has, runs the checks in order,
# reports on a channel of its own (so that kernel messages cannot mix in) and switches off.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mount -t debugfs debugfs /sys/kernel/debug
chmod 1777 /tmp
chown user:user /home/user
chmod 700 /root

port=$(sed 's/.*lab.port=\([^ ]*\).*/\1/' /proc/cmdline)
tries=0
until [ -c $port ] || [ $tries -ge 100 ]; do usleep 50000; tries=$((tries + 1)); done
if [ ! -c $port ]; then echo "LAB: no $port"; poweroff -f; fi
exec 3>$port
# A serial port is a terminal, which would change what is written.
case $port in */tty*) stty raw <$port ;; esac

# Settings off their defaults on purpose: putting back a default would not pass for leaving them alone.
echo 940000 >/proc/sys/kernel/sched_rt_runtime_us
echo 40 >/proc/sys/kernel/sched_rr_timeslice_ms

. /lab/helpers.sh
snapshot >/run/before
while read -r name; do
    echo "LAB: $name"
    echo "=== CHECK $name" >&3
    mkdir -p /run/$name
    cd /run/$name
    timeout -s KILL 100 sh -c ". /lab/helpers.sh; . /lab/$name.sh" </dev/null
    echo "=== OVER $?" >&3
    killall -9 onbeat 2>/dev/null
    cd /
    rm -rf /run/$name
done </lab/order
echo "=== DONE" >&3
echo "LAB: done"
poweroff -f
