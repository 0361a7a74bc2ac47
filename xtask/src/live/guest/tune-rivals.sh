# Three values are changed by somebody else in between.
try_once
state before
took apply $APPLY --json applied.json
send made applied.json
taken=0
: >rivals
for path in $(grep -e '^/proc/sys/vm/' -e '^/proc/sys/kernel/' listed | grep -v -e watchdog -e ns_last_pid -e random -e sched_rt_); do
    was=$(sed -n "s|^$path	=\([0-9-]*\).n$|\1|p" untouched)
    now=$(cat $path)
    case "$was$now" in '' | *[!0-9-]*) continue ;; esac
    for other in $((now + 1)) $((now + 2)) $((now - 1)); do
        [ "$other" = "$was" ] && continue
        { echo $other >$path; } 2>/dev/null && [ "$(cat $path)" = $other ] || continue
        echo "$path $other" >>rivals
        taken=$((taken + 1))
        break
    done
    [ $taken = 3 ] && break
done
send rivals rivals
undoing undo onbeat tune undo -q --json undone.json
send undone undone.json
state after
run status onbeat tune status -q
undoing force onbeat tune undo --force -q
state forced
