# cured LIMIT TIME ARGUMENTS...: what becomes of the machine, whether the rules in $lasting can be made to last, and with what
# was kept undone again.
lasting=
cured() {
    limit=$1 time=$2
    shift 2
    state before
    # A hunt switches tracepoints.
    hold
    undoing cure onbeat cure --limit $limit --for $time -a 2 --horizon 10s --look 5s --hunt 8s --settle 300ms --seed 11 -q \
        -o /var/lib/cure --json /run/cure.json --page /run/cure.html --markdown /run/cure.md "$@"
    send story /run/cure.json
    send markdown /run/cure.md
    send page /run/cure.html
    state after
    run status onbeat tune status --json -
    [ -z "$lasting" ] || run export onbeat tune export /var/lib/lasting --cpus 2 $lasting -q
    undoing undo onbeat tune undo --all -q
    state undone
    value left "$(pidof onbeat)"
}
