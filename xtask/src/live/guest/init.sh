#!/bin/busybox sh
# The first process of the virtual machine: mounts what every machine has, does what it is there for,
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

. /lab/helpers.sh
. /lab/main.sh
echo "=== DONE" >&3
echo "LAB: done"
poweroff -f
