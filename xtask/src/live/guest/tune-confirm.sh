# Undone by itself: the terminal is closed and the applier killed, after it was done and in between; and kept if confirmed.

# written: what the settings of the list and the masks of its threads are.
written() {
    machine_state files >/run/now
    grep -e '^/' -e '^hold:' /run/now
    grep -F -f masks /run/now
}

# undone_after LABEL: how long it takes until what was written is what it was, in ms.
undone_after() {
    counts >/run/counts
    from=$(now_ms)
    tries=0
    until written | cmp -s - wanted || [ $tries -ge 100 ]; do usleep 200000; tries=$((tries + 1)); done
    to=$(now_ms)
    idle=$(idle_since /run/counts)
    value $1.ms $((to - from))
    value $1.idle "$idle"
    written | diff -U 0 wanted - >left
    send $1.left left
}

try_once --json tried.json
sed -n 's/^ *"path": "\(.*\)",$/\1/p' tried.json | grep -v '^/proc/[0-9]' | sort -u >files
sed -n 's/^ *"key": "\(task:[^"]*\)",$/\1\/mask	/p' tried.json | sort -u >masks
state before
written >wanted
value waited-for $(wc -l <wanted)

echo "$APPLY --confirm-within 5s --json applied.json; touch done; sleep 1000" >in-terminal.sh
in_terminal close sh in-terminal.sh >terminal.out 2>&1 &
terminal=$!
tries=0
until [ -f done ] || [ $tries -ge 400 ]; do usleep 50000; tries=$((tries + 1)); done
send made applied.json
written | diff -U 0 wanted - | grep -c '^+[/t]' >changed
value applied.changed $(cat changed)
touch close
wait $terminal
send terminal terminal.out
undone_after closed
state after
run status onbeat tune status -q --json status.json
send status status.json

kill_at_point passed 0 $APPLY >/dev/null 2>&1
points=$(wc -l <passed)
undoing between onbeat tune undo -q
kill_at_point passed $((points / 2)) $APPLY --confirm-within 5s >/dev/null 2>&1
value killed.exit $?
written | diff -U 0 wanted - | grep -c '^+[/t]' >changed
value killed.changed $(cat changed)
undone_after killed
state after-killed

run kept $APPLY --confirm-within 5s
run confirm onbeat tune confirm -q
usleep 8000000
run status-kept onbeat tune status -q --json kept.json
send kept kept.json
undoing undo onbeat tune undo -q
state after-kept
