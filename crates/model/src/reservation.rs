//! Parameters of SCHED_DEADLINE, in the form of rtla's `-P`: `d:RUNTIME:PERIOD`.

use crate::units::{Bare, Nanos, parse_span};

/// CPU time in each period, up to a deadline from its start (sched(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub runtime: Nanos,
    pub deadline: Nanos,
    pub period: Nanos,
}

/// The shortest runtime, deadline and period, and the longest period that the kernel accepts by
/// default (`__checkparam_dl()` in kernel/sched/deadline.c, sched_deadline_period_{min,max}_us).
const MIN_RUNTIME: Nanos = Nanos(1 << 10);
const MIN_PERIOD: Nanos = Nanos(100_000);
const MAX_PERIOD: Nanos = Nanos((1 << 22) * 1_000);

impl Reservation {
    /// Reads `RUNTIME:PERIOD`, or `RUNTIME:DEADLINE:PERIOD`; bare numbers are in us.
    ///
    /// # Errors
    /// The reason, with the expected form.
    pub fn parse(text: &str) -> Result<Reservation, &'static str> {
        const FORM: &str = "expected d:RUNTIME:PERIOD or d:RUNTIME:DEADLINE:PERIOD, as d:1ms:10ms";
        let spans: Vec<Nanos> = text
            .split(':')
            .map(|span| parse_span(span, Bare::Micros))
            .collect::<Result<_, _>>()
            .map_err(|_| FORM)?;
        let of = match spans[..] {
            [runtime, period] => Reservation { runtime, deadline: period, period },
            [runtime, deadline, period] => Reservation { runtime, deadline, period },
            _ => return Err(FORM),
        };
        if of.runtime < MIN_RUNTIME || of.runtime > of.deadline || of.deadline > of.period {
            Err("the kernel needs 1.024 us <= runtime <= deadline <= period")
        } else if of.period < MIN_PERIOD || of.period > MAX_PERIOD {
            Err("the kernel accepts periods of 100 us to 4.19 s")
        } else {
            Ok(of)
        }
    }

    /// Share of a CPU that it takes at most, in thousandths, rounded up.
    pub fn per_mille(&self) -> i64 {
        (self.runtime.0 * 1_000 + self.period.0 - 1) / self.period.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_or_three_spans_in_the_kernel_s_order() {
        let of = |runtime, deadline, period| {
            Ok(Reservation { runtime: Nanos(runtime), deadline: Nanos(deadline), period: Nanos(period) })
        };
        assert_eq!(Reservation::parse("1ms:10ms"), of(1_000_000, 10_000_000, 10_000_000));
        assert_eq!(Reservation::parse("500:2000:1s"), of(500_000, 2_000_000, 1_000_000_000));
        for text in ["", "1ms", "1ms:", "1:2:3:4", "x:1ms", "2ms:1ms", "1ms:3ms:2ms", "0:1ms", "-1:1ms"] {
            assert!(Reservation::parse(text).is_err(), "{text}");
        }
        for text in ["10us:50us", "1ms:5s", "500ns:1ms", "1ms:99999999999999999999"] {
            assert!(Reservation::parse(text).is_err(), "{text}");
        }
        assert_eq!(Reservation::parse("1ms:3ms").map(|of| of.per_mille()), Ok(334));
    }
}
