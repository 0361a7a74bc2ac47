#!/lab/bin/busybox sh
# What init.sh does where systemd is the first process: it has mounted everything, and this is a service of its.
/lab/bin/busybox --install -s /lab/bin
export PATH=/lab/bin:/usr/sbin:/usr/bin HOME=/root
port=$(sed 's/.*lab.port=\([^ ]*\).*/\1/' /proc/cmdline)
tries=0
until [ -c $port ] || [ $tries -ge 100 ]; do usleep 50000; tries=$((tries + 1)); done
if [ ! -c $port ]; then echo "LAB: no $port"; poweroff -f; fi
exec 3>$port
case $port in */tty*) stty raw <$port ;; esac

. /lab/helpers.sh
. /lab/main.sh
echo "=== DONE" >&3
echo "LAB: done"
poweroff -f
