//! Duration of a system call that does almost nothing: recording adds the same cost to any call.

use host::clock;
use model::units::Nanos;

/// Turns of a measurement, of which the fastest counts, and the calls of each.
const TURNS: usize = 8;
const CALLS: i64 = 64;

/// Duration of one call; none if the clock cannot be read.
pub fn call_time() -> Option<Nanos> {
    let turn = || {
        let begin = clock::monotonic();
        for _ in 0..CALLS {
            // A clock that only the kernel can read.
            clock::thread_cpu()?;
        }
        Some(Nanos((clock::monotonic() - begin).0 / CALLS))
    };
    (0..TURNS).map(|_| turn()).collect::<Option<Vec<_>>>()?.into_iter().min()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_call_takes_time() {
        assert!(super::call_time().is_none_or(|time| time.0 > 0));
    }
}
