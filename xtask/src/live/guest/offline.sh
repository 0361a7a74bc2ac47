# A CPU that is measured goes offline while a change is in force: the experiment and the cure end with one line, nothing of theirs
# is left, and with the CPU back they are gone on with.
interval=/proc/sys/vm/stat_interval
online=/sys/devices/system/cpu/cpu2/online
found=$(cat $interval)
value found "$found"
# Behind a number of seconds it is one of nanoseconds.
second=000000000

# recorded FOLDER: a cure that is about to try a change.
recorded() {
    mkdir -p $1/steps/001
    cat >$1/cure.json <<END
{ "schema": "onbeat.cure/1", "limit_ns": 30000000, "kernel": "$(uname -r)", "boot": "$(cat /proc/sys/kernel/random/boot_id)",
  "plan": { "limit_ns": 30000000, "horizon_ns": 1$second, "at_most_ns": 600$second, "cpus": "2", "interval_ns": 1000000,
    "look_ns": 2$second, "hunt_ns": 2$second, "segment_ns": 5$second, "settle_ns": 300000000, "seed": 11 },
  "runs": [ { "bundle": "runs/001", "valid": true, "late": 9, "samples": 5000, "observed_ns": 5$second } ],
  "steps": [ { "culprit": "a made-up one", "change": "vmstat-interval", "verdict": "", "experiment": "steps/001",
    "candidate": { "rules": [ "vmstat-interval" ], "threads": [], "changes": [], "risk": "low" } } ] }
END
    cat >$1/steps/001/experiment.json <<END
{ "schema": "onbeat.experiment/1", "kernel": "$(uname -r)", "pilot": { "valid": true }, "segments": [],
  "plan": { "change": "vmstat-interval", "settings": [ "vmstat-interval" ], "limit_ns": 30000000, "seed": 11,
    "segment_ns": 5$second, "settle_ns": 300000000, "most_pairs": 16, "stop_at": 20.0, "win_at": 20.0, "rate_margin": 2.0,
    "p50_factor": 1.1, "p50_ns": 1000, "load_share": 0.8, "cpus": "2", "interval_ns": 1000000 } }
END
}

# struck WAY COMMAND...: takes CPU 2 away while the change is in force, says how the command ended, and gives the CPU back.
struck() {
    way=$1
    shift
    start $way "$@"
    tries=0
    until [ "$(cat $interval)" != "$found" ] || [ $tries -ge 600 ]; do usleep 100000; tries=$((tries + 1)); done
    value $way.set "$(cat $interval)"
    # Into the run that is measured with it.
    usleep 2500000
    echo 0 >$online
    value $way.offline "$(cat $online)"
    reap
    value $way.after "$(cat $interval)"
    # What watches over the change ends by itself.
    value $way.over $(patiently is_over)
    value $way.left "$(pidof onbeat)"
    echo 1 >$online
    run $way.status onbeat tune status --json -
}

struck prove onbeat prove --change vmstat-interval=120 --limit 30ms -a 2 --segment 5s --settle 300ms --warm-up 3s --seed 11 -q \
    -o /var/lib/prove
# There is no time for a pair: what was measured is answered.
run resumed onbeat prove --resume /var/lib/prove -q --for 1s
send record /var/lib/prove/experiment.json
recorded /var/lib/cure
struck cure onbeat cure --resume /var/lib/cure -q
send story /var/lib/cure/cure.json
value after "$(cat $interval)"
