//! onbeat's own path must not be a culprit: from its timer's interrupt to its clock read it takes
//! the time measured by the run, and anything longer has another cause.

use super::answer::{Answer, FoundSlice, FoundSpike};

/// Maximum length of a slice with onbeat's name, in multiples of the measured cost: the cost is a
/// median, and the emulator's spread is wide.
const NAMED: i64 = 6;

/// The same of a stretch of the path without a name: it may have several events, and be slow before
/// each.
const NAMELESS: i64 = 16;

/// Parts of the path that bear no name.
const PATH: [&str; 3] = ["timer-irq", "switch", "return-to-user"];

/// Owner of the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Whose {
    /// The victim is onbeat's thread.
    Onbeats,
    /// Another's threads are followed; onbeat only records.
    Others,
}

/// The longest that a stretch with a name can be.
pub fn most(answer: &Answer) -> i64 {
    answer.cost.saturating_mul(NAMED)
}

/// Slices attributed to onbeat's own path that are too long for it.
pub fn excess(answer: &Answer, spike: &FoundSpike, whose: Whose) -> Vec<String> {
    wrong_sums(answer, spike, whose, |slice| PATH.contains(&slice.kind.as_str()) && slice.who[1].is_empty())
}

/// The same of slices that bear onbeat's name.
pub fn named(answer: &Answer, spike: &FoundSpike, whose: Whose) -> Vec<String> {
    wrong_sums(answer, spike, whose, |_| false)
}

fn wrong_sums(
    answer: &Answer,
    spike: &FoundSpike,
    whose: Whose,
    path: impl Fn(&FoundSlice) -> bool,
) -> Vec<String> {
    let own = |slice: &&FoundSlice| match whose {
        Whose::Onbeats => {
            let named = slice.pid != 0 && slice.pid == spike.victim;
            named && slice.ns > most(answer) || path(slice) && slice.ns > answer.cost.saturating_mul(NAMELESS)
        }
        // It is not part of that path at all: however short, it was in the wrong place.
        Whose::Others => slice.who[0] == "onbeat" || slice.who[0].starts_with("onbeat/"),
    };
    let told = |slice: &FoundSlice| format!("{} has {} ns at {}", slice.told(), slice.ns, slice.start);
    spike.slices.iter().filter(own).map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn of(kind: &str, comm: &str, pid: i64, function: &str, ns: i64, whose: Whose) -> usize {
        let who = [comm.to_string(), function.to_string(), String::new()];
        let slice = FoundSlice { kind: kind.into(), ns, who, pid, ..FoundSlice::default() };
        let spike = FoundSpike { victim: 50, slices: vec![slice], ..FoundSpike::default() };
        let answer = Answer { cost: 100_000, ..Answer::default() };
        assert_eq!(
            named(&answer, &spike, whose).is_empty(),
            pid == 0 || excess(&answer, &spike, whose).is_empty()
        );
        excess(&answer, &spike, whose).len()
    }

    #[test]
    fn what_is_longer_than_the_own_path_can_be_is_counted() {
        use Whose::Onbeats;
        for (kind, comm, pid, function) in [
            ("irqs-off", "onbeat/1", 50, "do_nanosleep"),
            ("thread", "onbeat/1", 50, ""),
            ("return-to-user", "", 0, ""),
            ("timer-irq", "", 0, ""),
            ("switch", "", 0, ""),
        ] {
            assert_eq!(of(kind, comm, pid, function, 2 * MS, Onbeats), 1, "{kind}");
            assert_eq!(of(kind, comm, pid, function, MS / 2, Onbeats), 0, "{kind}");
        }
        // The recording thread is not part of the path, so its slices are legitimate. An interrupt
        // has several events.
        assert_eq!(
            (of("timer-irq", "", 0, "", MS, Onbeats), of("thread", "onbeat/1", 50, "", MS, Onbeats)),
            (0, 1)
        );
        for (kind, comm, pid, function) in [
            ("irqs-off", "busy", 60, "hold"),
            ("thread", "idle", 0, ""),
            ("fair-server", "onbeat", 7, ""),
            ("timer-irq", "", 0, "its_timer"),
        ] {
            assert_eq!(of(kind, comm, pid, function, 20 * MS, Onbeats), 0, "{kind}");
        }
    }

    #[test]
    fn where_another_is_followed_onbeat_has_no_part() {
        use Whose::Others;
        assert_eq!(of("thread", "onbeat", 7, "", 10, Others), 1);
        assert_eq!(of("thread", "other", 50, "", 20 * MS, Others), 0);
        assert_eq!(of("return-to-user", "", 0, "", 20 * MS, Others), 0);
    }
}
