# One setting there and back.
echo /proc/sys/vm/stat_interval >one
state before one
took apply onbeat tune apply --cpus 1 --yes -q --json applied.json vmstat-interval
send made applied.json
state applied one
undoing undo onbeat tune undo -q
state after one
# Each document on the output, made, kept and undone, and where there is nothing to do.
documented apply onbeat tune apply --cpus 1 --yes vmstat-interval
documented apply-again onbeat tune apply --cpus 1 --yes vmstat-interval
documented apply-refused onbeat tune apply --cpus 99 --yes vmstat-interval
documented confirm-nothing onbeat tune confirm
documented undo onbeat tune undo
documented undo-again onbeat tune undo
documented undo-refused onbeat tune undo 99
documented within onbeat tune apply --cpus 1 --yes --keep-going --confirm-within 10m vmstat-interval
documented confirm onbeat tune confirm
documented undo-forced onbeat tune undo --force
documented undo-all onbeat tune undo --all
