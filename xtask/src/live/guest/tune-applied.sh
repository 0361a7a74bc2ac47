# Applied, and the power fails.
state before
took apply $APPLY --json applied.json
send applied applied.json
state applied
power_loss
