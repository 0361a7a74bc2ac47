# Killed at points of its way (share FIRST of STEP), apply is undone. Every so many times everything is looked at.
try_once
state before
kill_at_point passed 0 $APPLY >/dev/null 2>&1
value whole.exit $?
points=$(wc -l <passed)
value points $points
send passed passed
counts >/run/counts
onbeat tune undo --all -q >/dev/null 2>&1
idle=$(idle_since /run/counts)
value idle.0 "$idle"
state after.0 listed
tried=0
point=$FIRST
while [ $point -le $points ]; do
    kill_at_point passed $point $APPLY >/dev/null 2>&1
    value killed.$point "$? $(tail -n 1 passed)"
    counts >/run/counts
    onbeat tune undo --all -q >said 2>&1
    code=$?
    idle=$(idle_since /run/counts)
    value undo.$point "$code $(tail -n 1 said)"
    value idle.$point "$idle"
    if [ $((tried % FULL)) = 0 ]; then state whole.$point; else state after.$point listed; fi
    tried=$((tried + 1))
    point=$((point + STEP))
done
