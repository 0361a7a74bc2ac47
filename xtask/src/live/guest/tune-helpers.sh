# What the scenes of tune are written with.

APPLY="onbeat tune apply --cpus 2-3 --profile busy-poll --yes -q"

# The kernel's warnings, where there are some at the end of a scene.
taint=$(cat /proc/sys/kernel/tainted)
warnings() {
    [ "$(cat /proc/sys/kernel/tainted)" = "$taint" ] && return
    dmesg | grep -A 60 'cut here' >/run/warnings
    send kernel.warnings /run/warnings
}
trap warnings EXIT

# state LABEL [LIST]: everything, or the files of a list and the threads; compressed, because some lines are slow.
state() {
    # What was just written takes effect at once, but kernel workers may still be at it.
    usleep 300000
    echo "=== FILE $1" >&3
    machine_state $2 | gzip | base64 | sed 's/^/|/' >&3
}

# took LABEL COMMAND...: as run, and says in ms how long it took.
took() {
    from=$(now_ms)
    run "$@"
    value $1.ms $(($(now_ms) - from))
}

# documented NAME COMMAND...: as run, with its document on its output.
documented() {
    name=$1
    shift
    run document.$name "$@" --json -
}

# counts: how often each interrupt came.
counts() {
    grep -H '' /sys/kernel/irq/*/per_cpu_count
}

# idle_since FILE: the interrupts that came at most twice since then. They stay on their CPU until the next, whatever is
# written, and nothing that waits for one waits for long.
idle_since() {
    counts | awk -F '[/:,]' '
        { sum = 0; for (at = 7; at <= NF; at++) sum += $at }
        NR == FNR { before[$5] = sum; next }
        sum - before[$5] <= 2 { printf "%s ", $5 }
    ' $1 -
}

# undoing LABEL COMMAND...: as took, and says which interrupts were idle meanwhile; reports only then, because that interrupts.
undoing() {
    undoing=$1
    shift
    counts >/run/counts
    from=$(now_ms)
    "$@" >/run/$undoing.out 2>/run/$undoing.err
    code=$?
    to=$(now_ms)
    idle=$(idle_since /run/counts)
    value $undoing.exit $code
    value $undoing.ms $((to - from))
    value $undoing.idle "$idle"
    send $undoing.out /run/$undoing.out
    send $undoing.err /run/$undoing.err
}

# files_changed BEFORE AFTER: the files that differ between two looks.
files_changed() {
    diff -U 0 $1 $2 | sed -n 's/^[-+]\(\/[^	]*\)	.*/\1/p' | sort -u
}

# try_once: applies once to learn which files change, and undoes that; they are in `listed`, the settings before in `untouched`.
try_once() {
    machine_state >untouched
    $APPLY "$@" >/dev/null 2>&1
    machine_state >touched
    onbeat tune undo --all -q >/dev/null 2>&1
    # Counters differ, too; what is compared is judged outside.
    files_changed untouched touched | grep -v -e '^/sys/kernel/slab/' -e '^/sys/fs/cgroup/cgroup\.[pt]' >listed
    value listed $(wc -l <listed)
}

# settings_of LIST: the settings of a list, without the threads, which come and go.
settings_of() {
    machine_state $1 | grep '^/'
}

# partition: the state of the group that is one: the inner of two, or where the kernel cannot do that (before 6.7) the outer.
partition() {
    own=/sys/fs/cgroup/onbeat
    [ -e $own/cpuset.cpus.exclusive ] && own=$own/rt
    if [ -e $own/cpuset.cpus.partition ]; then cat $own/cpuset.cpus.partition; else echo none; fi
}

# power_loss: nothing is written any more, nothing stops orderly.
power_loss() {
    usleep 500000
    echo b >/proc/sysrq-trigger
    usleep 60000000
}

# patiently CONDITION...: waits until it holds, and says for how long, in ms.
patiently() {
    from=$(now_ms)
    tries=0
    until "$@" || [ $tries -ge 200 ]; do usleep 50000; tries=$((tries + 1)); done
    echo $(($(now_ms) - from))
}
# is_over: nothing of onbeat runs any more.
is_over() { ! cat /proc/[0-9]*/comm 2>/dev/null | grep -q '^onbeat'; }
