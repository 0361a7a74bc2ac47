# What only reads changes nothing, and neither what a later write does.
onbeat tune plan -q >/dev/null 2>&1
state before
took plan onbeat tune plan --cpus 2-3 --profile busy-poll -q --json plan.json
send plan plan.json
run kept onbeat tune plan --cpus 2-3 --profile busy-poll -q -o plan.kept
run status onbeat tune status -q
run export onbeat tune export exported --cpus 2-3 --profile busy-poll -q
find exported -type f >exported.list 2>/dev/null
send exported exported.list
run audit onbeat audit -q
run user su user -c 'onbeat tune plan -q'
state after

cd /proc/sys/kernel
for reader in "audit -q" "tune plan -q" "tune plan --cpus 2-3 --profile busy-poll -q" "tune status -q"; do
    echo 0 >watchdog
    onbeat $reader >/dev/null 2>&1
    echo 1 >watchdog
    value "watchdog.after.$(echo $reader | tr ' ' '-')" $(cat watchdog).$(grep -c watchdog_timer_fn /proc/timer_list)
done
value watchdog.cpus $(nproc)
