//! Five minutes that are stored in several rows: of a recorder with shorter intervals, or of
//! several simultaneous recordings.

use crate::records::{FarmSlot, SlotPeak};

/// Sums of all rows in a time span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotSums {
    /// Number of rows.
    pub count: u64,
    pub n: u64,
    pub missed: u64,
}

/// Adds a slot to another, which keeps its time. The largest latency is kept with its time and
/// names.
pub fn join(to: &mut FarmSlot, slot: FarmSlot) {
    let (t, n, missed) = (to.t, to.n.saturating_add(slot.n), to.missed.saturating_add(slot.missed));
    let mut cpus = std::mem::take(&mut to.cpus);
    slot.cpus.iter().for_each(|peak| add_peak(&mut cpus, peak));
    if slot.max_ns > to.max_ns {
        *to = slot;
    }
    (to.t, to.n, to.missed, to.cpus) = (t, n, missed, cpus);
}

fn add_peak(cpus: &mut Vec<SlotPeak>, peak: &SlotPeak) {
    match cpus.iter_mut().find(|known| known.cpu == peak.cpu) {
        Some(known) => {
            known.n = known.n.saturating_add(peak.n);
            known.missed = known.missed.saturating_add(peak.missed);
            if peak.max_ns > known.max_ns {
                (known.max_ns, known.max_at) = (peak.max_ns, peak.max_at);
            }
        }
        None => cpus.push(*peak),
    }
}

/// Joins rows of the same five minutes to one per recording, in the order of the recordings.
pub fn by_recording(slots: &[FarmSlot]) -> Vec<FarmSlot> {
    let mut joined: Vec<FarmSlot> = Vec::new();
    for slot in slots {
        match joined.last_mut().filter(|last| last.run == slot.run) {
            Some(last) => join(last, slot.clone()),
            None => joined.push(slot.clone()),
        }
    }
    for one in &mut joined {
        one.cpus.sort_by_key(|peak| peak.cpu);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::{Cpu, Nanos};

    #[test]
    fn rows_of_a_recording_are_one_and_those_of_another_stay_beside_it() {
        let slot = |run: &str, cpu: u32, max: i64| {
            let max_ns = Some(Nanos(max));
            let peak = SlotPeak { cpu: Cpu(cpu), n: 2, missed: 1, max_ns, ..SlotPeak::default() };
            let culprit = format!("c{max}");
            FarmSlot {
                n: 2,
                missed: 1,
                max_ns,
                culprit,
                run: run.into(),
                cpus: vec![peak],
                ..FarmSlot::default()
            }
        };
        let all = [slot("a", 1, 5), slot("a", 0, 9), slot("a", 1, 7), slot("b", 0, 99)];
        let joined = by_recording(&all);
        let told = |one: &FarmSlot| (one.run.clone(), one.n, one.missed, one.culprit.clone());
        assert_eq!(
            joined.iter().map(told).collect::<Vec<_>>(),
            [("a".to_owned(), 6, 3, "c9".to_owned()), ("b".to_owned(), 2, 1, "c99".to_owned())]
        );
        let cpus = joined[0].cpus.iter().map(|peak| (peak.cpu.0, peak.n, peak.max_ns.map(|max| max.0)));
        assert_eq!(cpus.collect::<Vec<_>>(), [(0, 2, Some(9)), (1, 4, Some(7))]);
    }
}
