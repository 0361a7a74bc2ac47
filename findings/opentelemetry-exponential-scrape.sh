#!/bin/sh
# One exponential histogram of OpenTelemetry makes the whole Prometheus page fail, from its first sample on.
#
# Version: opentelemetry-exporter-prometheus 0.66b2 with opentelemetry-sdk 1.45.2 and prometheus-client
# 0.26.0, on Python 3.11 or later. Needs no root.
# Behaviour: the SDK has exponential histograms for values of unknown range, such as latencies. The exporter
# cannot write them, and has a warning for that, but fails before that. Until the first sample the
# page is whole. Then each scrape is answered with status 500, and all other metrics are lost with the
# histogram, also those that the program has in prometheus-client without OpenTelemetry.
# Seen, with a counter of each library:
#   before the first sample of the histogram    status 200, missed_total 1.0, restarts_total 1.0
#   after it                                    status 500, no metric; AttributeError on standard error
set -eu

fail() { echo "changed: $1"; exit 1; }
cannot() { echo "not run: $1" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"
python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps --target packages \
    opentelemetry-exporter-prometheus==0.66b2 opentelemetry-sdk==1.45.2 opentelemetry-api==1.45.2 \
    opentelemetry-semantic-conventions==0.66b2 prometheus-client==0.26.0 typing-extensions==4.16.0 ||
    cannot "opentelemetry-exporter-prometheus 0.66b2 is not to be had"
PYTHONPATH=$work/packages
export PYTHONPATH

cat >serve.py <<'END'
import io
import sys
from wsgiref.handlers import SimpleHandler
from wsgiref.util import setup_testing_defaults

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from prometheus_client import Counter, make_wsgi_app

page = make_wsgi_app()


def scrape(moment):
    request, answer = {}, io.BytesIO()
    setup_testing_defaults(request)
    SimpleHandler(io.BytesIO(), answer, sys.stderr, request, multithread=False).run(page)
    text = answer.getvalue().decode()
    status = text.split()[1]
    names = [name for name in ("missed_total", "restarts_total", "latency") if f"\n{name}" in text]
    print(moment, status, *names)


Counter("restarts", "of prometheus-client alone").inc()
exponential = View(instrument_name="latency", aggregation=ExponentialBucketHistogramAggregation())
meter = MeterProvider([PrometheusMetricReader()], views=[exponential]).get_meter("board")
meter.create_counter("missed").add(1)
latency = meter.create_histogram("latency")
scrape("before:")
latency.record(12.5)
scrape("after:")
scrape("again:")
END
python3 serve.py >scrapes.txt 2>errors.txt || { tail -n 3 errors.txt; fail "the program ends with an error"; }
cat scrapes.txt
grep '^AttributeError' errors.txt || true

grep -q '^before: 200 missed_total restarts_total$' scrapes.txt ||
    fail "before the first sample, the page is another"
for moment in after again; do
    grep -q "^$moment: 500\$" scrapes.txt || fail "with the histogram, the page is not refused"
done
grep -q "^AttributeError: 'ExponentialHistogramDataPoint'" errors.txt || fail "the error is another"
echo "ok: with one exponential histogram, every scrape is answered with 500 and without any metric"
