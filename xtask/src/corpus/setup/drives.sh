# The network interface asks for its interrupts when it is brought up; the drive takes its time.
for interface in /sys/class/net/e*; do
    [ -e $interface ] && ip link set ${interface##*/} up
done
tries=0
until [ -b /dev/nvme0n1 ] || [ $tries -ge 100 ]; do usleep 100000; tries=$((tries + 1)); done
[ -b /dev/nvme0n1 ]
