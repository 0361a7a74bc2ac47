#!/bin/sh
# DuckDB rounds two nanosecond timestamps before it subtracts them: 1 ns becomes 1 us, and 999 ns become 0.
#
# Version: duckdb 2.0.1 for Python, on Python 3.11 or later. Needs no root.
# Behaviour: TIMESTAMP_NS keeps nanoseconds and compares them. The difference of two of them, age() and
# date_diff() round each to the nearest microsecond first, so that a latency is off by up to 1 us either way,
# and depends on where in a microsecond the wake-up was; date_diff() has no nanoseconds. The manual says that
# an interval has microseconds, and not that the stamps are rounded. epoch_ns() of each side is exact. Where
# the type is left to the CSV reader, the column is a TIMESTAMP, cut to microseconds.
# Seen:
#   woken, ran               ran - woken   epoch_ns(ran) - epoch_ns(woken)   ran > woken
#   .123456499, .123456500          1 us                              1 ns          true
#   .123456500, .123457499          0 us                            999 ns          true
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps \
    --only-binary :all: --target packages duckdb==2.0.1 || cannot "duckdb 2.0.1 is not to be had"
PYTHONPATH=$work/packages
export PYTHONPATH

cat >wakeups.csv <<'END'
woken,ran
2026-11-30 04:00:00.123456499,2026-11-30 04:00:00.123456500
2026-11-30 04:00:00.123456500,2026-11-30 04:00:00.123457499
END
cat >subtract.py <<'END'
import duckdb

print("type, difference, age, date_diff in us, exact in ns, ran > woken:")
for types in ("{'woken': 'TIMESTAMP_NS', 'ran': 'TIMESTAMP_NS'}", None):
    option = f", types = {types}" if types else ""
    for kind, *values in duckdb.sql(f"""
        SELECT typeof(woken), epoch_us(ran - woken), epoch_us(age(ran, woken)),
            date_diff('microsecond', woken, ran), epoch_ns(ran) - epoch_ns(woken), ran > woken
        FROM read_csv('wakeups.csv'{option}) ORDER BY woken, ran
    """).fetchall():
        print(kind, *values)
END
python3 subtract.py >differences.txt || fail "a query raises"
cat differences.txt

grep -qx 'TIMESTAMP_NS 1 1 1 1 True' differences.txt || fail "a difference of 1 ns is another"
grep -qx 'TIMESTAMP_NS 0 0 0 999 True' differences.txt || fail "a difference of 999 ns is another"
grep -qx 'TIMESTAMP 0 0 0 0 False' differences.txt || fail "the CSV reader does not cut 1 ns"
grep -qx 'TIMESTAMP 1 1 1 1000 True' differences.txt || fail "the CSV reader does not make 1 us of 999 ns"
echo "ok: 1 ns is a difference of 1 us, and 999 ns are none"
