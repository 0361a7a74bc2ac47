# A machine is cured of another program's thread; killed while a change is tried, and gone on with.
user_faults spin 2 90 50000 100000 500 >/dev/null &
spinner=$!
mask() { sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/$spinner/status; }

# A hunt switches tracepoints.
hold
found=$(mask)
value found "$found"
ask="--limit 30ms -a 2 --horizon 10s --look 5s --hunt 8s --segment 3s --settle 300ms --seed 11"
run plan onbeat cure $ask --yes --dry-run
run cautious onbeat cure $ask --dry-run
run short onbeat cure $ask --for 20s -q -o /var/lib/short
onbeat cure $ask --for 20m --yes -q -o /var/lib/cure >/dev/null 2>/run/killed.err &
cure=$!
tries=0
until [ "$(mask)" != "$found" ] || [ $tries -ge 1200 ]; do usleep 100000; tries=$((tries + 1)); done
value set "$(mask)"
run other onbeat cure $ask -q -o /var/lib/other
kill -9 $cure
send killed.err /run/killed.err
tries=0
until [ "$(mask)" = "$found" ] || [ $tries -ge 100 ]; do usleep 100000; tries=$((tries + 1)); done
value given-back.ms $((tries * 100))
value given-back "$(mask)"
send begun /var/lib/cure/cure.json
took resumed onbeat cure --resume /var/lib/cure -q --json /run/cure.json --page /run/cure.html --markdown /run/cure.md
send cure /run/cure.json
send markdown /run/cure.md
value after "$(mask)"
run status onbeat tune status --json -
run undo onbeat tune undo --all -q
value undone "$(mask)"
value left "$(pidof onbeat)"
kill $spinner
