# The next boot: what lasted until it is void, and not written again.
state before
run status onbeat tune status --all -q --json status.json
send status status.json
run told onbeat tune status --all
undoing undo onbeat tune undo --all
state after
run over onbeat tune status -q --json over.json
send over over.json
took apply $APPLY --json applied.json
send made applied.json
undoing undo-again onbeat tune undo -q
state again
