# The unit that `watch --unit` prints, under systemd: it records, has no more rights than it says, comes back when it is killed.
unit=/run/systemd/system/onbeat-watch.service
record=/var/lib/onbeat/watch
onbeat watch --unit --interval 2s >$unit
send unit $unit
# An administrator would wait a minute for it to come back; this does not.
mkdir -p $unit.d
printf '[Service]\nRestartSec=1\n' >$unit.d/lab.conf
systemctl daemon-reload
process() {
    systemctl show -p MainPID --value onbeat-watch
}
# back PID: waits until another process is the unit's, and prints that.
back() {
    tries=0
    until { now=$(process); [ "$now" != 0 ] && [ "$now" != "$1" ]; } || [ $tries -ge 100 ]; do
        usleep 200000
        tries=$((tries + 1))
    done
    echo $now
}
# recorded N: waits until the record has so many intervals.
recorded() {
    tries=0
    until [ $tries -ge 120 ]; do
        n=$(onbeat report $record -q --json - 2>/dev/null | sed -n 's/.*"intervals":\([0-9]*\),"boots".*/\1/p')
        [ "${n:-0}" -ge $1 ] && return
        tries=$((tries + 1))
        usleep 500000
    done
}
run start systemctl start onbeat-watch
recorded 1
run measure onbeat measure -p 80 -i 5000 -a 1 -D 5s -q -o b
recorded 4
send status /proc/$(process)/status
value memory "$(sed -n 's/^\(Pss\|Anonymous\): *\([0-9]*\) kB/\1 \2/p' /proc/$(process)/smaps_rollup | tr '\n' ' ')"
first=$(process)
kill -KILL $first
second=$(back $first)
value first "$first"
value second "$second"
recorded 6
run stop systemctl stop onbeat-watch
value result "$(systemctl show -p Result --value onbeat-watch)"
value left "$(grep -l onbeat_ /proc/[0-9]*/fdinfo/* 2>/dev/null | wc -l)"
# The same through a ring, whose instance has to go with it.
onbeat watch --unit --by ring --interval 2s >$unit
systemctl daemon-reload
more=$((n + 3))
run ring.start systemctl start onbeat-watch
recorded $more
first=$(process)
kill -KILL $first
value ring.first "$first"
value ring.second "$(back $first)"
recorded $((more + 2))
value ring.instances "$(ls /sys/kernel/tracing/instances | grep -c '^onbeat-')"
run ring.stop systemctl stop onbeat-watch
value ring.result "$(systemctl show -p Result --value onbeat-watch)"
value ring.left "$(ls /sys/kernel/tracing/instances | grep -c '^onbeat-')"
value ring.intervals $((n - more + 3))
run report onbeat report $record -q --json r.json
send record r.json
rm -rf $unit $unit.d
systemctl daemon-reload
