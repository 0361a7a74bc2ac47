# What systemd does to control groups while two CPUs are set apart. It has done all of that once before, so that what it leaves
# in files is there in both looks.
as_systemd_does() {
    systemctl daemon-reload
    systemctl set-property --runtime system.slice AllowedCPUs=0-3
    systemctl daemon-reload
    usleep 500000
}
as_systemd_does
value systemd "$(systemctl is-system-running)"
state before
took create onbeat isolate create 2-3 --yes -q
value created "$(partition)"
state created
run list onbeat isolate list -q --json list.json
send list list.json
as_systemd_does
value reloaded "$(partition)"
state reloaded
run list-reloaded onbeat isolate list -q --json reloaded.json
send list-again reloaded.json
undoing undo onbeat isolate undo -q
state after
