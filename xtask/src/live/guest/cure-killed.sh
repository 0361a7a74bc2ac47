# Killed at each point at which something is flushed or written, a cure leaves nothing in force that is not proven, and is gone
# on with: at its beginning, while a change is tried, while one that is proven is kept.
interval=/proc/sys/vm/stat_interval
found=$(cat $interval)
value found "$found"
# Behind a number of seconds it is one of nanoseconds.
second=000000000
boot=$(cat /proc/sys/kernel/random/boot_id)
kernel=$(uname -r)

# beginning FOLDER: there is nothing yet.
beginning() {
    echo "onbeat cure --limit 30ms -a 2 --horizon 1s --look 2s --hunt 2s --for 30s --seed 11 -q -o $1"
}

# recorded FOLDER VERDICT: a cure with one change; its time is enough for a pair of runs.
recorded() {
    mkdir -p $1/steps/001
    cat >$1/cure.json <<END
{ "schema": "onbeat.cure/1", "limit_ns": 30000000, "kernel": "$kernel", "boot": "$boot",
  "plan": { "limit_ns": 30000000, "horizon_ns": 1$second, "at_most_ns": 24$second, "cpus": "2", "interval_ns": 1000000,
    "look_ns": 2$second, "hunt_ns": 2$second, "segment_ns": 2$second, "settle_ns": 100000000, "seed": 11 },
  "runs": [ { "bundle": "runs/001", "valid": true, "late": 9, "samples": 5000, "observed_ns": 5$second } ],
  "steps": [ { "culprit": "a made-up one", "change": "vmstat-interval", "verdict": "$2", "experiment": "steps/001",
    "candidate": { "rules": [ "vmstat-interval" ], "threads": [], "changes": [], "risk": "low" } } ] }
END
    cat >$1/steps/001/experiment.json <<END
{ "schema": "onbeat.experiment/1", "kernel": "$kernel", "pilot": { "valid": true }, "segments": [],
  "plan": { "change": "vmstat-interval", "settings": [ "vmstat-interval" ], "limit_ns": 30000000, "seed": 11,
    "segment_ns": 2$second, "settle_ns": 100000000, "most_pairs": 16, "stop_at": 20.0, "win_at": 20.0, "rate_margin": 2.0,
    "p50_factor": 1.1, "p50_ns": 1000, "load_share": 0.8, "cpus": "2", "interval_ns": 1000000 } }
END
}
trying() {
    [ -e $1 ] || recorded $1 ""
    echo "onbeat cure --resume $1 -q"
}
keeping() {
    [ -e $1 ] || recorded $1 better
    echo "onbeat cure --resume $1 -q"
}

# segments FOLDER: the runs that an experiment's record holds, in their order.
segments() {
    grep '"bundle": "segments/' $1/steps/001/experiment.json 2>/dev/null
}
listed() {
    onbeat tune status --json - 2>/dev/null | grep -c '"key"'
}

# killed WAY POINT: says how it ended, after how many ms nothing ran any more, what the setting is then, how many changes are
# listed, how many the record calls kept, and where it was killed; and with these undone what the setting is, and with the cure
# gone on with how that ended.
killed() {
    way=$1 point=$2 of=/var/lib/$1-$2
    kill_at_point passed $point $($way $of) >/dev/null 2>&1
    code=$?
    over=$(patiently is_over)
    segments $of >before
    value $way.$point "$code $over $(cat $interval) $(listed) $(grep -c '"kept": true' $of/cure.json) $(tail -n 1 passed)"
    if [ $way = keeping ] || [ $point = $points ]; then
        onbeat cure --resume $of -q >resumed.out 2>&1
        value $way.$point.resumed $?
        value $way.$point.set "$(cat $interval)"
        segments $of >after
        lost=no
        head -n $(wc -l <before) after | cmp -s - before || lost=yes
        value $way.$point.lost "$lost $(wc -l <before) $(wc -l <after) $(tail -n 1 resumed.out)"
    fi
    onbeat tune undo --all -q >/dev/null 2>&1
    value $way.$point.undone "$(cat $interval)"
    # The guest's disk is too small for the runs of all of them.
    rm -rf $of
}

for way in beginning trying keeping; do
    kill_at_point passed 0 $($way /var/lib/$way) >whole.out 2>&1
    value $way.exit $?
    points=$(wc -l <passed)
    value $way.points $points
    value $way.whole "$(cat $interval)"
    send $way.said whole.out
    send $way.passed passed
    onbeat tune undo --all -q >/dev/null 2>&1
    point=1
    while [ $point -le $points ]; do
        killed $way $point
        point=$((point + 1))
    done
done
value after "$(cat $interval)"
run status onbeat tune status --json -
value left "$(pidof onbeat)"
