# A change is proven against a fault that goes by it; killed while the change is in force, and gone on with.
interval=/proc/sys/vm/stat_interval

# The fault: another program keeps CPU 2 for some 80 ms twice a second, unless the setting is the recommended one.
cat >/run/fault <<'FAULT'
count=$1
while :; do
    read now </proc/sys/vm/stat_interval
    i=0
    if [ $now != 120 ]; then while [ $i -lt $count ]; do i=$((i + 1)); done; fi
    usleep 420000
done
FAULT
from=$(now_ms)
i=0
while [ $i -lt 100000 ]; do i=$((i + 1)); done
taken=$(($(now_ms) - from))
value calibrated.ms $taken
chrt -f 90 taskset 4 sh /run/fault $((8000000 / (taken + 1))) &
fault=$!

change="--change vmstat-interval=120"
found=$(cat $interval)
value found "$found"
run plan onbeat prove $change --limit 30ms -a 2 --seed 11 --dry-run
onbeat prove $change --limit 30ms -a 2 --segment 4s --settle 500ms --warm-up 4s --seed 11 -q -o /var/lib/proof >/dev/null 2>/run/killed.err &
prove=$!
tries=0
until [ "$(cat $interval)" = 120 ] || [ $tries -ge 600 ]; do usleep 100000; tries=$((tries + 1)); done
value set "$(cat $interval)"
run other onbeat prove --change vmstat-interval=60 --limit 30ms -a 2 -q -o /var/lib/other
kill -9 $prove
send killed.err /run/killed.err
tries=0
until [ "$(cat $interval)" = "$found" ] || [ $tries -ge 100 ]; do usleep 100000; tries=$((tries + 1)); done
value given-back.ms $((tries * 100))
value given-back "$(cat $interval)"
send record /var/lib/proof/experiment.json
run resumed onbeat prove --resume /var/lib/proof -q --json /run/proof.json
send proof /run/proof.json
value after "$(cat $interval)"
run again onbeat prove --change vmstat-interval=1 --limit 30ms -a 2 -q -o /var/lib/again
run status onbeat tune status --json -
value left "$(pidof onbeat)"
kill $fault
