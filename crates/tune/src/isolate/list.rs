//! State of the isolated CPUs: the partition, its threads, and the interrupts that may occur there.

use facts::groups::{Group, Groups, Partition};
use facts::irqs::{Irq, Irqs};
use facts::threads_on::ThreadOn;
use host::settings::{EntryRecords, EntryStep, Outcome};
use model::isolation::{
    IMMOVABLE, INNER_GROUP, ISOLATION_SCHEMA, IsolatedInterrupt, IsolatedThread, IsolationDocument,
    OUTER_GROUP, PartitionState,
};
use model::setting::{Key, PRESENT};
use model::units::{CpuSet, named_cpus};
use rules::irq_kind::{IrqKind, handler_names, irq_kind};

/// True if an entry has isolated CPUs, by creating their group.
pub fn is_isolation(entry: &EntryRecords) -> bool {
    entry.steps.iter().any(|step| is_group(step, OUTER_GROUP))
}

fn is_group(step: &EntryStep, group: &str) -> bool {
    let setting = &step.change.setting;
    matches!(&setting.key, Key::Group(path) if path.trim_end_matches('/') == group)
        && setting.wanted == PRESENT
}

/// Last isolation of this boot that is in force, among the journal's entries.
pub fn current<'a>(entries: &'a [EntryRecords], boot: &str) -> Option<&'a EntryRecords> {
    let live = |entry: &&EntryRecords| {
        let left = entry.steps.iter().any(|step| is_group(step, OUTER_GROUP) && step.is_live());
        entry.opened.boot == boot && left
    };
    entries.iter().rev().find(live)
}

/// Partition of an isolation, and its CPUs.
pub struct IsolationState {
    pub cpus: CpuSet,
    pub partition: PartitionState,
    /// Reason if it is not in force, or the other isolation of these CPUs.
    pub reason: String,
    pub effective: CpuSet,
}

/// State by the control groups, the boot and the journal.
pub fn state(groups: Option<&Groups>, at_boot: &CpuSet, entry: Option<&EntryRecords>) -> IsolationState {
    let find = |name: &str| {
        let all = groups.map_or(&[][..], |groups| groups.groups.as_slice());
        all.iter().find(|group| group.path.trim_start_matches('/') == name)
    };
    let own: Vec<&Group> = [INNER_GROUP, OUTER_GROUP].into_iter().filter_map(find).collect();
    let partition = own.iter().copied().find(|group| {
        matches!(
            group.partition.known(),
            Some(Partition::Root | Partition::Isolated | Partition::Invalid { .. })
        )
    });
    let asked =
        entry.and_then(|entry| CpuSet::parse(&entry.opened.cpus).ok()).filter(|cpus| !cpus.is_empty());
    let sets = own.iter().flat_map(|group| [&group.exclusive, &group.cpus]);
    let present = sets.filter_map(|set| set.known()).find(|set| !set.is_empty()).cloned();
    let effective = partition
        .or(own.first().copied())
        .and_then(|group| group.effective.known())
        .cloned()
        .unwrap_or_default();
    if let Some(cpus) = asked.or(present) {
        let (partition, reason) = judged(partition, &cpus, &effective);
        return IsolationState { cpus, partition, reason, effective };
    }
    let others = groups.and_then(|groups| groups.isolated.known()).cloned().unwrap_or_default();
    let reason = match (others.is_empty(), at_boot.is_empty()) {
        (false, _) => "isolated by another program's partition",
        (true, false) => "isolated by isolcpus= on the kernel's command line",
        (true, true) => "no CPU is isolated",
    };
    let cpus = others.or(at_boot);
    IsolationState { cpus, partition: PartitionState::None, reason: reason.to_owned(), effective }
}

fn judged(partition: Option<&Group>, cpus: &CpuSet, effective: &CpuSet) -> (PartitionState, String) {
    match partition.and_then(|group| group.partition.known()) {
        Some(Partition::Isolated) => {
            let lost = cpus.without(effective);
            let reason = if lost.is_empty() {
                String::new()
            } else {
                format!("without {}: offline, or taken by another group", named_cpus(lost))
            };
            (PartitionState::Isolated, reason)
        }
        Some(Partition::Invalid { reason, .. }) if reason.is_empty() => {
            (PartitionState::Invalid, "the kernel gives no reason".to_owned())
        }
        Some(Partition::Invalid { reason, .. }) => (PartitionState::Invalid, reason.clone()),
        Some(Partition::Root) => (PartitionState::Invalid, "its load is balanced".to_owned()),
        Some(Partition::Member) | None => (
            PartitionState::Invalid,
            "another program has removed it, as systemctl daemon-reload does: undo, and create it again"
                .to_owned(),
        ),
    }
}

/// Complete document.
pub fn document(
    state: &IsolationState,
    entry: Option<&EntryRecords>,
    threads: &[ThreadOn],
    irqs: Option<&Irqs>,
) -> IsolationDocument {
    let interrupts = irqs.map_or(&[][..], |irqs| irqs.irqs.as_slice()).iter();
    IsolationDocument {
        schema: ISOLATION_SCHEMA.to_owned(),
        cpus: state.cpus.to_string(),
        partition: state.partition,
        reason: state.reason.clone(),
        effective: state.effective.to_string(),
        entry: entry.map_or_else(String::new, |entry| entry.opened.id.clone()),
        undone_in_ns: None,
        confirmable: false,
        threads: threads.iter().map(thread).collect(),
        interrupts: interrupts.filter_map(|irq| interrupt(irq, &state.cpus, entry)).collect(),
        counted_ns: None,
        arrivals: Vec::new(),
    }
}

fn thread(thread: &ThreadOn) -> IsolatedThread {
    let placed = thread.group.trim_start_matches('/');
    let placed =
        placed == INNER_GROUP || placed.strip_prefix(INNER_GROUP).is_some_and(|rest| rest.starts_with('/'));
    let stat = &thread.stat;
    let why = if placed {
        format!("it is in {INNER_GROUP}")
    } else {
        why_thread(&stat.comm, stat.kernel, stat.immovable, &thread.allowed)
    };
    IsolatedThread {
        tid: thread.tid,
        comm: stat.comm.clone(),
        movable: !stat.immovable,
        why,
        allowed: thread.allowed.to_string(),
    }
}

/// Reason why a thread can or cannot be moved.
pub fn why_thread(comm: &str, kernel: bool, immovable: bool, allowed: &CpuSet) -> String {
    match (immovable, kernel) {
        (true, true) => format!("{}: {IMMOVABLE}", duty_of(comm, allowed)),
        (true, false) => IMMOVABLE.to_owned(),
        (false, true) if comm.starts_with("irq/") => {
            "it handles an interrupt, and runs on the CPU of that interrupt".to_owned()
        }
        (false, _) => MOVABLE.to_owned(),
    }
}

/// Reason for threads and interrupts without a restriction.
const MOVABLE: &str = "its affinity allows it";

/// Purpose of a kernel thread that cannot leave: usually it belongs to one CPU
/// (Documentation/admin-guide/kernel-per-CPU-kthreads.rst).
fn duty_of(comm: &str, allowed: &CpuSet) -> &'static str {
    const DUTIES: [(&str, &str); 12] = [
        ("cpuhp/", "it switches this CPU on and off"),
        ("migration/", "it moves threads off this CPU, and stops it"),
        ("ksoftirqd/", "it runs this CPU's softirqs"),
        ("ktimers/", "it runs this CPU's timers"),
        ("ktimersd/", "it runs this CPU's timers"),
        ("rcuc/", "it runs this CPU's RCU callbacks"),
        ("backlog_napi/", "it receives packets for this CPU"),
        ("idle_inject/", "it injects idle time when this CPU is hot"),
        ("irq_work/", "it runs work that interrupts left on this CPU"),
        ("kworker/", "it runs work that was queued on this CPU"),
        ("timerlat/", "it measures this CPU's latency"),
        ("osnoise/", "it measures this CPU's noise"),
    ];
    // Idle unless memory is short, and then active on the CPU of the work
    // (Documentation/core-api/workqueue.rst).
    if comm.starts_with("kworker/R-") || (allowed.len() > 1 && !comm.contains('/')) {
        return "it rescues a workqueue when memory is short";
    }
    if allowed.len() > 1 {
        return "it runs work of any CPU";
    }
    let known = DUTIES.iter().find(|(prefix, _)| comm.starts_with(prefix));
    known.map_or("it serves this CPU", |(_, duty)| duty)
}

/// Reason why an interrupt can or cannot be moved.
pub fn why_interrupt(kind: IrqKind) -> &'static str {
    match kind {
        IrqKind::Managed => {
            "the kernel spreads it over the queues (managed): boot with isolcpus=managed_irq,domain,..."
        }
        IrqKind::PerCpu => "each CPU has one, or the kernel never moves it",
        IrqKind::Movable => MOVABLE,
    }
}

/// Row of an interrupt; none if it may not occur here.
fn interrupt(irq: &Irq, cpus: &CpuSet, entry: Option<&EntryRecords>) -> Option<IsolatedInterrupt> {
    let allowed = irq.allowed.known()?;
    if allowed.and(cpus).is_empty() {
        return leaving(irq, cpus, allowed);
    }
    let tried = entry.and_then(|entry| {
        let of = |step: &&EntryStep| step.change.setting.key == Key::Irq(irq.number);
        let refused = entry.steps.iter().rev().find(of)?;
        let outcome = refused.outcome.as_ref().filter(|outcome| outcome.outcome == Outcome::Refused)?;
        Some(outcome.why.clone())
    });
    let (movable, why) = match (irq_kind(irq), tried) {
        (IrqKind::Movable, Some(why)) => (false, why),
        (kind, _) => (kind == IrqKind::Movable, why_interrupt(kind).to_owned()),
    };
    Some(IsolatedInterrupt {
        irq: irq.number.to_string(),
        name: handler_names(irq),
        movable,
        why,
        allowed: allowed.to_string(),
        pending: false,
    })
}

/// Row of an interrupt that is no longer allowed here, but stays until it occurs: many controllers
/// move it only then (kernel/irq/migration.c).
fn leaving(irq: &Irq, cpus: &CpuSet, allowed: &CpuSet) -> Option<IsolatedInterrupt> {
    let here = irq.effective.known()?.and(cpus);
    (!here.is_empty()).then(|| IsolatedInterrupt {
        irq: irq.number.to_string(),
        name: handler_names(irq),
        movable: true,
        why: format!("on CPU {here} until its next interrupt"),
        allowed: allowed.to_string(),
        pending: true,
    })
}
