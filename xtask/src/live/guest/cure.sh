# A machine is cured of a fault that goes by a setting; killed while a change is tried, and gone on with.
for named in /proc/irq/*/eth0*; do interrupt=${named%/*}; done
affinity=$interrupt/smp_affinity_list

# The fault: a thread that is called as an interrupt's keeps CPU 2 for some 80 ms twice a second, as long as the interrupts may
# come there.
cat >/run/fault <<'FAULT'
echo irq/99-planted >/proc/$$/comm
while :; do
    read now <$2
    i=0
    case $now in 0-3) while [ $i -lt $1 ]; do i=$((i + 1)); done ;; esac
    usleep 420000
done
FAULT
from=$(now_ms)
i=0
while [ $i -lt 100000 ]; do i=$((i + 1)); done
taken=$(($(now_ms) - from))
value calibrated.ms $taken
chrt -f 90 taskset 4 sh /run/fault $((8000000 / (taken + 1))) $affinity &
fault=$!

found=$(cat $affinity)
value found "$found"
ask="--limit 40ms -a 2 --horizon 10s --look 5s --hunt 10s --segment 4s --settle 500ms --seed 11"
run plan onbeat cure $ask --yes --dry-run
run cautious onbeat cure $ask --dry-run
run short onbeat cure $ask --for 20s -q -o /var/lib/short
onbeat cure $ask --for 15m --yes -q -o /var/lib/cure >/dev/null 2>/run/killed.err &
cure=$!
tries=0
until [ "$(cat $affinity)" != "$found" ] || [ $tries -ge 1200 ]; do usleep 100000; tries=$((tries + 1)); done
value set "$(cat $affinity)"
run other onbeat cure $ask -q -o /var/lib/other
kill -9 $cure
send killed.err /run/killed.err
tries=0
until [ "$(cat $affinity)" = "$found" ] || [ $tries -ge 100 ]; do usleep 100000; tries=$((tries + 1)); done
value given-back.ms $((tries * 100))
value given-back "$(cat $affinity)"
send begun /var/lib/cure/cure.json
took resumed onbeat cure --resume /var/lib/cure -q --json /run/cure.json --page /run/cure.html --markdown /run/cure.md
send cure /run/cure.json
send markdown /run/cure.md
echo "=== FILE page" >&3
gzip </run/cure.html | base64 | sed 's/^/|/' >&3
value after "$(cat $affinity)"
run status onbeat tune status --json -
run undo onbeat tune undo --all -q
value undone "$(cat $affinity)"
value left "$(pidof onbeat)"
kill $fault
