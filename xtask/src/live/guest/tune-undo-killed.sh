# An undo that is killed at points of its way (share FIRST of STEP) is resumed by the next.
try_once
state before
$APPLY >/dev/null 2>&1
counts >/run/counts
kill_at_point passed 0 onbeat tune undo -q >/dev/null 2>&1
value whole.exit $?
idle=$(idle_since /run/counts)
value idle.0 "$idle"
points=$(wc -l <passed)
value points $points
send passed passed
state after.0 listed
tried=0
point=$FIRST
while [ $point -le $points ]; do
    $APPLY >/dev/null 2>&1
    counts >/run/counts
    kill_at_point passed $point onbeat tune undo -q >/dev/null 2>&1
    value killed.$point "$? $(tail -n 1 passed)"
    onbeat tune undo --all -q >said 2>&1
    code=$?
    idle=$(idle_since /run/counts)
    value undo.$point "$code $(tail -n 1 said)"
    value idle.$point "$idle"
    if [ $((tried % FULL)) = 0 ]; then state whole.$point; else state after.$point listed; fi
    tried=$((tried + 1))
    point=$((point + STEP))
done
