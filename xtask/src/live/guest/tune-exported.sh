# The next boot has the words; the files are where systemd reads them, and are read as it does at each boot.
mkdir -p /etc/sysctl.d /etc/tmpfiles.d
cp /var/lib/exported/sysctl.d/*.conf /etc/sysctl.d/
cp /var/lib/exported/tmpfiles.d/*.conf /etc/tmpfiles.d/
run sysctl /lib/systemd/systemd-sysctl
run tmpfiles systemd-tmpfiles --create --boot /etc/tmpfiles.d/onbeat.conf
run audit onbeat audit -q --cpus 2-3 --profile busy-poll --json audit.json
send audit audit.json
value cmdline "$(cat /proc/cmdline)"
# All of it is so.
run import onbeat tune import /var/lib/exported -q --json import.json
send import import.json
