# A neighbour whose CPUs overlap: the write is taken, and the partition is invalid.
cd /sys/fs/cgroup
echo +cpuset >cgroup.subtree_control
mkdir system.slice rt.slice
echo 0-3 >system.slice/cpuset.cpus
echo 2-3 >rt.slice/cpuset.cpus
echo isolated >rt.slice/cpuset.cpus.partition
