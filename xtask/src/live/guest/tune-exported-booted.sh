# What systemd would do with the files, without its code: first tmpfiles.d, so that what it needs of sysctl.d has to be in it.
kept=/var/lib/kept
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
grep '^w!' $kept/tmpfiles.d/onbeat.conf >lines
while read -r kind path mode user group age value; do
    [ -e "$path" ] || echo "$path" >>absent
    printf '%s' "$value" >"$path" || echo "$path $value" >>refused
done <lines
grep -v -e '^#' -e '^$' $kept/sysctl.d/90-onbeat.conf | sed 's/^-//' >lines
while IFS= read -r line; do
    name=$(echo "${line%% =*}" | tr . /)
    printf '%s\n' "${line#* = }" >/proc/sys/$name || echo "$line" >>refused
done <lines
touch absent refused
send absent absent
send refused refused
value words "$(cat /proc/cmdline)"
onbeat audit --cpus 2-3 --profile busy-poll -q --json audit.json
send audit audit.json
onbeat tune import $kept -q --json import.json
send import import.json
