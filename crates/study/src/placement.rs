//! Lists of a machine's threads and interrupts, with their CPUs and priorities.

use std::collections::BTreeMap;

use facts::arrivals::{ArrivalCounts, between, count_interrupts};
use facts::irqs::{Irq, read_irqs};
use facts::line::parse_cpus;
use facts::tasks::RtPolicy;
use facts::threads::{Thread, read_threads};
use facts::threads_on::{ThreadOn, read_threads_on};
use host::MachineFiles;
use model::error::{Exit, Failure, Result, run_with};
use model::fact::{Fact, errno_name};
use model::placement::{
    IRQS_SCHEMA, InterruptOrigin, IrqCount, IrqHandler, IrqsDocument, PlacedIrq, PlacedThread,
    THREADS_SCHEMA, ThreadOrigin, ThreadPolicy, ThreadsDocument,
};
use model::sort::CompactSort;
use model::text::several;
use model::units::{CPU_LIMIT, Cpu, CpuSet};
use report::placement::rank;
use rules::irq_kind::{IrqKind, handler_names, irq_kind};
use tune::isolate::list::{why_interrupt, why_thread};

use crate::audit::MachineSource;
use crate::isolating::state_of;

/// Selection of threads.
#[derive(Clone, Debug, Default)]
pub struct ThreadsRequest {
    /// Only threads that may run on any of these CPUs.
    pub cpus: Option<CpuSet>,
    /// Only threads of this process.
    pub pid: Option<u32>,
    /// Only threads with a real-time policy.
    pub realtime: bool,
}

/// Threads of a machine.
///
/// # Errors
/// Usage: the machine has no such CPU or process, or the bundle holds no threads. Not supported:
/// `/proc` is not readable.
pub fn threads_of(machine: MachineSource, wanted: &ThreadsRequest) -> Result<ThreadsDocument> {
    threads_in(&machine.open()?, is_capture(machine), wanted)
}

fn threads_in(files: &MachineFiles, is_capture: bool, wanted: &ThreadsRequest) -> Result<ThreadsDocument> {
    wanted.cpus.as_ref().map_or(Ok(()), |cpus| require_present(files, cpus))?;
    let mut document = read_placed(files, is_capture)?;
    if let Some(pid) = wanted.pid {
        require_process(&document.threads, pid)?;
        document.threads.retain(|thread| thread.pid == Some(pid));
    } else if !document.threads.iter().any(|thread| thread.kind != ThreadOrigin::User) {
        document.remarks.push(
            "No kernel thread is visible in /proc: run outside of the container, and as root where /proc is \
             mounted with hidepid=."
                .to_owned(),
        );
    }
    document.threads.retain(|thread| {
        let reaches = wanted.cpus.as_ref().is_none_or(|cpus| !thread.allowed.and(cpus).is_empty());
        reaches && (!wanted.realtime || thread.policy != ThreadPolicy::Other)
    });
    document.threads.compact_sort_by_key(|thread| (std::cmp::Reverse(rank(thread)), thread.kind, thread.tid));
    document.cpus = wanted.cpus.clone().unwrap_or_default();
    Ok(document)
}

fn is_capture(machine: MachineSource) -> bool {
    matches!(machine, MachineSource::Captured(_) | MachineSource::Foreign(_))
}

fn require_present(files: &MachineFiles, cpus: &CpuSet) -> Result<()> {
    let present = files.read_text("/sys/devices/system/cpu/present").parse(|text| parse_cpus(&text));
    let Fact::Known(present) = present else { return Ok(()) };
    let missing = cpus.without(&present);
    if missing.is_empty() || present.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!("--cpus: this machine has no CPU {missing}: choose among {present}")))
}

fn require_process(threads: &[PlacedThread], pid: u32) -> Result<()> {
    if threads.iter().any(|thread| thread.pid == Some(pid)) {
        return Ok(());
    }
    let process = threads.iter().find(|thread| thread.tid == pid).and_then(|thread| thread.pid);
    Err(Failure::usage(match process {
        Some(process) => format!("--pid: {pid} is a thread of process {process}: give {process}"),
        None => format!("--pid: there is no process {pid}: give a number that `ps -e` lists"),
    }))
}

/// All threads: a capture has only some of them, without those of their facts that are private.
fn read_placed(files: &MachineFiles, is_capture: bool) -> Result<ThreadsDocument> {
    let mut document = ThreadsDocument {
        schema: THREADS_SCHEMA,
        cpus: CpuSet::default(),
        threads: Vec::new(),
        unread: 0,
        remarks: Vec::new(),
    };
    if is_capture {
        let found = require_read(read_threads(files, &[]), "/proc", is_capture)?;
        document.threads.extend(found.kernel.iter().map(|thread| captured(thread, true)));
        document.threads.extend(found.realtime.iter().map(|thread| captured(thread, false)));
        let unread = if found.complete { "" } else { ", and what was not readable" };
        document
            .remarks
            .push(format!("A capture lacks kworkers and user threads with other policies{unread}."));
    } else {
        let found = require_read(read_threads_on(files, None), "/proc", is_capture)?;
        document.threads = found.threads.iter().map(running).collect();
        document.unread = found.missed;
        if found.missed > 0 {
            let count = several(found.missed, "thread", "threads");
            document.remarks.push(format!("{count} could not be read: {}.", run_with("CAP_SYS_PTRACE")));
        }
    }
    Ok(document)
}

fn require_read<T>(fact: Fact<T>, path: &str, is_capture: bool) -> Result<T> {
    let what = format!("cannot read {path}");
    Err(match fact {
        Fact::Known(value) => return Ok(value),
        _ if is_capture => {
            Failure::usage(format!("this bundle has nothing of {path}: give a folder of `onbeat capture`"))
        }
        Fact::Refused(errno) => {
            let error = std::io::Error::from_raw_os_error(errno);
            Failure::of_call(what, &error, Exit::NotSupported, "run as root")
        }
        _ => Failure::not_supported(format!("{what}: mount /proc, on a kernel that has it")),
    })
}

fn running(thread: &ThreadOn) -> PlacedThread {
    let stat = &thread.stat;
    let (comm, allowed) = (stat.comm.clone(), thread.allowed.clone());
    PlacedThread {
        tid: thread.tid,
        pid: Some(thread.pid),
        policy: policy_of(stat.policy),
        priority: stat.priority,
        kind: origin_of(&comm, stat.kernel),
        last_cpu: Some(stat.last_cpu.0),
        movable: !stat.immovable,
        why: why_thread(&comm, stat.kernel, stat.immovable, &allowed),
        comm,
        allowed,
    }
}

fn captured(thread: &Thread, kernel: bool) -> PlacedThread {
    let allowed = thread.cpus().unwrap_or_default();
    PlacedThread {
        tid: thread.tid,
        pid: None,
        comm: thread.comm.clone(),
        policy: policy_of(thread.policy),
        priority: thread.priority,
        kind: origin_of(&thread.comm, kernel),
        last_cpu: None,
        movable: !thread.immovable,
        why: why_thread(&thread.comm, kernel, thread.immovable, &allowed),
        allowed,
    }
}

fn policy_of(policy: Option<RtPolicy>) -> ThreadPolicy {
    match policy {
        None => ThreadPolicy::Other,
        Some(RtPolicy::Fifo) => ThreadPolicy::Fifo,
        Some(RtPolicy::RoundRobin) => ThreadPolicy::Rr,
        Some(RtPolicy::Deadline) => ThreadPolicy::Deadline,
    }
}

fn origin_of(comm: &str, kernel: bool) -> ThreadOrigin {
    match irq_of(comm) {
        _ if !kernel => ThreadOrigin::User,
        Some(_) => ThreadOrigin::Interrupt,
        None => ThreadOrigin::Kernel,
    }
}

/// Interrupt of a thread called `irq/24-eth0`.
fn irq_of(comm: &str) -> Option<u32> {
    comm.strip_prefix("irq/")?.split_once('-')?.0.parse().ok()
}

/// Interrupts of a machine, or those that may arrive on the CPUs. `wait` waits for the length of a
/// count, and returns it in nanoseconds.
///
/// # Errors
/// Usage: the machine has no such CPU, or the bundle holds no interrupts. Not supported:
/// `/proc/irq` is not readable.
pub fn irqs_of(
    machine: MachineSource,
    cpus: Option<&CpuSet>,
    wait: Option<&dyn Fn() -> i64>,
) -> Result<IrqsDocument> {
    irqs_in(&machine.open()?, is_capture(machine), cpus, wait)
}

fn irqs_in(
    files: &MachineFiles,
    is_capture: bool,
    cpus: Option<&CpuSet>,
    wait: Option<&dyn Fn() -> i64>,
) -> Result<IrqsDocument> {
    cpus.map_or(Ok(()), |cpus| require_present(files, cpus))?;
    let found = require_read(read_irqs(files), "/proc/irq", is_capture)?;
    let threads = read_placed(files, is_capture).map_or_else(|_| Vec::new(), |all| all.threads);
    let mut remarks = Vec::new();
    if found.missed > 0 {
        let count = several(found.missed, "interrupt", "interrupts");
        remarks.push(format!("{count} could not be read: mount /sys, and run with its files readable."));
    }
    if found.irqs.iter().any(|irq| irq.managed.is_none()) {
        remarks.push("What cannot be moved is judged by names, as debugfs does not describe it.".to_owned());
    }
    let before = counts(files);
    if before.is_none() {
        let lacks = if is_capture { "A capture lacks counts." } else { "/proc/interrupts is not readable." };
        remarks.push(lacks.to_owned());
    }
    let counted_ns = wait.filter(|_| before.is_some()).map(|wait| wait());
    let after = counted_ns.and_then(|_| counts(files));
    let mut lines = InterruptLines::of(before.unwrap_or_default(), after);
    let mut irqs: Vec<PlacedIrq> = found.irqs.iter().map(|irq| placed(irq, &mut lines, &threads)).collect();
    irqs.extend(lines.of_the_architecture());
    if let Some(cpus) = cpus {
        irqs.retain(|irq| !irq.is_numbered() || irq.may_arrive_on(cpus));
        irqs.iter_mut().for_each(|irq| irq.counts.retain(|count| cpus.contains(Cpu(count.cpu))));
    }
    let cpus = cpus.cloned().unwrap_or_else(|| state_of(files, None).cpus);
    Ok(IrqsDocument { schema: IRQS_SCHEMA, cpus, counted_ns, irqs, unread: found.missed, remarks })
}

fn counts(files: &MachineFiles) -> Option<ArrivalCounts> {
    let text = files.unrecorded().read_text("/proc/interrupts").known().cloned()?;
    let mut counts = ArrivalCounts::new();
    count_interrupts(&text, &(0..CPU_LIMIT).map(Cpu).collect(), &mut counts);
    Some(counts)
}

/// Lines of `/proc/interrupts` by their label: name and counts, without those that are 0.
struct InterruptLines(BTreeMap<String, (String, Vec<IrqCount>)>);

impl InterruptLines {
    /// Lines of a count, and of a later one.
    fn of(before: ArrivalCounts, after: Option<ArrivalCounts>) -> InterruptLines {
        let grown = after.as_ref().map(|after| between(&before, after));
        let mut lines = BTreeMap::<String, (String, Vec<IrqCount>)>::new();
        for (key, total) in after.unwrap_or(before) {
            let counted = grown.as_ref().map(|grown| grown.get(&key).copied().unwrap_or(0));
            let (cpu, _, name) = key;
            let (label, name) = name.split_once(": ").unwrap_or((&name, ""));
            let (_, counts) = lines.entry(label.to_owned()).or_insert_with(|| (name.to_owned(), Vec::new()));
            counts.extend((total > 0).then_some(IrqCount { cpu: cpu.0, total, counted }));
        }
        InterruptLines(lines)
    }

    /// Lines without a number, such as those of local timers.
    fn of_the_architecture(self) -> impl Iterator<Item = PlacedIrq> {
        let lines = self.0.into_iter().filter(|(label, _)| label.parse::<u32>().is_err());
        lines.map(|(irq, (name, counts))| PlacedIrq {
            irq,
            name,
            kind: InterruptOrigin::PerCpu,
            effective: CpuSet::default(),
            allowed: CpuSet::default(),
            movable: false,
            why: why_interrupt(IrqKind::PerCpu).to_owned(),
            counts,
            threads: Vec::new(),
        })
    }
}

fn placed(irq: &Irq, lines: &mut InterruptLines, threads: &[PlacedThread]) -> PlacedIrq {
    let kind = irq_kind(irq);
    let why = match &irq.allowed {
        Fact::Known(_) => why_interrupt(kind).to_owned(),
        _ if kind != IrqKind::Movable => why_interrupt(kind).to_owned(),
        Fact::Refused(errno) => format!("its affinity cannot be read ({})", errno_name(*errno)),
        _ => "it has no affinity file".to_owned(),
    };
    let handles = |thread: &&PlacedThread| {
        thread.kind == ThreadOrigin::Interrupt && irq_of(&thread.comm) == Some(irq.number)
    };
    let handler = |thread: &PlacedThread| IrqHandler {
        tid: thread.tid,
        comm: thread.comm.clone(),
        policy: thread.policy,
        priority: thread.priority,
        allowed: thread.allowed.clone(),
    };
    PlacedIrq {
        irq: irq.number.to_string(),
        name: handler_names(irq),
        kind: match kind {
            IrqKind::Movable => InterruptOrigin::Device,
            IrqKind::Managed => InterruptOrigin::Managed,
            IrqKind::PerCpu => InterruptOrigin::PerCpu,
        },
        effective: irq.effective.known().cloned().unwrap_or_default(),
        allowed: irq.allowed.known().cloned().unwrap_or_default(),
        movable: kind == IrqKind::Movable && irq.allowed.known().is_some(),
        why,
        counts: lines.0.remove(&irq.number.to_string()).map_or_else(Vec::new, |(_, counts)| counts),
        threads: threads.iter().filter(handles).map(handler).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::access::Access;

    /// A machine of these files, a line each.
    fn machine(text: &str) -> MachineFiles {
        let file = |line: &str| {
            let (path, content) = line.trim().split_once(": ").unwrap();
            (path.to_owned(), Access::File(format!("{}\n", content.replace('|', "\n")).into_bytes()))
        };
        MachineFiles::in_memory(text.lines().filter(|line| !line.trim().is_empty()).map(file).collect())
    }

    /// Lines of a thread: field 9 of its state is the flags, 39 the CPU, 40 the priority, 41 the
    /// policy.
    fn thread(pid: u32, tid: u32, comm: &str, numbers: [u32; 3], cpus: &str) -> String {
        let [flags, priority, policy] = numbers;
        let [before, times, memory, after] = [5, 10, 19, 11].map(|count| " 0".repeat(count));
        let dir = format!("/proc/{pid}/task/{tid}");
        format!(
            "{dir}/stat: {tid} ({comm}) S{before} {flags}{times}{memory} 1 {priority} {policy}{after}\n\
             {dir}/status: Cpus_allowed_list:\t{cpus}\n"
        )
    }

    const BOUND: u32 = 0x0420_8040;
    const KERNEL: u32 = 0x0020_8040;

    fn threads() -> String {
        [
            "/sys/devices/system/cpu/present: 0-3\n".to_owned(),
            thread(15, 15, "migration/2", [BOUND, 99, 1], "2"),
            thread(20, 20, "kthreadd", [KERNEL, 0, 0], "0-3"),
            thread(71, 71, "irq/9-acpi", [KERNEL, 50, 1], "0-3"),
            thread(90, 90, "control", [0, 0, 0], "0-3"),
            thread(90, 91, "loop", [0, 80, 1], "2"),
            thread(90, 92, "steer", [0, 0, 6], "3"),
            thread(95, 95, "irq/9-fake", [0, 10, 2], "0"),
        ]
        .concat()
    }

    fn list(wanted: &ThreadsRequest) -> Result<ThreadsDocument> {
        threads_in(&machine(&threads()), false, wanted)
    }

    #[test]
    fn threads_are_in_the_order_in_which_they_preempt_each_other() {
        let all = list(&ThreadsRequest::default()).unwrap();
        let tids = |all: &ThreadsDocument| all.threads.iter().map(|one| one.tid).collect::<Vec<_>>();
        assert_eq!(tids(&all), [15, 92, 91, 71, 95, 90, 20]);
        let [stop, steer, _, acpi, fake, ..] = &all.threads[..] else { panic!("{all:?}") };
        assert_eq!((stop.movable, steer.policy, steer.last_cpu), (false, ThreadPolicy::Deadline, Some(1)));
        assert!(stop.why.starts_with("it moves threads off this CPU"), "{}", stop.why);
        assert_eq!((acpi.kind, fake.kind), (ThreadOrigin::Interrupt, ThreadOrigin::User));
        let cpus = Some(CpuSet::parse("2").unwrap());
        let there = list(&ThreadsRequest { cpus: cpus.clone(), realtime: true, pid: None }).unwrap();
        assert_eq!((tids(&there), there.cpus.to_string()), (vec![15, 91, 71], "2".to_owned()));
        let own = list(&ThreadsRequest { cpus, realtime: false, pid: Some(90) }).unwrap();
        assert_eq!(tids(&own), [91, 90]);
    }

    #[test]
    fn processes_and_cpus_that_do_not_exist_are_refused() {
        let refused = |pid: Option<u32>, cpus: &str| {
            let cpus = Some(CpuSet::parse(cpus).unwrap());
            let failure = list(&ThreadsRequest { pid, cpus, realtime: false }).expect_err("refused");
            assert_eq!(failure.exit, Exit::Usage);
            failure.message
        };
        assert!(refused(Some(91), "0").contains("91 is a thread of process 90: give 90"));
        assert!(refused(Some(7), "0").contains("no process 7"));
        assert!(refused(None, "3-4").contains("no CPU 4: choose among 0-3"));
    }

    #[test]
    fn what_could_not_be_read_is_counted() {
        let text = "/proc/90/task/90/stat: broken\n/proc/90/task/90/status: Cpus_allowed_list:\t0";
        let all = threads_in(&machine(text), false, &ThreadsRequest::default()).unwrap();
        assert_eq!((all.threads.len(), all.unread), (0, 1));
        assert!(all.remarks[0].starts_with("1 thread could not be read"), "{:?}", all.remarks);
        assert!(all.remarks[1].starts_with("No kernel thread is visible"), "{:?}", all.remarks);
        let failure = threads_in(&machine("/x: y"), true, &ThreadsRequest::default()).expect_err("refused");
        assert_eq!(failure.exit, Exit::Usage);
    }

    #[test]
    fn a_capture_lists_what_it_has() {
        let text = thread(71, 71, "irq/9-acpi", [KERNEL, 50, 1], "0-1").replace("/task/71", "");
        let all = threads_in(&machine(&text), true, &ThreadsRequest::default()).unwrap();
        let [acpi] = &all.threads[..] else { panic!("{all:?}") };
        assert_eq!((acpi.pid, acpi.last_cpu, acpi.allowed.to_string()), (None, None, "0-1".to_owned()));
        assert!(all.remarks[0].starts_with("A capture lacks"), "{:?}", all.remarks);
    }

    #[test]
    fn interrupts_have_their_counts_and_threads() {
        let text = threads()
            + "/sys/devices/system/cpu/isolated: 2-3
               /proc/irq/9/smp_affinity_list: 0-3
               /proc/irq/9/effective_affinity_list: 0
               /sys/kernel/irq/9/actions: acpi
               /proc/irq/28/smp_affinity_list: 2
               /sys/kernel/irq/28/actions: nvme0q1
               /sys/kernel/irq/30/actions: eth0
               /proc/irq/30/spurious: 0
               /proc/interrupts: CPU0 CPU2|9: 5 0 IO-APIC 9-fasteoi acpi|28: 0 7 nvme0q1|LOC: 1 2 Timer";
        let files = machine(&text);
        let all = irqs_in(&files, false, None, None).unwrap();
        assert_eq!((all.cpus.to_string(), all.counted_ns), ("2-3".to_owned(), None));
        let [acpi, queue, eth, local] = &all.irqs[..] else { panic!("{all:?}") };
        assert_eq!(acpi.counts, [IrqCount { cpu: 0, total: 5, counted: None }]);
        assert_eq!((acpi.movable, acpi.threads.len(), acpi.threads[0].tid), (true, 1, 71));
        assert_eq!((queue.kind, queue.movable), (InterruptOrigin::Managed, false));
        assert_eq!((eth.movable, eth.why.as_str()), (false, "it has no affinity file"));
        assert_eq!((local.irq.as_str(), local.name.as_str(), local.is_numbered()), ("LOC", "Timer", false));
        let cpus = CpuSet::parse("2").unwrap();
        let here = irqs_in(&files, false, Some(&cpus), Some(&|| 1_000)).unwrap();
        assert_eq!((here.irqs.len(), here.counted_ns), (3, Some(1_000)));
        assert_eq!(here.irqs[2].counts, [IrqCount { cpu: 2, total: 2, counted: Some(0) }]);
        assert!(here.irqs[0].counts.is_empty());
    }
}
