#!/bin/sh
# DuckDB's approx_quantile(x, 1) is far below the maximum, and shrinks as ordinary samples are added.
#
# Version: duckdb 2.0.1 for Python, on Python 3.11 or later. Needs no root.
# Behaviour: approx_quantile() keeps a t-digest, whose ends are elsewhere single samples. Here the last
# cluster has more than a hundred ordinary samples with the one long sample, and their mean is what both
# the quantile 1 and the quantile 0.99999 return: the one is much below the maximum, the other much above
# the exact quantile. quantile_disc() and max() are exact. The manual says "approximate", and of no end.
# Seen, with one sample of 1,000,000 and all others from 10 to 59:
#   samples    approx_quantile(x, 1)   max(x)    approx_quantile(x, 0.99999)   quantile_disc(x, 0.99999)
#   10000                    1000000  1000000                        1000000                     1000000
#   1000000                     7101  1000000                           7101                          59
#   3000000                     2677  1000000                           2677                          59
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

cat >quantiles.py <<'END'
import duckdb

database = duckdb.connect()
database.execute("SET threads = 1")
for samples in (10000, 1000000, 3000000):
    print(samples, *database.execute(
        "SELECT approx_quantile(x, 1), max(x), approx_quantile(x, 0.99999), quantile_disc(x, 0.99999)"
        " FROM (SELECT CASE WHEN i = 77 THEN 1000000 ELSE 10 + i % 50 END AS x FROM range(?) AS t(i))",
        [samples]).fetchone())
END
python3 quantiles.py >quantiles.txt
echo "samples, approx_quantile 1, max, approx_quantile 0.99999, quantile_disc 0.99999:"
cat quantiles.txt

while read -r samples last max high exact; do
    [ "$max" = 1000000 ] || fail "of $samples samples, the maximum is $max"
    if [ "$samples" = 10000 ]; then
        [ "$last" = 1000000 ] || fail "of $samples samples, the quantile 1 is $last"
        continue
    fi
    [ "$last" -lt 100000 ] || fail "of $samples samples, the quantile 1 is $last"
    [ "$exact" = 59 ] || fail "of $samples samples, the exact quantile 0.99999 is $exact"
    [ "$high" -gt 590 ] || fail "of $samples samples, the quantile 0.99999 is $high"
    seen="of $samples samples, the quantile 1 is $last, the maximum $max"
done <quantiles.txt
echo "ok: $seen"
