# Applied, and the power fails.
state before
took apply $APPLY --json applied.json
send made applied.json
state applied
power_loss
