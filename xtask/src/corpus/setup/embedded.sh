# An image that mounts what it needs, and no more.
umount /sys/kernel/tracing /sys/fs/cgroup /sys/kernel/debug
