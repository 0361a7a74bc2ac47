# A change is proven against a fault that goes by it; killed while the change is in force, and gone on with.
interval=/proc/sys/vm/stat_interval
user_faults heeding 2 90 50000 500 $interval 120 &
fault=$!

change="--change vmstat-interval=120"
# How long it takes to settle is told by its own trial.
length="--segment 3s --warm-up 3s"
found=$(cat $interval)
value found "$found"
run plan onbeat prove $change --limit 30ms -a 2 --seed 11 --dry-run
onbeat prove $change --limit 30ms -a 2 $length --seed 11 -q -o /var/lib/proof >/dev/null 2>/run/killed.err &
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
took resumed onbeat prove --resume /var/lib/proof -q --json /run/proof.json
send proof /run/proof.json
value after "$(cat $interval)"
run again onbeat prove --change vmstat-interval=$found --limit 30ms -a 2 -q -o /var/lib/again
run status onbeat tune status --json -
value left "$(pidof onbeat)"
kill $fault
