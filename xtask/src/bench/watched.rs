//! The recorder of `onbeat watch` compared with a thread that measures its latency, and with
//! cyclictest, and its cost: blocks with and without it, alternating.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::thread;

use host::threads::real_time_threads;
use host::{clock, rt};
use model::histogram::Bucket;
use model::rows::row_edges;
use model::units::{Cpu, CpuSet, Nanos};
use model::vocabulary::Policy;
use model::watch::WatchSeries;
use recorder::{DrainedEpoch, KernelRecorder, Options, Reading, WakeupRecorder};

use super::{Row, Rows};
use crate::debian::{self, Need};
use crate::tools::{Result, Tool};

const STEP: i64 = 1_000_000;
pub(super) const WAYS: [(Reading, &str); 2] = [(Reading::Types, "by types"), (Reading::Format, "by formats")];
/// Reading, with S or without, name; and the limits in ns for recording a wake-up of a real-time
/// thread and of another. The costs of S and of the ring are only printed.
type Costed = (Reading, bool, &'static str, Option<[i64; 2]>);
const COSTS: [Costed; 4] = [
    (Reading::Types, false, "by types", Some([500, 200])),
    (Reading::Types, true, "by types, with S", None),
    (Reading::Format, false, "by formats", Some([600, 300])),
    (Reading::Ring, false, "through the ring", None),
];

/// All of it.
pub fn measure(quick: bool) -> Rows {
    debian::ensure(&[Need { program: "cyclictest", package: "rt-tests" }])?;
    let mut rows = Vec::new();
    for (reading, name) in WAYS {
        rows.extend(own_latency(reading, name, if quick { 2_000 } else { 10_000 })?);
    }
    rows.extend(beside_cyclictest(if quick { 5 } else { 12 })?);
    rows.extend(costs(if quick { 15 } else { 50 })?);
    Ok(rows)
}

fn armed(reading: Reading, switch: bool) -> Result<KernelRecorder> {
    KernelRecorder::arm(&Options { reading, chosen_limit: 2, switch, ..Options::default() })
        .map_err(|failure| failure.message)
}

pub(super) fn row(what: String, ours: String, peer: &str, limit: String, holds: Option<bool>) -> Row {
    Row { what, ours, peer: peer.to_string(), limit, holds }
}

/// Moves this thread to the last CPU, with a policy.
fn settle(policy: Policy) -> Result<()> {
    let last = rt::affinity().map_err(|error| error.to_string())?.iter().last().unwrap_or(Cpu(0));
    rt::pin(&CpuSet::from_iter([last])).map_err(|error| error.to_string())?;
    rt::set_policy(policy, if policy == Policy::Fifo { 80 } else { 0 }).map_err(|error| error.to_string())
}

fn quantile(sorted: &[i64], per_thousand: usize) -> i64 {
    sorted
        .get((sorted.len() * per_thousand / 1_000).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0)
}

/// A thread that measured its latencies, and their recording.
pub(super) struct OwnLatencies {
    /// For each wake-up its latency, and T + W; 0 if there was none.
    pub seen: Vec<(i64, i64)>,
    pub drained: DrainedEpoch,
    pub tid: u32,
}

/// Runs a thread that sleeps that many times with a recorder.
pub(super) fn own_latencies(reading: Reading, cycles: usize) -> Result<OwnLatencies> {
    let mut recorder = armed(reading, false)?;
    let (told, tells) = channel();
    let (go, goes) = channel();
    let (end, ends) = channel::<()>();
    let (done, is_done) = channel();
    let worker = thread::spawn(move || {
        settle(Policy::Fifo)?;
        told.send(rt::thread_id() as u32).map_err(|error| error.to_string())?;
        let sums: recorder::ThreadSums = goes.recv().map_err(|error| error.to_string())?;
        let mut seen = Vec::with_capacity(cycles);
        let (mut next, mut before) = (clock::monotonic().0 + STEP, sums.now());
        for _ in 0..cycles {
            clock::nanosleep_until(Nanos(next));
            let now = clock::monotonic().0;
            let after = sums.now();
            seen.push((now - next, after[2].0 - before[2].0));
            before = after;
            next = (next + STEP).max(now + STEP / 2);
        }
        done.send(()).map_err(|error| error.to_string())?;
        let _ = ends.recv();
        Ok::<_, String>(seen)
    });
    let tid = tells.recv().map_err(|error| error.to_string())?;
    recorder.choose(tid).map_err(|failure| failure.message)?;
    let sums = recorder.sums_of(tid).map_err(|failure| failure.message)?;
    go.send(sums).map_err(|error| error.to_string())?;
    let _ = is_done.recv();
    let drained = recorder.take().map_err(|failure| failure.message)?;
    drop(end);
    let seen = worker.join().map_err(|_| "the thread failed")??;
    Ok(OwnLatencies { seen, drained, tid })
}

/// Own latency less T + W, wake-up by wake-up.
fn own_latency(reading: Reading, name: &str, cycles: usize) -> Rows {
    let OwnLatencies { seen, drained, tid } = own_latencies(reading, cycles)?;
    let mut rest: Vec<i64> =
        seen.iter().filter(|(_, both)| *both > 0).map(|(own, both)| own - both).collect();
    rest.sort_unstable();
    let mut own: Vec<i64> = seen.iter().map(|(own, _)| *own).collect();
    own.sort_unstable();
    let negative = rest.iter().filter(|rest| **rest < 0).count();
    let median = quantile(&rest, 500);
    let covered = drained.threads.iter().find(|thread| thread.tid == tid).copied().unwrap_or_default();
    let voluntary = covered.voluntary.unwrap_or(0);
    let share = 100.0 * covered.recorded as f64 / voluntary.max(1) as f64;
    Ok(vec![
        row(
            format!("{name}: own - (T + W) negative, of {}", rest.len()),
            negative.to_string(),
            "",
            "0".into(),
            Some(negative == 0),
        ),
        row(
            format!("{name}: own - (T + W), median, ns"),
            median.to_string(),
            &format!("own p50 {}", quantile(&own, 500)),
            "4000".into(),
            Some(median <= 4_000),
        ),
        row(format!("{name}: the same, p99, ns"), quantile(&rest, 990).to_string(), "", String::new(), None),
        row(
            format!("{name}: recorded of {voluntary} sleeps, %"),
            format!("{share:.2}"),
            "",
            "99.9".into(),
            Some(share >= 99.9),
        ),
        row(
            format!("{name}: unseen, skipped, unmatched"),
            format!(
                "{} {} {}",
                drained.counts.unwoken,
                drained.coverage.skipped.unwrap_or(0),
                drained.coverage.timers_unmatched
            ),
            "",
            String::new(),
            None,
        ),
    ])
}

/// Rows of one thread as buckets.
fn buckets_of(drained: &DrainedEpoch, tid: u32) -> Vec<Bucket> {
    let series = drained.series.iter().filter(|rows| rows.series == WatchSeries::TimerWakeup);
    let own = series.flat_map(|rows| &rows.threads);
    own.filter(|row| row.thread.as_ref().and_then(|task| task.tid) == Some(tid as i32))
        .flat_map(|row| row.hist.iter())
        .map(|(row, count)| Bucket::new(row_edges(row).0, row_edges(row).1, count))
        .collect()
}

fn beside_cyclictest(seconds: u64) -> Rows {
    let mut recorder = armed(Reading::Best, false)?;
    let peer = thread::spawn(move || {
        let time = seconds.to_string();
        Tool::new("cyclictest")
            .args(["-m", "-q", "-p", "80", "-i", "1000", "-h", "60000", "-D", &time])
            .text()
    });
    let begin = clock::monotonic().0;
    let found = loop {
        clock::sleep_for(Nanos(50_000_000));
        let tid = real_time_threads().into_iter().find(|thread| thread.comm == "cyclictest");
        match tid {
            Some(thread) => break thread.tid,
            None if clock::monotonic().0 - begin > 5_000_000_000 => {
                return Err("cyclictest has no thread".into());
            }
            None => {}
        }
    };
    recorder.choose(found).map_err(|failure| failure.message)?;
    let text = peer.join().map_err(|_| "cyclictest failed")??;
    let drained = recorder.take().map_err(|failure| failure.message)?;
    let ours = buckets_of(&drained, found);
    let theirs: Vec<Bucket> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(us, count)| Some((us.parse::<i64>().ok()?, count.trim().parse::<u64>().ok()?)))
        .map(|(us, count)| Bucket::new(Nanos(us * 1_000), Nanos(us * 1_000 + 1_000), count))
        .collect();
    let mut rows = Vec::new();
    for per_million in [500_000, 900_000, 990_000] {
        let of = |buckets: &[Bucket]| {
            model::histogram::quantile(buckets, None, per_million).map_or(0, |edge| edge.0)
        };
        let (ours, theirs) = (of(&ours), of(&theirs));
        // A row is 3.2 % wide; 5 us are the switch and the way back into the program.
        let room = 5_000 + theirs / 31 + 1_000;
        rows.push(row(
            format!("T + W with cyclictest, p{}, ns", per_million / 10_000),
            ours.to_string(),
            &theirs.to_string(),
            format!("{room} apart"),
            Some((ours - theirs).abs() <= room),
        ));
    }
    Ok(rows)
}

/// Time of one wake-up in ns; a round trip of the hand-over is two.
fn hand_over(policy: Policy, count: i64) -> Result<i64> {
    let pair = || UnixStream::pair().map_err(|error| error.to_string());
    let ((mut a, mut b), _) = (pair()?, ());
    let answering = thread::spawn(move || {
        settle(policy)?;
        let mut byte = [0];
        while b.read(&mut byte).is_ok_and(|read| read == 1) {
            b.write_all(&byte).map_err(|error| error.to_string())?;
        }
        Ok::<_, String>(())
    });
    let asking = thread::spawn(move || {
        settle(policy)?;
        let mut byte = [0];
        let mut begin = 0;
        for nth in -50..count {
            if nth == 0 {
                begin = clock::monotonic().0;
            }
            a.write_all(&byte).and_then(|()| a.read_exact(&mut byte)).map_err(|error| error.to_string())?;
        }
        Ok::<_, String>((clock::monotonic().0 - begin) / (2 * count))
    });
    let took = asking.join().map_err(|_| "a thread failed")?;
    answering.join().map_err(|_| "a thread failed")??;
    took
}

fn costs(blocks: usize) -> Rows {
    let policies = [(Policy::Fifo, "real-time"), (Policy::Other, "other")];
    let mut took = vec![vec![Vec::new(); policies.len()]; 1 + COSTS.len()];
    for _ in 0..blocks {
        for (way, blocks) in took.iter_mut().enumerate() {
            let recorder = match way.checked_sub(1).map(|way| COSTS[way]) {
                None => None,
                Some((reading, switch, ..)) => {
                    let options = Options { reading, chosen_limit: 2, switch, ..Options::default() };
                    match WakeupRecorder::arm(&options) {
                        // A kernel need not show it.
                        Err(_) if switch => continue,
                        armed => Some(armed.map_err(|why| why.message)?),
                    }
                }
            };
            for ((policy, _), blocks) in policies.iter().zip(blocks.iter_mut()) {
                blocks.push(hand_over(*policy, 1_000)?);
            }
            drop(recorder);
        }
    }
    took.iter_mut().flatten().for_each(|blocks| blocks.sort_unstable());
    let mut rows = Vec::new();
    for (way, (.., name, limits)) in COSTS.iter().enumerate() {
        for (nth, (_, whose)) in policies.iter().enumerate().filter(|_| !took[way + 1][0].is_empty()) {
            let p10 = |way: usize| quantile(&took[way][nth], 100);
            let cost = p10(way + 1) - p10(0);
            let limit = limits.map(|limits| limits[nth]);
            rows.push(row(
                format!("{name}: cost of a wake-up, {whose}, ns"),
                cost.to_string(),
                &format!("of {}", p10(0)),
                limit.map_or_else(String::new, |limit| limit.to_string()),
                limit.map(|limit| cost <= limit),
            ));
        }
    }
    Ok(rows)
}
