//! Network interfaces and tracing.

use super::Control;
use super::accepted::Accepted;
use crate::knobs::sources::{EVENTS, FTRACE, HWLAT, NAPI, NET_SCALING, OSNOISE, TIMERLAT};
use model::setting::{Comparison, Risk};

pub(super) const ALL: &[Control] = &[
    Control {
        pattern: "/sys/class/net/*/queues/rx-#/rps_cpus",
        readback: Comparison::Mask,
        accepts: Accepted::MaskOrNone,
        risk: Risk::Medium,
        reason: "of one queue; 0 steers nothing",
        source: NET_SCALING,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/class/net/*/gro_flush_timeout",
        accepts: Accepted::Number(0, i64::MAX),
        risk: Risk::Medium,
        reason: "nanoseconds; on newer kernels for all queues of the interface",
        source: NAPI,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/current_tracer",
        readback: Comparison::Exact,
        accepts: Accepted::Name,
        risk: Risk::Medium,
        reason: "a change of tracer empties the buffer",
        source: FTRACE,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/instances/*/current_tracer",
        readback: Comparison::Exact,
        accepts: Accepted::Name,
        risk: Risk::Medium,
        reason: "a change of tracer empties the buffer",
        source: FTRACE,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/events/enable",
        risk: Risk::Medium,
        reason: "X means that only some events are on; X cannot be written",
        source: EVENTS,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/instances/*/events/enable",
        risk: Risk::Medium,
        reason: "X means that only some events are on; X cannot be written",
        source: EVENTS,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/function_profile_enabled",
        reason: "the function profiler",
        source: FTRACE,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/hwlat_detector/window",
        accepts: Accepted::Number(1, i64::MAX),
        reason: "microseconds, more than the width; of the whole machine, like the two below",
        source: HWLAT,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/hwlat_detector/width",
        accepts: Accepted::Number(1, i64::MAX),
        reason: "microseconds in which interrupts are off, less than the window",
        source: HWLAT,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/hwlat_detector/mode",
        readback: Comparison::Choice,
        accepts: Accepted::Words(&["none", "round-robin", "per-cpu"]),
        reason: "a thread that goes from CPU to CPU, or one per CPU; since Linux 5.15",
        source: HWLAT,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/osnoise/cpus",
        readback: Comparison::List,
        accepts: Accepted::Cpus,
        reason: "CPUs with a thread of osnoise or timerlat; of the whole machine, like those below",
        source: OSNOISE,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/osnoise/period_us",
        accepts: Accepted::Number(1, i64::MAX),
        reason: "not less than the runtime",
        source: OSNOISE,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/osnoise/runtime_us",
        accepts: Accepted::Number(1, i64::MAX),
        reason: "the sampled part of each period",
        source: OSNOISE,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/osnoise/timerlat_period_us",
        accepts: Accepted::Number(100, 1_000_000),
        reason: "interval of the timers of timerlat",
        source: TIMERLAT,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/osnoise/stop_tracing_us",
        accepts: Accepted::Number(0, i64::MAX),
        reason: "a longer gap or latency in the interrupt ends tracing; 0 is never",
        source: OSNOISE,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/osnoise/stop_tracing_total_us",
        accepts: Accepted::Number(0, i64::MAX),
        reason: "more noise in a period, or a longer latency of a thread, ends tracing; 0 is never",
        source: OSNOISE,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/osnoise/print_stack",
        accepts: Accepted::Number(0, i64::MAX),
        reason: "a stack for each longer latency of timerlat; 0 turns them off",
        source: TIMERLAT,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/osnoise/options",
        readback: Comparison::Exact,
        accepts: Accepted::Options,
        reason: "all options as the kernel lists them; since Linux 6.2",
        source: OSNOISE,
        ..Control::DEFAULT
    },
    Control {
        pattern: "/sys/kernel/tracing/tracing_thresh",
        accepts: Accepted::Number(0, i64::MAX),
        reason: "microseconds, for all tracers of the machine; 0 is the tracer's own",
        source: OSNOISE,
        ..Control::DEFAULT
    },
];
