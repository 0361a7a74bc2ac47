//! Running loads: started, sampled once a second, and ended with all of their processes.

use std::io;
use std::path::Path;

use host::work::{
    Cage, Counter, Counters, Figure, Gauge, LoadGroup, LoadProcess, available_memory, free_space,
    process_is_stopped, remove_abandoned, start_keeper,
};
use host::{RereadFile, clock};
use model::error::{Exit, Failure, Result};
use model::load::LoadRun;
use model::units::{CpuSet, Nanos};

use crate::admission::{MEMORY_LEFT, Planned, SPACE_LEFT, admit};
use crate::proof::{LoadSample, ProofSeries};
use crate::spec::LoadSpec;
use crate::worker::Orders;

/// Time limit for the start of the processes: filling a gigabyte takes a slow board seconds.
const PATIENCE: Nanos = Nanos(60_000_000_000);

/// ENOEXEC of include/uapi/asm-generic/errno-base.h.
const NO_PROGRAM: i32 = 8;

/// Started loads. Dropping it ends them.
pub struct RunningLoads {
    cage: Cage,
    counters: Counters,
    cpus: CpuSet,
    loads: Vec<RunningLoad>,
    /// Reason for which all were ended early.
    stopped: Option<String>,
}

struct RunningLoad {
    plan: Planned,
    room: LoadGroup,
    /// Index of the first of its counters; each process has one.
    first: usize,
    workers: Vec<LoadProcess>,
    /// /proc/PID/stat of each worker.
    states: Vec<RereadFile>,
    kernel: Option<Gauge>,
    time: Option<Gauge>,
    begun: Nanos,
    time_at_begin: Option<u64>,
    /// Value of the last sample, because the processes may have ended since.
    time_so_far: Option<u64>,
    proof: ProofSeries,
}

/// Plans the requested loads on these CPUs; refuses those that would do harm.
pub fn plan(specs: Vec<LoadSpec>, cpus: &CpuSet, folder: &Path) -> Result<Vec<Planned>> {
    if cpus.is_empty() {
        return Err(Failure::usage("no CPU is left for the load: name CPUs with --load-cpus"));
    }
    let planned = specs.into_iter().map(|spec| Planned::new(spec, cpus.len(), folder)).collect::<Vec<_>>();
    let device = |folder: &Path| host::identity(folder).map(|(device, _)| device);
    admit(&planned, available_memory(), free_space, device)?;
    Ok(planned)
}

impl RunningLoads {
    /// Starts them, and waits until all work. Call it before starting threads that must not be
    /// disturbed: the loads inherit none of them, but may share their CPUs.
    pub fn start(planned: Vec<Planned>, cpus: &CpuSet) -> Result<RunningLoads> {
        remove_abandoned();
        let processes: usize = planned.iter().map(|plan| plan.wanted.count as usize).sum();
        let counters = Counters::create(processes).map_err(|error| failed("the load's counters", &error))?;
        let cage = Cage::create(cpus);
        let mut running =
            RunningLoads { cage, counters, cpus: cpus.clone(), loads: Vec::new(), stopped: None };
        if running.cage.group().is_some() {
            running.keep(&[])?;
        }
        for plan in planned {
            running.start_load(plan)?;
        }
        if running.cage.group().is_none() {
            let leaders: Vec<u32> = running.workers().map(|worker| worker.pid()).collect();
            running.keep(&leaders)?;
        }
        let until = clock::monotonic() + PATIENCE;
        running.loads.iter_mut().try_for_each(|load| load.wait_until_ready(until))?;
        running.counters.open();
        running.loads.iter_mut().for_each(RunningLoad::begin);
        running.sample(clock::monotonic());
        Ok(running)
    }

    fn keep(&self, leaders: &[u32]) -> Result<()> {
        start_keeper(&self.cage, leaders)
            .map_err(|error| failed("the process that clears up after a load", &error))
    }

    fn start_load(&mut self, plan: Planned) -> Result<()> {
        let first = self.loads.iter().map(|load| load.workers.len()).sum();
        let name = format!("{}-{}", self.loads.len(), plan.spec.load.name);
        let room = self.cage.room(&name).map_err(|error| failed("the load's control group", &error))?;
        let mut load = RunningLoad::new(plan, first, room);
        let mut refused = None;
        for index in 0..load.plan.wanted.count as usize {
            let orders = load.orders(&self.cpus, first + index);
            match LoadProcess::start(&orders.arguments(), &self.counters) {
                Ok(worker) => load.workers.push(worker),
                Err(error) => refused = refused.or(Some(load.refused(&error))),
            }
        }
        // Started workers are also ended when this is dropped.
        self.loads.push(load);
        refused.map_or(Ok(()), Err)
    }

    fn workers(&mut self) -> impl Iterator<Item = &mut LoadProcess> {
        self.loads.iter_mut().flat_map(|load| &mut load.workers)
    }

    /// Reads all counters; to be called about once a second. Ends the loads if memory or space runs
    /// short.
    pub fn sample(&mut self, now: Nanos) {
        if self.stopped.is_some() {
            return;
        }
        for load in &mut self.loads {
            load.sample(&self.counters, now);
        }
        self.stopped = self.shortage();
        if self.stopped.is_some() {
            self.end();
        }
    }

    /// True if they were ended early.
    pub fn are_ended(&self) -> bool {
        self.stopped.is_some()
    }

    fn shortage(&self) -> Option<String> {
        if available_memory().is_some_and(|bytes| bytes < MEMORY_LEFT) {
            return Some("the loads were ended: the machine's memory was short".into());
        }
        let writers = self.loads.iter().filter(|load| load.plan.needs().disk > 0);
        let full = writers.map(|load| &load.plan.folder).find(|folder| {
            // A file of full size has its share already.
            free_space(folder).is_some_and(|bytes| bytes < SPACE_LEFT)
        });
        full.map(|_| "the loads were ended: the disk's free space was short".to_owned())
    }

    /// Running loads before any verdict, for the record of a run that is killed.
    pub fn begun(&self) -> Vec<LoadRun> {
        let unknown = "the run ended before the load was judged";
        self.loads.iter().map(|load| LoadRun { why: unknown.into(), ..load.described(&self.cpus) }).collect()
    }

    /// Ends them, and returns their results.
    pub fn finish(mut self, now: Nanos) -> Vec<LoadRun> {
        let stopped = self.stopped.clone();
        let (counters, cpus) = (&self.counters, &self.cpus);
        self.loads.iter_mut().map(|load| load.finish(counters, cpus, now, stopped.as_deref())).collect()
    }

    fn end(&mut self) {
        if self.cage.group().is_none() || self.cage.clear().is_err() {
            self.workers().for_each(LoadProcess::kill);
        }
    }
}

impl Drop for RunningLoads {
    fn drop(&mut self) {
        self.end();
        self.workers().for_each(LoadProcess::kill);
    }
}

impl RunningLoad {
    fn new(plan: Planned, first: usize, room: LoadGroup) -> RunningLoad {
        let load = plan.spec.load;
        let proof = ProofSeries::new(load.window, load.unit, load.figure.words(), plan.wanted.count);
        RunningLoad {
            plan,
            room,
            first,
            workers: Vec::new(),
            states: Vec::new(),
            kernel: None,
            time: None,
            begun: Nanos(0),
            time_at_begin: None,
            time_so_far: None,
            proof,
        }
    }

    fn orders(&self, cpus: &CpuSet, counter: usize) -> Orders {
        Orders {
            starter: std::process::id(),
            counter,
            cpus: cpus.clone(),
            group: self.room.group.clone(),
            folder: self.plan.folder.clone(),
            spec: self.plan.spec.to_string(),
        }
    }

    fn open_gauges(&mut self) -> io::Result<()> {
        let pids: Vec<u32> = self.workers.iter().map(LoadProcess::pid).collect();
        let state = |pid: &u32| RereadFile::open(&format!("/proc/{pid}/stat"), 1024);
        self.states = pids.iter().map(state).collect::<io::Result<_>>()?;
        self.kernel = Gauge::open(self.plan.spec.load.figure, &self.room, &pids);
        let load = self.plan.spec.load;
        let alone = (load.needs)(&self.plan.wanted).tasks <= 1 && load.figure != Figure::FamilyTime;
        self.time = Gauge::open(if alone { Figure::CpuTime } else { Figure::FamilyTime }, &self.room, &pids);
        Ok(())
    }

    /// Waits until all its processes are ready.
    fn wait_until_ready(&mut self, until: Nanos) -> Result<()> {
        // A user's program replaces the worker silently, and may be short.
        let silent = self.is_program();
        let ready = self.workers.iter_mut().try_for_each(|worker| worker.wait_until_ready(until, silent));
        // Not earlier: files of a process with capabilities are not readable before it is ready.
        ready.and_then(|()| self.open_gauges()).map_err(|error| self.refused(&error))
    }

    fn is_program(&self) -> bool {
        !self.plan.wanted.command.is_empty()
    }

    fn begin(&mut self) {
        self.begun = clock::monotonic();
        self.time_at_begin = self.time.as_mut().and_then(Gauge::value);
    }

    fn refused(&self, error: &io::Error) -> Failure {
        use io::ErrorKind::*;
        let what = format!("the load {} cannot start", self.plan.spec);
        let (exit, remedy) = match error.kind() {
            NotFound | NotADirectory if self.is_program() => {
                (Exit::Usage, "name an existing program, with its path")
            }
            // ENOEXEC has no `ErrorKind`.
            _ if self.is_program() && error.raw_os_error() == Some(NO_PROGRAM) => (
                Exit::Usage,
                "it is not a program for this machine: name one, or put a script's interpreter before it",
            ),
            PermissionDenied if self.is_program() => {
                (Exit::NotPermitted, "name a program that this user may run")
            }
            NotFound | NotADirectory if self.plan.needs().disk > 0 => {
                (Exit::Usage, "name an existing folder with folder=PATH")
            }
            PermissionDenied | ReadOnlyFilesystem if self.plan.needs().disk > 0 => {
                (Exit::NotPermitted, "name a folder that this user may write to with folder=PATH")
            }
            NotFound => (Exit::NotSupported, "this machine has none: omit it"),
            PermissionDenied => (Exit::NotPermitted, "omit it, or run as a user with the permission"),
            InvalidInput => (
                Exit::Usage,
                "choose CPUs with --load-cpus that are online and not kept from this process by a cpuset",
            ),
            AddrNotAvailable | NetworkUnreachable => {
                (Exit::NotSupported, "the loopback device is off: ip link set lo up")
            }
            _ => (Exit::Internal, "omit it, or choose other CPUs with --load-cpus"),
        };
        Failure::of_call(what, error, exit, remedy)
    }

    /// Own count of each of its processes.
    fn counted(&self, counters: &Counters) -> Vec<u64> {
        let own = self.first..self.first + self.workers.len();
        own.map(|index| counters.get(index).map_or(0, Counter::value)).collect()
    }

    fn sample(&mut self, counters: &Counters, now: Nanos) {
        let counted = self.counted(counters);
        let sample = self.read(counters, &counted);
        self.proof.take(sample, now);
    }

    fn read<'a>(&mut self, counters: &Counters, counted: &'a [u64]) -> LoadSample<'a> {
        let tasks = |index: usize| counters.get(self.first + index).map_or((0, 0), Counter::tasks);
        let (mut processes, mut idle) = (self.workers.len() as u32, 0);
        for (watched, stopped) in (0..self.workers.len()).map(tasks) {
            (processes, idle) = (processes + watched, idle + stopped);
        }
        // A missing process has ended.
        let stopped = |state: &mut RereadFile| process_is_stopped(state).unwrap_or(true);
        idle += self.states.iter_mut().map(stopped).filter(|stopped| *stopped).count() as u32;
        let own = (!self.plan.spec.load.unit.is_empty()).then_some(counted);
        let kernel = self.kernel.as_mut().and_then(Gauge::value);
        self.time_so_far = self.time.as_mut().and_then(Gauge::value).or(self.time_so_far);
        LoadSample { own, kernel, processes, idle }
    }

    fn described(&self, cpus: &CpuSet) -> LoadRun {
        let load = self.plan.spec.load;
        let version = if load.unit.is_empty() { "" } else { env!("CARGO_PKG_VERSION") };
        LoadRun {
            name: load.name.into(),
            spec: self.plan.spec.to_string(),
            count: self.plan.wanted.count,
            cpus: cpus.to_string(),
            unit: load.unit.into(),
            window_ns: Some(load.window),
            version: version.into(),
            ..LoadRun::default()
        }
    }

    fn finish(&mut self, counters: &Counters, cpus: &CpuSet, now: Nanos, stopped: Option<&str>) -> LoadRun {
        let counted = self.counted(counters);
        if stopped.is_none() {
            let sample = self.read(counters, &counted);
            self.proof.end(sample, now);
        }
        let judged = self.proof.judged();
        let ended = self.workers.iter_mut().find_map(LoadProcess::ended).filter(|_| stopped.is_none());
        let total = counted.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let span = now - self.begun;
        let spent = self.time_so_far.zip(self.time_at_begin);
        let why = [stopped.map(str::to_owned), Some(judged.why), ended];
        let why: Vec<String> = why.into_iter().flatten().filter(|why| !why.is_empty()).collect();
        LoadRun {
            total,
            rate_per_s: if span.0 > 0 { total as f64 / span.as_secs() } else { 0.0 },
            cpu_s: spent.map(|(end, begin)| end.saturating_sub(begin) as f64 / 1e9),
            span_ns: Some(span),
            proof: judged.proof,
            unseen_ns: judged.unseen,
            held: judged.held && stopped.is_none(),
            why: why.join("; "),
            ..self.described(cpus)
        }
    }
}

fn failed(what: &str, error: &io::Error) -> Failure {
    Failure::of_call(format!("{what} cannot be made"), error, Exit::Internal, "try again")
}
