//! Activity of every CPU around a spike, reduced to the data of its picture: windows are too large
//! to be kept for hundreds of spikes.

use super::stages::Landmarks;
use crate::words::several;
use model::sort::CompactSort;
use model::units::Nanos;
use trace::timeline::{CpuTrack, cpu_tracks};
use trace::window::Window;

/// Limit of CPUs with a lane: those with the most stretches.
pub const LANES: usize = 9;
/// Limit of stretches in all lanes of a spike: the longest ones.
const STRETCHES: usize = 400;
/// Share of the latency that is drawn before and after the spike.
pub const MARGIN: f64 = 0.03;

/// Lanes of a spike with its landmarks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptLanes {
    /// Known landmarks, in order, each with its name.
    pub marks: Vec<(&'static str, Nanos)>,
    /// Lanes, that of the late thread's CPU first.
    pub lanes: Vec<CpuTrack>,
    /// Remarks on what the lanes leave out.
    pub notes: Vec<String>,
}

impl KeptLanes {
    pub fn of(window: &Window) -> KeptLanes {
        let mut notes = Vec::new();
        let mut lanes = lanes_of(window, &mut notes);
        let latency = window.actual_ns.0.saturating_sub(window.expected_ns.0);
        let margin = (latency as f64 * MARGIN) as i64;
        let (from, to) =
            (window.expected_ns.0.saturating_sub(margin), window.actual_ns.0.saturating_add(margin));
        for lane in &mut lanes {
            lane.spans.retain(|span| span.start.0.saturating_add(span.ns.0) >= from && span.start.0 <= to);
        }
        let mut lengths: Vec<i64> = lanes.iter().flat_map(|lane| &lane.spans).map(|span| span.ns.0).collect();
        if lengths.len() > STRETCHES {
            lengths.sort_unstable_by(|a, b| b.cmp(a));
            let (least, all) = (lengths[STRETCHES - 1], lengths.len());
            // Among stretches as long as the shortest kept one, the first ones stay.
            let mut ties = lengths[..STRETCHES].iter().filter(|ns| **ns == least).count();
            for lane in &mut lanes {
                lane.spans.retain(|span| {
                    let tie = span.ns.0 == least && ties > 0;
                    ties -= usize::from(tie);
                    tie || span.ns.0 > least
                });
            }
            let drawn: usize = lanes.iter().map(|lane| lane.spans.len()).sum();
            let left_out = several((all - drawn) as u64, "shorter stretch is", "shorter stretches are");
            notes.push(format!("{left_out} not drawn."));
        }
        KeptLanes { marks: Landmarks::of(window).named(), lanes, notes }
    }
}

/// Lanes of a window, the late thread's CPU first; adds remarks on what they leave out.
fn lanes_of(window: &Window, notes: &mut Vec<String>) -> Vec<CpuTrack> {
    let mut all = cpu_tracks(window);
    all.compact_sort_by_key(|lane| (lane.cpu != window.cpu, lane.cpu));
    let lanes = busiest(all, notes);
    if window.left_out > 0 {
        let events = several(window.left_out, "event", "events");
        notes.push(format!("{events} were omitted: from other CPUs, or from before the spike."));
    }
    lanes
}

/// Keeps the first lane, the victim's, and those with the most stretches.
fn busiest(mut all: Vec<CpuTrack>, notes: &mut Vec<String>) -> Vec<CpuTrack> {
    let others = all.len().saturating_sub(LANES);
    if others == 0 {
        return all;
    }
    let mut order: Vec<usize> = (1..all.len()).collect();
    order.compact_sort_by_key(|&at| std::cmp::Reverse(all[at].spans.len()));
    let dropped: Vec<usize> = order.split_off(LANES - 1);
    let mut at = 0;
    all.retain(|_| {
        at += 1;
        !dropped.contains(&(at - 1))
    });
    notes.push(format!("{} with fewer events not drawn.", several(others as u64, "CPU", "CPUs")));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;
    use trace::event::{Named, Task, What};

    #[test]
    fn of_too_many_stretches_the_longest_are_kept_and_the_others_counted() {
        let mut window = fixture::fifo().window;
        let task = |comm: &str, pid: i32| Task { comm: comm.into(), pid, prio: 120 };
        for turn in 0..900i64 {
            let (mut prev, mut next) = (task("a", 50), task("b", 51));
            if turn % 2 == 1 {
                std::mem::swap(&mut prev, &mut next);
            }
            window.events.push(Named {
                time: Nanos(window.expected_ns.0 + turn * 300),
                cpu: model::units::Cpu(7),
                pid: prev.pid,
                what: What::Switch { prev, state: 0, next },
                ..window.events[0].clone()
            });
        }
        window.events.sort_by_key(|event| event.time);
        let lanes = KeptLanes::of(&window);
        let stretches: usize = lanes.lanes.iter().map(|lane| lane.spans.len()).sum();
        assert_eq!(stretches, STRETCHES);
        assert!(
            lanes.notes.iter().any(|note| note.ends_with("shorter stretches are not drawn.")),
            "{lanes:?}"
        );
        assert_eq!(lanes.lanes[0].cpu, window.cpu);
        assert!(lanes.marks.iter().any(|mark| mark.0 == "actual"));
    }
}
