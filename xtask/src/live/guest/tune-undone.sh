# Everything that applies is applied, looked at, and undone.
state before
took apply $APPLY --json applied.json
send made applied.json
state applied
run status onbeat tune status -q --json status.json
send status status.json
undoing undo onbeat tune undo -q --json undone.json
send undone undone.json
state after
run again onbeat tune undo -q
