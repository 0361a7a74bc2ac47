//! The maps that the programs count in, as held by this process.

use std::sync::atomic::Ordering::Relaxed;

use host::bpf::{ArrayMap, MapView};
use host::clock;
use model::error::Result;
use model::units::Nanos;

use crate::layout::{SERIES, SLOTS, config, cpu, histogram, record, saved, slot, switched};
use crate::programs::{Maps, SwitchedMaps};
use crate::refusals;

/// The maps, and the small ones in memory.
pub(crate) struct Held {
    pub slots: ArrayMap,
    pub cpus: MapView,
    pub records: ArrayMap,
    pub threads: ArrayMap,
    pub config: MapView,
    /// Maps of S: per CPU, and per chosen thread.
    pub switched: Option<[ArrayMap; 2]>,
    pub numbers: Maps,
    /// Kernel memory of all.
    pub bytes: usize,
    /// Maps kept open because the programs refer to them.
    _kept: [ArrayMap; 3],
}

impl Held {
    /// Creates the maps for a number of CPUs and chosen threads, with S or without.
    pub fn new(cpus: usize, chosen: usize, with_switch: bool) -> Result<Held> {
        let map = |name: &str, size: usize, entries: usize| {
            ArrayMap::new(name, size, entries.max(1)).map_err(|error| refusals::no_map(&error))
        };
        let view = |map: &ArrayMap| map.whole().map_err(|error| refusals::no_map(&error));
        let slots = map("onbeat_slots", slot::SIZE, SLOTS)?;
        let per_cpu = map("onbeat_cpus", cpu::SIZE, cpus)?;
        let records = map("onbeat_records", record::SIZE, cpus * 2 * record::CLASSES)?;
        let threads = map("onbeat_threads", record::THREAD_SIZE, chosen * 2)?;
        let stacks = map("onbeat_stacks", saved::SIZE, cpus * saved::PER_CPU)?;
        let word = map("onbeat_config", config::SIZE, 1)?;
        let switched = if with_switch {
            Some([
                map("onbeat_switched", switched::SIZE, cpus * switched::PER_CPU)?,
                map("onbeat_thr_sw", switched::SIZE, chosen * 2)?,
            ])
        } else {
            None
        };
        let numbers = Maps {
            slots: slots.number(),
            cpus: per_cpu.number(),
            records: records.number(),
            threads: threads.number(),
            saved: stacks.number(),
            config: word.number(),
            switched: switched.as_ref().map(|[records, threads]| SwitchedMaps {
                records: records.number(),
                threads: threads.number(),
            }),
        };
        let all = [&slots, &per_cpu, &records, &threads, &stacks, &word];
        let bytes = all.into_iter().chain(switched.iter().flatten()).map(ArrayMap::bytes).sum();
        let (cpus, config) = (view(&per_cpu)?, view(&word)?);
        let _kept = [per_cpu, stacks, word];
        Ok(Held { slots, cpus, records, threads, config, switched, numbers, bytes, _kept })
    }

    /// Informs the programs whether a time near CLOCK_MONOTONIC can be of that clock only: false if
    /// the wall clock is near 1970, or after a short suspend.
    pub fn set_clocks_apart(&self) {
        let apart = clocks_are_apart();
        self.config.u32(0, config::CLOCKS_APART).store(apart.into(), Relaxed);
    }

    /// The sums of the chosen thread of that number.
    pub fn sums_of(&self, number: usize) -> Result<ThreadSums> {
        let of =
            |map: &ArrayMap| map.view(number * 2..number * 2 + 2).map_err(|error| refusals::no_map(&error));
        let switched = self.switched.as_ref().map(|[_, threads]| of(threads)).transpose()?;
        Ok(ThreadSums { records: of(&self.threads)?, switched })
    }
}

/// Running sums with which a thread compares its measured latencies one by one.
pub struct ThreadSums {
    records: MapView,
    switched: Option<MapView>,
}

impl ThreadSums {
    /// Sums of T, W and, for wake-ups with both, T + W; a flip restarts them.
    pub fn now(&self) -> [Nanos; SERIES] {
        std::array::from_fn(|series| sum(&self.records, series))
    }

    /// Sums of S and T + W + S; `None` unless S is recorded.
    pub fn switched_now(&self) -> Option<[Nanos; switched::SERIES]> {
        self.switched.as_ref().map(|records| std::array::from_fn(|series| sum(records, series)))
    }
}

/// Sum of a series over both halves; the inactive half is empty except around a flip.
fn sum(records: &MapView, series: usize) -> Nanos {
    let at = (series * histogram::SIZE) as i16 + histogram::SUM;
    Nanos(records.entries().map(|entry| records.u64(entry, at).load(Relaxed) as i64).sum())
}

/// True if a time near CLOCK_MONOTONIC can be of that clock only: not if the wall clock is near
/// 1970, or after a short suspend.
pub(crate) fn clocks_are_apart() -> bool {
    const FAR: i64 = 10_000_000_000;
    const SAME: i64 = 1_000_000;
    let (wall, boot) = (clock::wall_offset().0, clock::boot_offset().0);
    wall.abs() > FAR && (boot.abs() < SAME || boot > FAR)
}
