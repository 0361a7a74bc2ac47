# Killed at each point at which something is flushed or written, an experiment is undone without anybody's doing, and gone on
# with. What makes its change is a knob or a script (BY).
interval=/proc/sys/vm/stat_interval
second=000000000
case $BY in
knob)
    change='"change": "vmstat-interval=120", "settings": [ "vmstat-interval=120" ]'
    in_force() { cat $interval; }
    ;;
script)
    printf '#!/bin/sh\necho $1 >/run/arm\n' >/run/switch
    chmod 755 /run/switch
    echo a >/run/arm
    change='"script": "/run/switch"'
    in_force() { cat /run/arm; }
    ;;
esac
folder=/var/lib/$BY
found=$(in_force)
value found "$found"

# segments FOLDER: the runs that an experiment's record holds, in their order.
segments() {
    grep '"bundle"' $1/experiment.json 2>/dev/null
}

is_back() { [ "$(in_force)" = "$found" ]; }

# killed WAY FOLDER POINT COMMAND...: says how it ended, after how many ms the value was back and nothing ran any more, whether
# the runs that were kept before still are, how many these were and are, and where it was killed.
killed() {
    way=$1 of=$2 point=$3
    shift 3
    segments $of >before
    kill_at_point passed $point "$@" >/dev/null 2>&1
    code=$?
    back=$(patiently is_back)
    over=$(patiently is_over)
    segments $of >after
    kept=no
    head -n $(wc -l <before) after | cmp -s - before && kept=yes
    value $way.$point "$code $back $over $kept $(wc -l <before) $(wc -l <after) $(in_force) $(tail -n 1 passed)"
}

# recorded FOLDER: an experiment of which nothing is measured. A new one is refused that has no time for its pairs.
recorded() {
    mkdir -p $1
    cat >$1/experiment.json <<END
{ "schema": "onbeat.experiment/1", "kernel": "$(uname -r)", "plan": { $change, "limit_ns": 30000000, "seed": 11,
    "warm_up_ns": 2$second, "segment_ns": 2$second, "settle_ns": 100000000, "most_pairs": 400, "stop_at": 20.0,
    "rate_margin": 2.0, "p50_factor": 1.1, "p50_ns": 1000, "load_share": 0.8, "cpus": "2", "interval_ns": 1000000 } }
END
}

# From its record to the end of its warm-up: there is no time for a pair.
begin() {
    echo "onbeat prove --resume $1 -q --for 3s"
}
recorded $folder
kill_at_point passed 0 $(begin $folder) >/run/begun.out 2>&1
value begun.exit $?
points=$(wc -l <passed)
value begun.points $points
send begun.passed passed
send begun.said /run/begun.out
point=1
while [ $point -le $points ]; do
    recorded $folder-$point
    killed begun $folder-$point $point $(begin $folder-$point)
    point=$((point + 1))
done

# Through one pair, for which there is time, to its end.
resume="onbeat prove --resume $folder -q --for 10s"
kill_at_point passed 0 $resume >/run/pair.out 2>&1
value pair.exit $?
points=$(wc -l <passed)
value pair.points $points
send pair.passed passed
send pair.said /run/pair.out
point=1
while [ $point -le $points ]; do
    killed pair $folder $point $resume
    point=$((point + 1))
done
value runs $(segments $folder | wc -l)
took last $resume --json last.json
send last last.json
value last.runs $(segments $folder | wc -l)
value after "$(in_force)"
run status onbeat tune status --json -
