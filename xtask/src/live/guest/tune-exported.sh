# What is exported is kept on the disk; the next boot has its words. The console stays.
kept=/var/lib/kept
cp /proc/cmdline booted
run export onbeat tune export $kept --cpus 2-3 --profile busy-poll --without serial-console -q
onbeat audit --cpus 2-3 --profile busy-poll -q --json audit.json
send audit audit.json
for file in sysctl.d/90-onbeat.conf tmpfiles.d/onbeat.conf cmdline README; do send $file $kept/$file; done
onbeat tune plan --cpus 2-3 --profile busy-poll --without serial-console -q --json plan.json
send plan plan.json
onbeat tune import $kept -q --json import.json
send import import.json
value next.words "$(sed -n 's/^+ //p' $kept/cmdline | tr '\n' ' ')"
