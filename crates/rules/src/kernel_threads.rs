//! Threads as rules use them: visibility, affinity and names.

use super::judgement::Judgement;
use super::words::truncate_list;
use crate::change::{Change, ThreadId};
use crate::remedy::Remedy;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use std::collections::{BTreeMap, BTreeSet};

use facts::Fact;
use facts::threads::{Thread, Threads};
use model::error::run_with;
use model::units::{Cpu, CpuSet};

/// The threads, if those of the kernel are visible.
pub fn visible_threads<'a>(machine: &MachineView<'a>) -> Result<&'a Threads, Judgement> {
    let threads = machine.known(&machine.survey.threads, "/proc")?;
    if threads.kernel.is_empty() {
        return Err(Judgement::unknown(
            "/proc shows no kernel thread: run onbeat outside of the container, and as root if /proc is \
             mounted with hidepid=",
        ));
    }
    Ok(threads)
}

/// Names of the kernel threads of a kind that are allowed on some CPUs; unknown if none is known to
/// be, and not all could be read.
pub fn names_allowed_on(
    threads: &Threads,
    cpus: &CpuSet,
    kind: impl Fn(&Thread) -> bool,
) -> Result<String, Judgement> {
    let of_kind = || threads.kernel.iter().filter(|thread| kind(thread));
    let on = |thread: &&Thread| thread.allowed.known().is_some_and(|allowed| !allowed.and(cpus).is_empty());
    let names = truncate_list(of_kind().filter(on).map(base_name));
    if names.is_empty() {
        if let Some(thread) = of_kind().find(|thread| !matches!(thread.allowed, Fact::Known(_))) {
            return Err(unknown_from(&format!("the affinity of {}", base_name(thread)), &thread.allowed));
        }
        require_complete(threads)?;
    }
    Ok(names)
}

/// Moves the kernel threads of a kind off some CPUs: each to its others among the `rest`, or all of
/// these if it has none. `shown_as` is their common name.
pub fn kept_off(
    threads: &Threads,
    cpus: &CpuSet,
    rest: &CpuSet,
    shown_as: &str,
    kind: impl Fn(&Thread) -> bool,
) -> Remedy {
    let mut by_cpus: BTreeMap<BTreeSet<Cpu>, Vec<ThreadId>> = BTreeMap::new();
    for thread in threads.kernel.iter().filter(|thread| kind(thread)) {
        let Fact::Known(allowed) = &thread.allowed else { continue };
        if allowed.and(cpus).is_empty() {
            continue;
        }
        let others = allowed.and(rest);
        let left = if others.is_empty() { rest.clone() } else { others };
        by_cpus.entry(left.0).or_default().push(ThreadId { tid: thread.tid, start: thread.start });
    }
    let one_kind = by_cpus.len() == 1;
    let change = |(cpus, threads): (BTreeSet<Cpu>, Vec<ThreadId>)| {
        let cpus = CpuSet(cpus);
        let narrower = format!("each of those whose other CPUs are only {cpus}");
        let shown_as = if one_kind || cpus == *rest { shown_as.to_owned() } else { narrower };
        Change::Affinity { threads, shown_as, cpus }
    };
    Remedy::of(by_cpus.into_iter().map(change))
}

/// Name of a thread, without the ID of the process that it works for: `kvm-pit`, `vhost`,
/// `iou-sqp`.
pub fn base_name(thread: &Thread) -> String {
    let comm = &thread.comm;
    if ["kvm-", "vhost-", "iou-"].iter().any(|family| comm.starts_with(family)) {
        let digits = comm.bytes().rev().take_while(u8::is_ascii_digit).count();
        let name = &comm[..comm.len() - digits];
        return name.trim_end_matches(['-', '/']).to_owned();
    }
    comm.clone()
}

/// Returns early unless all threads could be read.
pub fn require_complete(threads: &Threads) -> Result<(), Judgement> {
    if threads.complete {
        Ok(())
    } else {
        Err(Judgement::unknown(format!(
            "not all threads below /proc could be read: {}",
            run_with("CAP_SYS_PTRACE")
        )))
    }
}
