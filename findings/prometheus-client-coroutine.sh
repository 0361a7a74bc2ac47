#!/bin/sh
# prometheus_client's @histogram.time() of a coroutine that waits for 50 ms observes some microseconds.
#
# Version: prometheus-client 0.26.0 of PyPI, on Python 3.11 or later. Needs no root.
# Behaviour: the decorator is documented for functions. Of an "async def" it times the call alone, which only
# makes the coroutine: all waits are in the first row, however long, and an exception within is not counted
# by @counter.count_exceptions(), nor is a call in progress by @gauge.track_inprogress(). There is no message.
# The same objects in a "with" block within the function are right.
# Seen, of a wait of 50 ms that ends with an exception:
#   @time(), async def          le="0.001" 1, sum 0.000009
#   with time(), async def      le="0.001" 0, sum 0.0506
#   @count_exceptions()         0; with a "with" block 1
#   @track_inprogress()         0 while the coroutine waits; with a "with" block 1
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps --target packages \
    prometheus-client==0.26.0 || cannot "prometheus-client 0.26.0 is not to be had"
PYTHONPATH=$work/packages
export PYTHONPATH

cat >wait.py <<'END'
import asyncio
import warnings

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

warnings.simplefilter("error")
registry = CollectorRegistry()


def metrics(name):
    return (
        Histogram(f"{name}_seconds", "Waits", buckets=(0.001, 0.01, 0.1), registry=registry),
        Counter(f"{name}_failures", "Exceptions", registry=registry),
        Gauge(f"{name}_running", "Calls in progress", registry=registry),
    )


seconds, failures, running = metrics("decorated")


@seconds.time()
@failures.count_exceptions()
@running.track_inprogress()
async def decorated():
    await asyncio.sleep(0.05)
    raise OSError


async def block():
    seconds, failures, running = metrics("block")
    with seconds.time(), failures.count_exceptions(), running.track_inprogress():
        await asyncio.sleep(0.05)
        raise OSError


async def observe(name, function):
    call = asyncio.create_task(function())
    await asyncio.sleep(0.02)
    during = registry.get_sample_value(f"{name}_running")
    await asyncio.wait([call])
    call.exception()
    first = registry.get_sample_value(f"{name}_seconds_bucket", {"le": "0.001"})
    total = registry.get_sample_value(f"{name}_seconds_sum")
    failed = registry.get_sample_value(f"{name}_failures_total")
    print(f"{name} {first:.0f} {total:.6f} {failed:.0f} {during:.0f}")


async def main():
    await observe("decorated", decorated)
    await observe("block", block)


asyncio.run(main())
END
python3 wait.py >waits.txt || fail "a coroutine is refused, or there is a warning"
echo 'what, le="0.001", sum, exceptions, in progress:'
cat waits.txt

grep -q '^decorated 1 0\.00[0-9]* 0 0$' waits.txt || fail "the decorators observe $(sed -n 1p waits.txt)"
grep -q '^block 0 0\.[0-9]* 1 1$' waits.txt || fail "the blocks observe $(sed -n 2p waits.txt)"
observed=$(sed -n 's/^decorated 1 \([0-9.]*\) .*/\1/p' waits.txt)
echo "ok: of a wait of 50 ms, the decorator observes $observed s"
