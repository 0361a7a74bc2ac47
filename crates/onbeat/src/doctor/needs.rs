//! Needs of commands, each tried with the function by which the commands open it. All of it is
//! closed again, and no setting is written.

use std::io::ErrorKind;
use std::path::Path;

use super::Outcomes;
use crate::check::source::{CheckSource, in_namespace};
use crate::cli::probe::no_namespaces;
use crate::cli::{farm, journal};
use crate::hunt::names::names_of_this_machine;
use crate::hunt::source::ftrace::Ftrace;
use crate::measure::{prepare, reserve, start};
use crate::probe::hwlat::HwlatTracer;
use crate::probe::ipc::{self, IpcSetup};
use facts::clocksource::{self, Quality};
use facts::survey::survey;
use host::net::veth_pairs;
use host::{KernelLog, MachineFiles, clock, rt};
use model::error::{Exit, Failure, Result, reason, run_with};
use model::text::several;
use model::units::CpuSet;
use model::vocabulary::Policy;
use recorder::{Options, Reading, WakeupRecorder};
use rules::partition;
use study::audit::{MachineSource, judge};
use study::placement::{ThreadsRequest, irqs_of, threads_of};
use study::tuning::boot_id;

/// Requirement of commands on the machine or the user.
pub struct NeedTrial {
    pub name: &'static str,
    /// Tries it.
    ///
    /// # Errors
    /// Reason and remedy, with the exit code of a command that requires it.
    try_here: fn() -> Result<()>,
}

/// All needs, in the order of the answer.
pub const ALL: &[NeedTrial] = &[
    NeedTrial { name: "tracing", try_here: tracing },
    NeedTrial { name: "recorder", try_here: || recorder(Reading::Best) },
    NeedTrial { name: "bpf", try_here: bpf },
    NeedTrial { name: "program-events", try_here: program_events },
    NeedTrial { name: "kernel-names", try_here: kernel_names },
    NeedTrial { name: "thread-numbers", try_here: thread_numbers },
    NeedTrial { name: "journal", try_here: changes },
    NeedTrial { name: "partition", try_here: isolation },
    NeedTrial { name: "boot-id", try_here: || boot_id().map(drop) },
    NeedTrial { name: "rt-policy", try_here: rt_policy },
    NeedTrial { name: "deadline-policy", try_here: deadline_policy },
    NeedTrial { name: "network-namespaces", try_here: network_namespaces },
    NeedTrial { name: "memory-lock", try_here: memory_lock },
    NeedTrial { name: "idle-states", try_here: idle_states },
    NeedTrial { name: "timers", try_here: timers },
    NeedTrial { name: "clocksource", try_here: clock_in_use },
    NeedTrial { name: "kernel-log", try_here: kernel_log },
    NeedTrial { name: "second-cpu", try_here: second_cpu },
    NeedTrial { name: "ipc", try_here: mechanisms },
    NeedTrial { name: "hwlat", try_here: || HwlatTracer::find().map(drop) },
    NeedTrial { name: "all-settings", try_here: all_settings },
    NeedTrial { name: "thread-list", try_here: thread_list },
    NeedTrial { name: "interrupt-list", try_here: interrupt_list },
    NeedTrial { name: "farm-program", try_here: farm::require_program },
];

/// Tries the needs that are wanted, one after the other.
pub fn try_all(is_wanted: impl Fn(&str) -> bool) -> Outcomes {
    ALL.iter().filter(|need| is_wanted(need.name)).map(|need| (need.name, (need.try_here)())).collect()
}

/// Refuses an incomplete result of a command that continues without.
fn lacking(message: impl Into<String>) -> Result<()> {
    Err(Failure::not_supported(message))
}

fn permitted() -> CpuSet {
    rt::affinity().unwrap_or_default()
}

fn tracing() -> Result<()> {
    Ftrace::open(&permitted()).map(drop)
}

fn recorder(reading: Reading) -> Result<()> {
    WakeupRecorder::arm(&Options { reading, all: false, ..Options::default() }).map(drop)
}

fn bpf() -> Result<()> {
    recorder(Reading::Types).or_else(|of_types| {
        recorder(Reading::Format).map_err(|of_format| Failure {
            exit: of_format.exit,
            message: if of_types.message == of_format.message {
                of_format.message
            } else {
                format!("{}; {}", of_types.message, of_format.message)
            },
        })
    })
}

fn program_events() -> Result<()> {
    CheckSource::open(&[rt::thread_id() as u32], false).map(drop).or_else(lacking)
}

fn kernel_names() -> Result<()> {
    let remarks = names_of_this_machine("").1.remarks();
    if remarks.is_empty() { Ok(()) } else { lacking(remarks.join("; ")) }
}

fn thread_numbers() -> Result<()> {
    if !in_namespace(&MachineFiles::live()) {
        return Ok(());
    }
    lacking(
        "onbeat is in a PID namespace (a container), where threads have other numbers than in the kernel's \
         events: run it outside the container",
    )
}

fn changes() -> Result<()> {
    drop(journal::lock_if_there("changing settings")?);
    // What does not exist is created by a command, not here.
    let missing = Path::new(journal::FOLDER).ancestors().find(|path| path.is_dir());
    let parent = missing.unwrap_or(Path::new("/"));
    host::check_access(parent).map_err(|error| journal::unusable(&error))
}

fn isolation() -> Result<()> {
    let files = MachineFiles::live();
    let survey = survey(&files, &study::audit::survey_request());
    let online = survey.facts.online.known().cloned().unwrap_or_default();
    let cores = survey.facts.siblings.known().map_or(&[][..], Vec::as_slice);
    let last: CpuSet = online.iter().last().into_iter().collect();
    let core = cores.iter().find(|core| !core.and(&last).is_empty()).unwrap_or(&last);
    if online.without(core).is_empty() {
        return lacking("the machine has one core, which everything else needs: use another machine");
    }
    partition::settings(&survey, core).map(drop).or_else(|obstacle| lacking(obstacle.to_string()))
}

/// The policy of a default run, on a thread that ends at once.
fn rt_policy() -> Result<()> {
    let priority = crate::plan::DEFAULT_PRIORITY;
    let set = move || rt::set_policy(Policy::Fifo, priority);
    let thread = std::thread::Builder::new().spawn(set);
    let outcome = thread.and_then(|thread| thread.join().unwrap_or_else(|_| Err(ErrorKind::Other.into())));
    outcome.map_err(|error| {
        let causes = start::causes_of(priority, &error).words();
        Failure::not_permitted(format!(
            "SCHED_FIFO with priority {priority} is refused ({}), so that SCHED_OTHER is measured: {causes}",
            reason(&error)
        ))
    })
}

/// SCHED_DEADLINE with little CPU time, on a thread of all CPUs that ends at once.
fn deadline_policy() -> Result<()> {
    let cpus = permitted();
    let tried = reserve::try_reservation(&cpus, &reserve::LITTLE);
    tried.map_err(|error| reserve::why_refused(&cpus, None, &reserve::LITTLE, &error))
}

fn network_namespaces() -> Result<()> {
    veth_pairs(1).map(drop).map_err(|error| no_namespaces(&error))
}

fn memory_lock() -> Result<()> {
    match prepare::make_buffers(0).1 {
        None => Ok(()),
        Some(errno) => Err(Failure::not_permitted(start::unlocked(errno))),
    }
}

fn idle_states() -> Result<()> {
    start::hold_idle_device().map(drop).map_err(|error| {
        let what = "/dev/cpu_dma_latency cannot be held, so that idle states stay as they are";
        Failure::of_call(what, &error, Exit::NotSupported, &run_with("CAP_DAC_OVERRIDE"))
    })
}

fn timers() -> Result<()> {
    match clock::timer_resolution().filter(|resolution| resolution.0 > 1) {
        None => Ok(()),
        Some(tick) => lacking(format!(
            "timers expire only at the tick, every {tick}: boot a kernel with CONFIG_HIGH_RES_TIMERS, without \
             highres=off"
        )),
    }
}

fn clock_in_use() -> Result<()> {
    let facts = facts::gather(&MachineFiles::live());
    let name = facts.clocksource.known().cloned().unwrap_or_default();
    match clocksource::quality(&name) {
        Quality::Fast => Ok(()),
        _ => lacking(format!(
            "the clocksource {name:?} is slow, coarse or unknown: see \
             /sys/devices/system/clocksource/clocksource0/available_clocksource"
        )),
    }
}

fn kernel_log() -> Result<()> {
    KernelLog::from_now_on().map(drop).map_err(|error| {
        let what = "the kernel's log cannot be read, so that throttling is not seen";
        Failure::of_call(what, &error, Exit::NotPermitted, &run_with("CAP_SYSLOG"))
    })
}

fn second_cpu() -> Result<()> {
    match permitted().len() {
        0 | 1 => lacking(
            "onbeat may run on one CPU only: its other work and loads share it with the measuring thread",
        ),
        _ => Ok(()),
    }
}

fn mechanisms() -> Result<()> {
    let setup = IpcSetup { own_namespace: false };
    let refused: Vec<String> = ipc::ALL
        .iter()
        .filter_map(|kind| kind.make(&setup, 1).err())
        .map(|failure| failure.message)
        .collect();
    if refused.is_empty() { Ok(()) } else { lacking(refused.join("; ")) }
}

fn all_settings() -> Result<()> {
    let audit = judge(MachineSource::Live, Default::default(), None)?.audit;
    match audit.summary.unknown {
        0 => Ok(()),
        unknown => lacking(format!(
            "{} of {} unknown: {}",
            several(unknown as u64, "rule", "rules"),
            audit.findings.len(),
            if host::is_root() { "`onbeat audit` has the reasons" } else { "run as root" }
        )),
    }
}

fn thread_list() -> Result<()> {
    threads_of(MachineSource::Live, &ThreadsRequest::default()).map(drop)
}

fn interrupt_list() -> Result<()> {
    irqs_of(MachineSource::Live, None, None).map(drop)
}
