# What is to last over a boot is written to files.
run audit onbeat audit -q --cpus 2-3 --profile busy-poll --json audit.json
send audit audit.json
run export onbeat tune export /var/lib/exported --cpus 2-3 --profile busy-poll -q
for file in sysctl.d/90-onbeat.conf tmpfiles.d/onbeat.conf cmdline; do send exported.${file%%/*} /var/lib/exported/$file; done
send exported.readme /var/lib/exported/README
# Nothing of it is so yet.
run import onbeat tune import /var/lib/exported -q --json import.json
send import import.json
