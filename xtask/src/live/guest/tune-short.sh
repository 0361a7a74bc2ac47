# One setting there and back.
echo /proc/sys/vm/stat_interval >one
state before one
took apply onbeat tune apply --cpus 1 --yes -q --json applied.json vmstat-interval
send made applied.json
state applied one
undoing undo onbeat tune undo -q
state after one
