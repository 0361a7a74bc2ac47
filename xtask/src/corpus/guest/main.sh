# Sets the machine up, says what the kernel made of it, and sends the capture.

# What systemd mounts on every machine, so that it is there for the audit as well.
mount -t tracefs tracefs /sys/kernel/tracing
mount -t cgroup2 cgroup2 /sys/fs/cgroup

echo "LAB: setup"
echo "=== CHECK corpus" >&3
while read -r module; do insmod /lab/modules/$module; done </lab/modules.order >/run/modules 2>&1
send modules.err /run/modules
value uname "$(uname -r)"
at() { value at.$1 "$(cut -d' ' -f1 /proc/uptime) s"; }
at setup
run setup sh -e /lab/setup.sh
while read -r path; do
    value $path "$(cat $path 2>&1 | tr -s ' \t\n' ' ' | sed 's/ $//' | cut -c1-400)"
done </lab/told
echo "LAB: capture"
at capture
mkdir -p /run/corpus
cd /run/corpus
. /lab/capture.sh
cd /
at end
echo "=== OVER 0" >&3
