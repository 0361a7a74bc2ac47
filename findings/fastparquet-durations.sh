#!/bin/sh
# Durations that fastparquet writes are times of day to other readers, and negative ones are lost.
#
# Version: fastparquet 2026.9.0, read by pyarrow 26.0.1, polars 2.1.0 and duckdb 2.0.1, with pandas 3.1.1, on
# Python 3.11 or later. Needs no root.
# Behaviour: Parquet has no type for durations, and fastparquet takes that for a time of day, in whole
# microseconds. Nothing is said at writing, and fastparquet itself reads durations back. The lateness of a
# timer that is early is negative, which no time of day is: polars reads it as null, pyarrow as a time just
# before midnight, and DuckDB refuses the file. Pandas' other writer, pyarrow, stores nanoseconds with a
# remark that polars understands.
# Seen, of the latenesses 12.345 us and -5 us:
#   fastparquet  0 days 00:00:00.000012, -1 days +23:59:59.999995    polars  00:00:00.000012, null
#   pyarrow      00:00:00.000012, 23:59:59.999995                    DuckDB  "Invalid TIME value -5"
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps \
    --only-binary :all: --target packages fastparquet==2026.9.0 pandas==3.1.1 numpy==2.4.6 cramjam==2.14.0 \
    fsspec==2026.9.0 packaging==26.4 python-dateutil==2.9.0.post0 six==1.17.0 pyarrow==26.0.1 polars==2.1.0 \
    polars-runtime-32==2.1.0 duckdb==2.0.1 || cannot "fastparquet 2026.9.0 or a reader is not to be had"
PYTHONPATH=$work/packages
export PYTHONPATH

cat >write.py <<'END'
import fastparquet
import pandas

late = pandas.DataFrame({"late": pandas.to_timedelta([12_345, -5_000], unit="ns")})
fastparquet.write("late.parquet", late)
late.to_parquet("pyarrow.parquet", engine="pyarrow")
END
cat >read.py <<'END'
import duckdb
import fastparquet
import polars
import pyarrow.parquet


def show(reader, values):
    print(f"{reader}:", ", ".join(str(value) for value in values))


show("fastparquet", fastparquet.ParquetFile("late.parquet").to_pandas()["late"])
show("pyarrow", pyarrow.parquet.read_table("late.parquet")["late"].to_pylist())
show("polars", polars.read_parquet("late.parquet")["late"])
try:
    show("duckdb", (late for late, in duckdb.sql("SELECT late FROM 'late.parquet'").fetchall()))
except duckdb.Error as error:
    print(f"duckdb refuses: {error}")
show("polars of pyarrow's", polars.read_parquet("pyarrow.parquet")["late"])
END
python3 -W error write.py || fail "writing durations raises or warns"
python3 read.py >read.txt || fail "a reader raises"
cat read.txt

grep -qx 'fastparquet: 0 days 00:00:00.000012, -1 days +23:59:59.999995' read.txt ||
    fail "fastparquet reads other durations back"
grep -qx 'pyarrow: 00:00:00.000012, 23:59:59.999995' read.txt || fail "pyarrow reads something else"
grep -qx 'polars: 00:00:00.000012, None' read.txt || fail "polars reads something else"
grep -q '^duckdb refuses: .*TIME value -5' read.txt || fail "DuckDB reads the file"
grep -qx "polars of pyarrow's: 0:00:00.000012, -1 day, 23:59:59.999995" read.txt ||
    fail "the durations of pyarrow's file are others"
echo "ok: -5 us is null to polars, 23:59:59.999995 to pyarrow, and refused by DuckDB"
