//! Source of `onbeat top`: the recorder of `watch`.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use super::top_view::TopSource;
use crate::measure::watch::steal::Steal;
use crate::top::recorded::{RecordedSums, new_worst, tick_of};
use crate::top::state::TopState;
use crate::top::{RowKey, TopTick};
use crate::watch::culprits::{IntervalEvidence, named};
use crate::watch::machine::MachineReader;
use crate::watch::names::StackNames;
use bundle::record::write::{DEFAULT_SIZE, RecordWriter};
use host::clock;
use host::rt::{OwnUse, process_use};
use host::threads::{real_time_threads, thread_facts};
use model::error::{Failure, Result};
use model::run::Host;
use model::sort::CompactSort;
use model::text::quoted;
use model::units::{Cpu, CpuSet, Nanos};
use model::wall_time::wall_time;
use model::watch::{WatchRun, WorstWakeup};
use recorder::WakeupRecorder;
use rules::culprits::watched::CulpritNames;

/// Source by the kernel's programs or a ring.
pub struct RecorderSource {
    recorder: WakeupRecorder,
    stacks: StackNames,
    culprits: CulpritNames,
    beside: MachineReader,
    host: Host,
    online: CpuSet,
    steal: Steal,
    sums: RecordedSums,
    run: WatchRun,
    folder: PathBuf,
    /// True if new threads get histograms while there are any left.
    chooses: bool,
}

impl RecorderSource {
    /// A source of an armed recorder; saves below `folder`.
    pub fn new(
        recorder: WakeupRecorder,
        stacks: StackNames,
        host: Host,
        run: WatchRun,
        folder: PathBuf,
        chooses: bool,
    ) -> RecorderSource {
        let beside = MachineReader::new();
        let online = beside.look().online;
        let steal = Steal::new(online.iter(), &host.virtualization);
        let mut source = RecorderSource {
            recorder,
            stacks,
            culprits: CulpritNames::default(),
            beside,
            host,
            online,
            steal,
            sums: RecordedSums::default(),
            run,
            folder,
            chooses,
        };
        if chooses {
            let mut present = real_time_threads();
            // Threads of programs first: histograms are few.
            present.compact_sort_by_key(|facts| (facts.kernel, facts.tid));
            present.iter().for_each(|facts| source.choose(facts.tid));
        }
        source
    }

    /// Gives a thread histograms; without any left, it is counted only.
    fn choose(&mut self, tid: u32) {
        let _ = self.recorder.choose(tid);
    }

    /// Names rows that the state does not know yet, and notes threads that are gone.
    fn complete(&mut self, tick: &mut TopTick, covered: &BTreeSet<u32>, state: &TopState) {
        for row in &mut tick.rows {
            let RowKey::Thread(tid) = row.key else { continue };
            if state.knows(row.key) {
                continue;
            }
            if self.chooses {
                self.choose(tid);
            }
            if let Some(facts) = thread_facts(tid).filter(|_| row.name.is_none()) {
                row.name = Some(format!("{}:{tid}", facts.comm));
            }
        }
        let is_gone = |tid: &u32| {
            !covered.contains(tid) && !tick.rows.iter().any(|row| row.key == RowKey::Thread(*tid))
        };
        tick.ended = tids_of(state).filter(is_gone).collect();
    }
}

fn tids_of(state: &TopState) -> impl Iterator<Item = u32> {
    state.counted_rows().filter_map(|row| match row.key {
        RowKey::Thread(tid) => Some(tid),
        RowKey::Cpu(_) => None,
    })
}

impl TopSource for RecorderSource {
    fn wake(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn second(&mut self, state: &mut TopState) -> Result<bool> {
        let mut drained = self.recorder.take()?;
        self.steal.read();
        let stolen: BTreeMap<Cpu, Nanos> =
            self.online.iter().filter_map(|cpu| Some((cpu, self.steal.take(cpu)?))).collect();
        let each = std::mem::take(&mut drained.each);
        let (keys, found): (Vec<_>, Vec<_>) = new_worst(each, |key| state.max_of(key)).into_iter().unzip();
        let beside =
            IntervalEvidence { series: &drained.series, pulses: &drained.late_pulses, stolen: Some(&stolen) };
        let worst = named(found, beside, &self.host, &mut self.stacks, &mut self.culprits);
        let worst: Vec<(RowKey, WorstWakeup)> = keys.into_iter().zip(worst).collect();
        let mut tick = tick_of(&drained, &worst);
        let covered = drained.threads.iter().map(|covered| covered.tid).collect();
        self.complete(&mut tick, &covered, state);
        self.sums.add(drained);
        let before: Vec<u32> = tids_of(state).collect();
        state.take(tick);
        let is_gone = |tid: &u32| state.row(RowKey::Thread(*tid)).is_none();
        before.into_iter().filter(is_gone).for_each(|tid| self.sums.forget(tid));
        Ok(true)
    }

    fn reset(&mut self) {
        self.sums = RecordedSums::default();
    }

    fn save(&mut self, state: &TopState) -> Result<String> {
        let worst = state.counted_rows().filter_map(|row| row.worst.clone()).collect();
        let interval = self.sums.interval(worst);
        let mut interval = interval.ok_or_else(|| Failure::usage("nothing is counted yet"))?;
        let environment = self.beside.environment();
        interval.env.clone_from(&environment.env);
        interval.environment = Some(environment);
        let now = wall_time(clock::monotonic() + clock::wall_offset());
        let name: String = now.chars().take(19).filter(|c| *c != '-' && *c != ':').collect();
        let path = self.folder.join(name);
        let (mut writer, _) = RecordWriter::open_folder(&path, DEFAULT_SIZE)?;
        writer.append(&self.run, &interval).map_err(Failure::internal)?;
        Ok(format!("saved: onbeat report {}", quoted(&path)))
    }

    fn spent(&self) -> OwnUse {
        process_use()
    }
}
