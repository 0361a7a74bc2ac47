# Killed at points of its way (share FIRST of STEP), apply is undone. Every so many times everything is looked at.
state before
try_once
kill_at_point passed 0 $APPLY >/dev/null 2>&1
value whole.exit $?
points=$(wc -l <passed)
value points $points
send passed passed
onbeat tune undo --all -q >/dev/null 2>&1
state after.0 listed
tried=0
point=$FIRST
while [ $point -le $points ]; do
    kill_at_point passed $point $APPLY >/dev/null 2>&1
    value killed.$point "$? $(tail -n 1 passed)"
    onbeat tune undo --all -q >said 2>&1
    value undo.$point "$? $(tail -n 1 said)"
    if [ $((tried % FULL)) = 0 ]; then state whole.$point; else state after.$point listed; fi
    tried=$((tried + 1))
    point=$((point + STEP))
done
