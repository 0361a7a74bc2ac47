# While one applies, another must not.
state before
kill_at_point passed -6 $APPLY --json applied.json >first.out 2>&1 &
first=$!
tries=0
until [ "$(wc -l <passed)" -ge 6 ] || [ $tries -ge 400 ]; do usleep 50000; tries=$((tries + 1)); done
value holder "$(pidof onbeat)"
took second $APPLY
run status onbeat tune status -q
run undo-early onbeat tune undo -q
wait $first
value first.exit $?
send first.out first.out
send made applied.json
state applied
undoing undo onbeat tune undo -q
state after
