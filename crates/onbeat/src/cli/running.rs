//! Start and end of a run, shared by every command that runs the measuring loop.

use model::vocabulary::{Command, Ended, IntegrityKind};
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use super::Environment;
use super::live::Live;
use super::load_flags::LoadFlags;
use super::measure_flags::MeasureFlags;
use super::recovery::RecoveryRecords;
use crate::measure::integrity::entry;
use crate::measure::preconditions::Preconditions;
use crate::measure::sink::{Progress, Sink};
use crate::plan::{self, MachineCpus, MeasureIntent, MeasurePlan};
use ::load::running::RunningLoads;
use bundle::write::BundleWriter;
use facts::survey::survey_beyond;
use facts::{self, Facts};
use host::access::AccessRecorder;
use host::tracefs::Tracing;
use host::{MachineFiles, clock, random_u64, rt};
use model::error::{Exit, Failure, Result};
use model::isolation::{INNER_GROUP, OUTER_GROUP};
use model::labels::Labels;
use model::run::{Integrity, Run, SCHEMA};
use model::setting::CGROUP_MOUNT;
use model::units::{CpuSet, Nanos};
use model::wall_time::wall_time;
use report::hunt::program;
use study::audit::survey_request;
use study::tuning::boot_id;

/// Run with a plan, conditions and a bundle, before its first sample.
pub struct PreparedRun {
    /// Plan of the run.
    pub plan: MeasurePlan,
    /// Machine for which the plan was made.
    pub machine: MachineCpus,
    /// CPUs that the user gave to the housekeeping thread.
    pub housekeeping: Option<CpuSet>,
    /// Document up to now.
    pub run: Run,
    /// Type of core per measured CPU.
    pub core_types: Vec<String>,
    /// Conditions that may change during the run.
    pub before: Preconditions,
    pub sink: RunSink,
}

/// Requested run, from the flags of a command.
pub struct WantedRun<'a> {
    pub intent: MeasureIntent,
    /// Path of the bundle.
    pub output: Option<PathBuf>,
    pub quiet: bool,
    pub command: Command,
    /// Title of the live view; by default from the plan.
    pub title: Option<&'a str>,
    /// Load during the run.
    pub load: Option<&'a LoadFlags>,
    /// Labels of the run.
    pub labels: Labels,
}

/// Makes an intent of the flags and a plan for the machine, which `adjust` may change; starts the
/// loads, creates the bundle.
pub fn prepare(
    flags: &MeasureFlags,
    load: &LoadFlags,
    command: Command,
    environment: &Environment,
    adjust: impl FnOnce(&mut MeasurePlan) -> Result<()>,
) -> Result<PreparedRun> {
    let (intent, output, quiet) = (flags.intent()?, flags.run.output.clone(), flags.run.quiet);
    let labels = flags.run.labels()?;
    let wanted = WantedRun { intent, output, quiet, command, title: None, load: Some(load), labels };
    prepare_run(wanted, environment, |plan, _, _| {
        flags.mention_needless_flags();
        adjust(plan)
    })
}

/// Like [`prepare`]; `adjust` may change the plan before anything is created for it.
pub fn prepare_run(
    wanted: WantedRun,
    environment: &Environment,
    adjust: impl FnOnce(&mut MeasurePlan, &MachineCpus, &Facts) -> Result<()>,
) -> Result<PreparedRun> {
    rt::release_code_pages(); // that of the command line
    let host = MachineFiles::live().recording();
    let (facts, gathered) = facts_and_audit(&host);
    rt::release_code_pages(); // what looked at the machine
    let machine = look_at_machine(&facts)?;
    let mut plan = plan::plan(&wanted.intent, &machine, random_u64())?;
    adjust(&mut plan, &machine, &facts)?;
    let mut run = Run { labels: wanted.labels, ..document(wanted.command, &plan, &facts) };
    block_signals()?;
    // Of a pair, the CPUs of both threads.
    let from = plan.probe.iter().flat_map(|probe| probe.from.iter().copied());
    let measured: CpuSet = plan.measured().iter().chain(from).collect();
    let start = |load: &LoadFlags| load.start(&machine.permitted, &measured, &environment.runs());
    let loads = wanted.load.map(start).transpose()?.flatten();
    let path = wanted.output.unwrap_or_else(|| environment.runs().join(&run.id));
    run.loads = loads.as_ref().map(RunningLoads::begun).unwrap_or_default();
    let mut writer = BundleWriter::create(&path, plan.cpus.len())?;
    writer.begin(&run)?;
    if let Some(recorder) = host.recorded() {
        writer.host(recorder, &gathered)?;
    }
    drop(host);
    let core_types =
        plan.cpus.iter().map(|own| facts.core_types.get(&own.cpu).cloned().unwrap_or_default()).collect();
    let before = Preconditions::check(&facts);
    run.integrity.extend(before.entries());
    run.integrity.extend(remove_stale_instances());
    let shown = !wanted.quiet && !environment.dumb && io::stderr().is_terminal();
    let live = shown.then(|| match wanted.title {
        Some(title) => Live::titled(title.to_owned(), environment),
        None => Some(Live::new(&plan, environment)),
    });
    Ok(PreparedRun {
        plan,
        machine,
        housekeeping: wanted.intent.housekeeping,
        run,
        core_types,
        before,
        sink: RunSink { writer, live: live.flatten(), loads, recovery: RecoveryRecords::default() },
    })
}

/// Facts of the machine, and the paths that they come from; records the other files of an audit as
/// well, before a load or the run itself changes the machine.
fn facts_and_audit(host: &MachineFiles) -> (Facts, BTreeSet<String>) {
    let facts = facts::gather(host);
    let gathered = host.recorded().map(AccessRecorder::paths).unwrap_or_default();
    (survey_beyond(facts, host, &survey_request()).facts, gathered)
}

/// Removes tracing instances of a killed hunt or watch, whose events would slow down every wake-up.
fn remove_stale_instances() -> Option<Integrity> {
    let removed = Tracing::open().ok()?.remove_dead();
    let detail = format!("removed tracing that a killed onbeat had left behind: {}", removed.join(", "));
    (!removed.is_empty()).then(|| entry(IntegrityKind::Tracing, None, false, detail))
}

/// Sink that writes to the bundle and the screen.
pub struct RunSink {
    pub writer: BundleWriter,
    /// Live view, if there is one.
    pub live: Option<Live>,
    /// Loads during the run, if there are any.
    pub loads: Option<RunningLoads>,
    pub recovery: RecoveryRecords,
}

impl Sink for RunSink {
    fn second(&mut self, tick: &Progress) -> Result<()> {
        if let Some(live) = &mut self.live {
            live.show(tick);
        }
        if let Some(loads) = &mut self.loads {
            loads.sample(clock::monotonic());
        }
        self.writer.second(tick.blocks, self.recovery.of(tick.closed)).map_err(Failure::internal)
    }

    fn checkpoint(&mut self, run: &Run) -> Result<()> {
        self.writer.checkpoint(run).map_err(Failure::internal)
    }
}

/// Blocks the stop signals: from here on there are files on the disk that none of them must leave
/// incomplete.
pub fn block_signals() -> Result<()> {
    rt::block_signals().map_err(|error| Failure::internal(format!("cannot block signals: {error}")))
}

/// End of the run, or a stop signal that came during the output: everything is written, and the
/// signal is reported.
pub fn unless_stopped(ended: Result<Exit>) -> Result<Exit> {
    match ended {
        Ok(Exit::Ok) if rt::stop_pending() => Ok(Exit::Interrupted),
        ended => ended,
    }
}

/// Exit code of the run, unless an earlier step failed.
pub fn exit_of(run: &Run, first: Option<Failure>) -> Result<Exit> {
    let lost = run.integrity.iter().find(|entry| entry.kind == IntegrityKind::Storage);
    let first = first.or_else(|| lost.map(|entry| Failure::internal(entry.detail.clone())));
    match (first, run.ended.known()) {
        (Some(failure), _) => Err(failure),
        (None, Some(Ended::Limit)) => Ok(Exit::Limit),
        (None, Some(Ended::Signal)) => Ok(Exit::Interrupted),
        (None, Some(Ended::Error)) => {
            let starved = run.integrity.iter().find(|entry| entry.kind == IntegrityKind::Starved);
            let words = |entry: &Integrity| match entry.cpu {
                Some(cpu) => format!("cpu {cpu}: {}", entry.detail),
                None => entry.detail.clone(),
            };
            let message = starved.map_or_else(
                || "the measuring threads ended early: see the integrity entries".to_owned(),
                words,
            );
            Err(Failure::internal(message))
        }
        (None, _) if run.loads.iter().any(|load| !load.held) => {
            let idle = run.loads.iter().find(|load| !load.held).map(report::load::sentence);
            let message = format!("{}: the results are stored", idle.unwrap_or_default());
            Err(Failure { exit: Exit::Inconclusive, message })
        }
        (None, ended) => {
            let inconclusive = |message| Failure { exit: Exit::Inconclusive, message };
            let nothing = nothing_seen(run).map(inconclusive);
            let why = nothing.or_else(|| ended_early(run).filter(|_| ended == Some(Ended::Victim)));
            why.map_or(Ok(Exit::Ok), Err)
        }
    }
}

fn wakeups(run: &Run) -> u64 {
    run.samples().unwrap_or(0)
}

/// Reason why a hunt that follows threads saw no wake-up; `None` if it saw one, or if the end of
/// the threads is the reason.
pub fn nothing_seen(run: &Run) -> Option<String> {
    if !run.follows() || wakeups(run) > 0 {
        return None;
    }
    let detail = |kind: IntegrityKind| {
        run.integrity.iter().find(|entry| entry.kind == kind).map(|entry| entry.detail.as_str())
    };
    match detail(IntegrityKind::Lost) {
        // Where a program went is known all the same.
        Some(lost) => program::in_background(run).map(|daemon| daemon.to_string()).or_else(|| {
            let end = program::end_of(run).map(|end| format!("{end}, and ")).unwrap_or_default();
            Some(format!(
                "{end}no wake-up could be reconstructed: {lost}; reduce the events: follow fewer threads, disable stacks with --no-stacks, or reduce the load"
            ))
        }),
        None if run.program.is_some() => program::nothing_seen(run).map(|nothing| nothing.to_string()),
        None if run.ended == Ended::Victim => None,
        None => {
            let what = detail(IntegrityKind::Victim)
                .unwrap_or("no followed thread woke up: nothing was measured");
            Some(format!("{what}; follow a thread that sleeps and wakes, or increase -D"))
        }
    }
}

/// Failure of a hunt whose threads ended before enough of their wake-ups were seen; `None` if it
/// has a result.
fn ended_early(run: &Run) -> Option<Failure> {
    let wakeups = wakeups(run);
    let message = if wakeups == 0 {
        "all followed threads ended before one of their wake-ups was recorded: start the hunt while the program runs, and let it run longer"
            .to_owned()
    } else if run.threads.iter().any(|thread| thread.judged > 0) {
        return None;
    } else if let Some(daemon) = program::in_background(run) {
        daemon.to_string()
    } else if run.recorder.as_ref().is_some_and(|recorder| recorder.over_ns.is_none()) {
        format!(
            "all followed threads ended after {wakeups} wake-ups, too few to determine a threshold, so none was explained: set it with --over, or let the program run longer"
        )
    } else {
        return None;
    };
    Some(Failure { exit: Exit::Inconclusive, message })
}

/// CPUs for the plan: the existing ones, and those that this process may use.
fn look_at_machine(facts: &Facts) -> Result<MachineCpus> {
    let failed = |error: io::Error| {
        let remedy = "run without a system call filter";
        Failure::of_call("cannot read or set the affinity of this process", &error, Exit::Internal, remedy)
    };
    let inherited = rt::affinity().map_err(failed)?;
    let online = facts.online.known().cloned().unwrap_or_else(|| inherited.clone());
    // Requesting all CPUs and reading back the affinity shows what the cpuset permits.
    let permitted = rt::pin(&online).and_then(|()| rt::affinity()).unwrap_or_else(|_| inherited.clone());
    rt::pin(&inherited).map_err(failed)?;
    let isolated = facts.isolated.known().cloned().unwrap_or_default();
    let set_apart = cpus_set_apart();
    Ok(MachineCpus { online, inherited, permitted, set_apart, isolated, preempt: facts.preempt })
}

/// CPUs of an isolation by onbeat that is in force; before Linux 6.8 its outer group is the
/// partition.
fn cpus_set_apart() -> CpuSet {
    let read = |group: &str, file: &str| {
        let text = MachineFiles::live().read_text(&format!("{CGROUP_MOUNT}/{group}/{file}"));
        text.known().map(|text| text.trim().to_owned())
    };
    let isolated =
        |group| read(group, "cpuset.cpus.partition").is_some_and(|partition| partition == "isolated");
    let cpus = [INNER_GROUP, OUTER_GROUP].into_iter().any(isolated);
    let cpus = cpus.then(|| read(INNER_GROUP, "cpuset.cpus.effective")).flatten();
    cpus.and_then(|cpus| CpuSet::parse(&cpus).ok()).unwrap_or_default()
}

fn document(command: Command, plan: &MeasurePlan, facts: &Facts) -> Run {
    let since_epoch = clock::monotonic() + clock::wall_offset();
    let now = wall_time(since_epoch);
    let compact: String = now.chars().take(19).filter(|c| *c != '-' && *c != ':').collect();
    Run {
        schema: SCHEMA.into(),
        id: format!("{compact}-{:08x}", random_u64() as u32),
        command: command.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started: now,
        utc_offset_s: clock::utc_offset_s(since_epoch.0 / Nanos::SECOND.0),
        boot: boot_id().unwrap_or_default(),
        plan: plan.document(facts.preempt),
        host: facts::describe(facts),
        ..Run::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::{CpuRun, Recorder};
    #[test]
    fn threads_that_end_before_a_wake_up_support_no_verdict() {
        let ended = |cycles, over_ns| {
            let cpus = vec![CpuRun { cycles: Some(cycles), ..CpuRun::default() }];
            let recorder = Some(Recorder { over_ns, ..Recorder::default() });
            exit_of(&Run { ended: "victim".into(), cpus, recorder, ..Run::default() }, None)
        };
        for (cycles, said) in
            [(0, "before one of their wake-ups was recorded"), (7, "after 7 wake-ups, too few")]
        {
            let failure = ended(cycles, None).expect_err("nothing to say");
            assert_eq!(failure.exit, Exit::Inconclusive);
            assert!(failure.message.contains(said) && !failure.message.contains('\n'), "{}", failure.message);
        }
        assert_eq!(ended(0, Some(Nanos(9))).expect_err("no wake-up").exit, Exit::Inconclusive);
        assert_eq!(ended(7, Some(Nanos(9))).ok(), Some(Exit::Ok));
    }

    #[test]
    fn a_hunt_without_wake_ups_of_its_victims_supports_no_verdict() {
        let run = |ended: Ended, kind: IntegrityKind, cycles| Run {
            command: Command::Hunt.into(),
            ended: ended.into(),
            cpus: vec![CpuRun { cycles: Some(cycles), ..CpuRun::default() }],
            integrity: vec![entry(kind, None, false, format!("about {}", kind.name()))],
            ..Run::default()
        };
        for (ended, kind) in [
            (Ended::Duration, IntegrityKind::Victim),
            (Ended::Duration, IntegrityKind::Lost),
            (Ended::Victim, IntegrityKind::Lost),
        ] {
            let failure = exit_of(&run(ended, kind, 0), None).expect_err("nothing to say");
            assert_eq!(failure.exit, Exit::Inconclusive);
            assert!(failure.message.contains(&format!("about {}; ", kind.name())), "{}", failure.message);
            assert!(!failure.message.contains('\n'));
            assert_eq!(exit_of(&run(ended, kind, 1), None).ok(), Some(Exit::Ok));
        }
        // A signal keeps its exit code, and the sentence can still be printed.
        assert_eq!(exit_of(&run(Ended::Signal, IntegrityKind::Lost, 0), None).ok(), Some(Exit::Interrupted));
        assert!(
            nothing_seen(&run(Ended::Signal, IntegrityKind::Lost, 0))
                .is_some_and(|why| why.contains("--no-stacks"))
        );
        assert_eq!(nothing_seen(&run(Ended::Signal, IntegrityKind::Lost, 1)), None);
        let measured =
            Run { command: Command::Measure.into(), ..run(Ended::Duration, IntegrityKind::Victim, 0) };
        assert_eq!(exit_of(&measured, None).ok(), Some(Exit::Ok));
    }
}
