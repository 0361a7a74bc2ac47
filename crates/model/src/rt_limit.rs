//! Share of each period that real-time tasks may take of a CPU.

use std::fmt;

use crate::units::Nanos;

/// A limit as in `kernel.sched_rt_runtime_us` and `kernel.sched_rt_period_us`: microseconds of each
/// period, or -1 for no limit (Documentation/scheduler/sched-rt-group.rst).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtLimit {
    runtime_us: Option<i64>,
    period_us: i64,
}

/// Periods that both the sysctl and the fair server of a CPU accept (`fair_server_period_max` in
/// kernel/sched/debug.c is 4.19 s).
const PERIODS_US: std::ops::RangeInclusive<i64> = 10_000..=4_000_000;

/// Least runtime as a divisor of the period; with less, interrupt threads respond too late.
const LEAST_PART: i64 = 10;

impl RtLimit {
    /// `900000/1000000`, or `-1/1000000` for no limit.
    ///
    /// # Errors
    /// The expected form.
    pub fn parse(text: &str) -> Result<RtLimit, String> {
        let expected = || {
            format!(
                "'{}': expected RUNTIME/PERIOD in us such as 950000/1000000, with a period from {} to {} and \
                 a runtime of a tenth of it or more, or -1",
                crate::text::clean(text),
                PERIODS_US.start(),
                PERIODS_US.end()
            )
        };
        let (runtime, period) = text.split_once('/').ok_or_else(expected)?;
        let number = |text: &str| text.trim().parse::<i64>().map_err(|_| expected());
        let (runtime, period_us) = (number(runtime)?, number(period)?);
        let runtime_us = if runtime == -1 { None } else { Some(runtime) };
        let fits = runtime_us.is_none_or(|us| (period_us / LEAST_PART..=period_us).contains(&us));
        if PERIODS_US.contains(&period_us) && fits {
            Ok(RtLimit { runtime_us, period_us })
        } else {
            Err(expected())
        }
    }

    /// Value for `sched_rt_runtime_us`: -1 without a limit.
    pub fn runtime_us(self) -> i64 {
        self.runtime_us.unwrap_or(-1)
    }

    pub fn period_us(self) -> i64 {
        self.period_us
    }

    /// Time for which a real-time task that never sleeps is stopped in each period.
    pub fn stop(self) -> Nanos {
        Nanos(self.runtime_us.map_or(0, |runtime| self.period_us - runtime) * 1_000)
    }

    pub fn period(self) -> Nanos {
        Nanos(self.period_us * 1_000)
    }

    /// True if such a task is never stopped.
    pub fn is_none(self) -> bool {
        self.stop() == Nanos(0)
    }
}

impl fmt::Display for RtLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}/{}", self.runtime_us(), self.period_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_says_how_long_a_task_is_stopped() {
        for (text, stop_us, none) in [
            ("950000/1000000", 50_000, false),
            ("900000/1100000", 200_000, false),
            ("1000000/1000000", 0, true),
            ("-1/1000000", 0, true),
        ] {
            let limit = RtLimit::parse(text).unwrap();
            assert_eq!((limit.stop(), limit.is_none()), (Nanos(stop_us * 1_000), none), "{text}");
            assert_eq!(limit.to_string(), text);
        }
    }

    #[test]
    fn what_would_stop_everything_is_no_limit() {
        for text in
            ["", "950000", "0/1000000", "99999/1000000", "2/1", "1000001/1000000", "-2/1000000", "-1/9999"]
        {
            assert!(RtLimit::parse(text).is_err_and(|what| what.contains("RUNTIME/PERIOD")), "{text}");
        }
        assert!(RtLimit::parse("9223372036854775807/9223372036854775807").is_err());
    }
}
