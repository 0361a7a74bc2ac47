# Makes the machine what the scenes need, and runs its scene.
mkdir -p /var/lib
for module in $(cat /lab/modules.order); do insmod /lab/modules/$module 2>/dev/null; done
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
tries=0
until [ -b /dev/nvme0n1 ] || [ $tries -ge 100 ]; do usleep 50000; tries=$((tries + 1)); done
mount -t ext4 /dev/nvme0n1 /var/lib || echo "LAB: no disk"
ip link set lo up
ip link set eth0 up 2>/dev/null
# The machine settles: workers of the boot end, the disk is looked at.
usleep 1500000
each_check 600 onbeat tune-helpers.sh
sync
