#!/bin/sh
# svsematest started as cron starts it measures nothing and exits with 0.
#
# Version: rt-tests 2.4-1 of Debian 12 (says "V 2.40"); seen in 2.10-1, too.
# Behaviour: the name of its semaphores comes from the file that the variable "_" names, or else from the
# name that it was called by. bash sets "_" to the whole path; dash, cron and a call by execvp() do not, and
# a bare name is then searched for in the current folder. The only sign of it is a line on standard error:
# no line of results, no JSON file, exit status 0. With the whole path it measures in the same environment.
# Seen:
#   env -i PATH=... sh -c 'svsematest -t1 -l 100 --json=FILE'            ftok: No such file or directory
#                                                                        exit status 0, no FILE
#   env -i PATH=... sh -c '/usr/bin/svsematest -t1 -l 100 --json=FILE'   Cycles 100; FILE has 100 samples
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
for package in rt-tests=2.4-1 libnuma1=2.0.16-1; do
    apt-get -qq -o APT::Sandbox::User=root download "$package" || cannot "$package is not to be had"
done
for file in *.deb; do
    dpkg -x "$file" root
done
libraries=$(dirname "$work"/root/usr/lib/*/libnuma.so.1)

# Runs the program by the name $1, with the environment of a program that cron starts; JSON to $2.
start() {
    env -i PATH="$work/root/usr/bin:$PATH" LD_LIBRARY_PATH="$libraries" \
        sh -c "$1 -t1 -a0 -i1000 -l 100 --json=$2" >"$2.out" 2>"$2.err"
}

start svsematest bare.json && bare=0 || bare=$?
start "$work/root/usr/bin/svsematest" whole.json && whole=0 || whole=$?
echo "svsematest: exit status $bare, standard error: $(cat bare.json.err)"
echo "/usr/bin/svsematest: exit status $whole, JSON:$(grep '"samples"' whole.json || true)"

[ "$bare" = 0 ] || fail "by its bare name, the exit status is $bare"
grep -q '^ftok: ' bare.json.err || fail "by its bare name, standard error is without a remark on ftok"
[ ! -e bare.json ] || fail "by its bare name, it writes a JSON file"
grep -q Cycles bare.json.out && fail "by its bare name, it measures"
grep -q '"samples": 100' whole.json || fail "by its whole path, it does not measure"
echo "ok: by its bare name and without \"_\" it measures nothing, and exits with 0"
