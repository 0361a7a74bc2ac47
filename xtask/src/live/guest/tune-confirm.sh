# Undone by itself: the terminal is closed and the applier killed, after it was done and in between; and kept if confirmed.

# undone_after LABEL: how long it takes until the settings are what they were, in ms.
undone_after() {
    counts >/run/counts
    from=$(now_ms)
    tries=0
    until settings_of listed | cmp -s - wanted || [ $tries -ge 100 ]; do usleep 200000; tries=$((tries + 1)); done
    to=$(now_ms)
    idle=$(idle_since /run/counts)
    value $1.ms $((to - from))
    value $1.idle "$idle"
}

try_once
state before
# Only what was written is waited for, not what counts.
settings_of listed >wanted
usleep 1000000
settings_of listed >again
files_changed wanted again >counters
[ -s counters ] && grep -v -x -F -f counters listed >listed.now && mv listed.now listed
settings_of listed >wanted
value waited-for $(wc -l <listed)

echo "$APPLY --confirm-within 5s --json applied.json; touch done; sleep 1000" >in-terminal.sh
in_terminal close sh in-terminal.sh >terminal.out 2>&1 &
terminal=$!
tries=0
until [ -f done ] || [ $tries -ge 400 ]; do usleep 50000; tries=$((tries + 1)); done
send made applied.json
settings_of listed | cmp -s - wanted && value applied.differs 0 || value applied.differs 1
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
undone_after killed
state after-killed

run kept $APPLY --confirm-within 5s
run confirm onbeat tune confirm -q
usleep 8000000
settings_of listed | cmp -s - wanted && value kept.differs 0 || value kept.differs 1
undoing undo onbeat tune undo -q
state after-kept
