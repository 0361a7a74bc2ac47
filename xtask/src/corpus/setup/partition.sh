# An isolated partition: first the slice beside it gives up the CPUs, then they are claimed. With an
# overlapping neighbour `isolated` would be invalid, `cpuset.cpus.exclusive` or not.
cd /sys/fs/cgroup
echo +cpuset >cgroup.subtree_control
mkdir system.slice rt.slice
echo 0-1 >system.slice/cpuset.cpus
echo 2-3 >rt.slice/cpuset.cpus
echo 2-3 >rt.slice/cpuset.cpus.exclusive
echo isolated >rt.slice/cpuset.cpus.partition
