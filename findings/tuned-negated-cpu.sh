#!/bin/sh
# tuned takes "2-7, ^5" for no CPU at all, without a message, and its check of the list succeeds.
#
# Version: tuned 2.20.0-1 of Debian 12, on Python 3.11 or later. Needs no root.
# Behaviour: a list of CPUs can have blanks ("2-7, 9"), and leave CPUs out ("2-7,^5"). With both, the whole
# list is empty, though the comment above that code has the example "0-5, ^3". The realtime profile then goes
# on with an empty list of isolated CPUs and a mask of 0: isolated_cores is set, which is its first check, and
# the second, for CPUs that are not online, compares two empty lists.
# Seen, of the variables that the profile computes from isolated_cores:
#   isolated_cores    isolated_cores_expanded    isolated_cpumask    check for online CPUs
#   2-7, 9            2,3,4,5,6,7,9              000002fc
#   2-7,^5            2,3,4,6,7                  000000dc
#   2-7, ^5                                      00000000
#   0-9999            0,1,2,...                                      Assertion ... failed
#   0-9999, ^5                                   00000000            passed
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }
command -v python3 >/dev/null || cannot "python3 is missing"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
apt-get -qq -o APT::Sandbox::User=root download tuned=2.20.0-1 || cannot "tuned=2.20.0-1 is not to be had"
dpkg -x tuned_*.deb root
PYTHONPATH=$work/root/usr/lib/python3/dist-packages
export PYTHONPATH

cat >expand.py <<'END'
import configparser

from tuned.exceptions import TunedException
from tuned.profiles.variables import Variables

profile = configparser.RawConfigParser(strict=False)
profile.optionxform = str
profile.read("root/usr/lib/tuned/realtime/tuned.conf")
for cores in ("2-7, 9", "2-7,^5", "2-7, ^5", "0-9999", "0-9999, ^5"):
    variables = Variables()
    variables.add_variable("isolated_cores", cores)
    try:
        names = ["isolated_cores_expanded", "isolated_cpumask"]
        if cores[0] == "0":
            names += ["isolated_cores_online_expanded", "assert2"]
        for name in names:
            variables.add_variable(name, profile.get("variables", name))
        expanded, mask = (variables.expand("${%s}" % name) for name in names[:2])
        print("%s|%s|%s" % (cores, expanded, mask))
    except TunedException as error:
        print("%s|%s" % (cores, error))
END
python3 expand.py >lists.txt 2>messages.txt || fail "the variables cannot be expanded"
echo "isolated_cores|isolated_cores_expanded|isolated_cpumask:"
cat lists.txt

# The variables in the line of $1.
seen() { grep -F "$1|" lists.txt | cut -d '|' -f 2-; }

[ "$(seen '2-7, 9')" = "2,3,4,5,6,7,9|000002fc" ] || fail "a blank changes a list to $(seen '2-7, 9')"
[ "$(seen '2-7,^5')" = "2,3,4,6,7|000000dc" ] || fail "without a blank, the list is $(seen '2-7,^5')"
[ "$(seen '2-7, ^5')" = "|00000000" ] || fail "with a blank, the list is $(seen '2-7, ^5')"
seen '0-9999' | grep -q '^Assertion.*failed' || fail "CPUs that are not online are accepted"
[ "$(seen '0-9999, ^5')" = "|00000000" ] || fail "the check of the list has another result"
if grep -q -F '^5' messages.txt; then fail "the empty list is remarked on"; fi
echo "ok: \"2-7, ^5\" is no CPU, and the check for CPUs that are not online passes"
