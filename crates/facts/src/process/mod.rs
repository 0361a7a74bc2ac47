//! A running process and its threads as `/proc` shows them from outside, at two moments.
//!
//! Nothing here stops the process: `smaps` is read once, because reading it takes the process's
//! mmap lock; `syscall` and `fd` need the rights of a debugger and attach to nothing. Source:
//! Documentation/filesystems/proc.rst, proc_pid_stat(5), proc_pid_smaps(5).

pub mod calls;
pub mod counters;
pub mod descriptors;
pub mod mappings;
pub mod nodes;
pub mod pages;
pub mod status;
pub mod surroundings;
pub mod waits;

mod files;
mod group;
mod read;
#[cfg(test)]
mod tests;
mod thread;

pub use files::{dir_of, status_of};
pub use read::{MAX_THREADS, ProcessReader, SeenThread, processes_named};

use crate::limits::Limits;
use crate::policy_rights::PolicyRights;
use crate::tasks::RtPolicy;
use counters::{CallCounters, ThreadCounters};
use descriptors::Descriptor;
use mappings::{MemoryMapping, mapping_at};
use model::fact::Fact;
use model::units::{Cpu, CpuSet, Nanos};
use nodes::NodePages;
use pages::StackPages;
use status::ProcessStatus;
use std::collections::BTreeSet;
use waits::Waits;

/// A process, read at the beginning and at the end of a window of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    pub pid: u32,
    /// Name of its first thread.
    pub comm: String,
    pub window: Nanos,
    pub status: Fact<ProcessStatus>,
    /// True if its system calls have the numbers of onbeat's, so that they can be named.
    pub own_numbers: Fact<bool>,
    pub limits: Fact<Limits>,
    /// Facts that decide whether its threads may take a real-time policy.
    pub rights: PolicyRights,
    /// Its memory mappings, in the order of addresses, at the window's end.
    pub mappings: Fact<Vec<MemoryMapping>>,
    /// Memory nodes of its pages; absent on kernels without nodes.
    pub nodes: Fact<Vec<NodePages>>,
    /// Open descriptors.
    pub descriptors: Fact<Vec<Descriptor>>,
    /// Changes of its writable memory in the window.
    pub growth: Fact<Growth>,
    /// Number of times that its control group or one above was throttled in the window
    /// (`nr_throttled`); absent if none counts it.
    pub throttled: Fact<u64>,
    /// Quota of its control group: microseconds in each period; `None` without one.
    pub quota: Fact<Option<(u64, u64)>>,
    pub threads: Vec<ProgramThread>,
    /// Threads over the limit, which were not read.
    pub threads_left_out: u64,
    /// Threads that ended within the window, or began at its end.
    pub threads_changed: u64,
    /// Real-time threads that were seen and that ended within the window; there may have been more.
    pub real_time_ended: u64,
}

/// Changes of the private writable memory of a process (`VmData`), as far as samples show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    pub least_kib: u64,
    pub most_kib: u64,
    /// Number of samples that differ in size from the sample before.
    pub changes: u64,
    /// Number of samples with less resident memory than the one before: pages were returned to the
    /// system, even if the C library keeps the addresses (`madvise`).
    pub given_back: u64,
    pub looks: u64,
}

/// Thread of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramThread {
    pub tid: u32,
    pub comm: String,
    /// Real-time policy, if it has one.
    pub policy: Option<RtPolicy>,
    /// Priority from 1 to 99; 0 for policies other than FIFO and round robin.
    pub priority: u32,
    pub nice: i64,
    pub allowed: Fact<CpuSet>,
    /// CPUs on which it was seen.
    pub seen_on: BTreeSet<Cpu>,
    /// Counters of the scheduler and the memory management over the window.
    pub counted: Fact<ThreadCounters>,
    /// Reads and writes in the window.
    pub calls: Fact<CallCounters>,
    /// Timer slack: the time by which its sleeps may be prolonged.
    pub slack_ns: Fact<u64>,
    /// System calls in which it was seen asleep.
    pub waits: Fact<Waits>,
    /// Resident part of its stack; absent if its stack pointer was not seen or lies in no mapping.
    pub stack: Fact<StackPages>,
    /// Time under observation: less than the process's for a thread that came later.
    pub window: Nanos,
}

impl ProgramThread {
    /// Name of its policy.
    pub fn policy_name(&self) -> &'static str {
        match self.policy {
            Some(RtPolicy::Deadline) => "deadline",
            Some(RtPolicy::Fifo) => "fifo",
            Some(RtPolicy::RoundRobin) => "rr",
            None => "other",
        }
    }

    /// Priority on the kernel's scale, on which less comes first: -1 deadline, 0 to 98 real-time
    /// (99 minus the priority), 100 to 139 fair.
    pub fn rank(&self) -> i64 {
        rank_of(self.policy, self.priority, self.nice)
    }
}

fn rank_of(policy: Option<RtPolicy>, priority: u32, nice: i64) -> i64 {
    match policy {
        Some(RtPolicy::Deadline) => -1,
        Some(_) => 99 - i64::from(priority),
        None => 120 + nice,
    }
}

impl ProcessFacts {
    /// Its real-time threads.
    pub fn real_time(&self) -> impl Iterator<Item = &ProgramThread> {
        self.threads.iter().filter(|thread| thread.policy.is_some())
    }

    pub fn thread(&self, tid: u32) -> Option<&ProgramThread> {
        self.threads.iter().find(|thread| thread.tid == tid)
    }

    /// Mapping that contains an address.
    pub fn mapping_at(&self, address: u64) -> Option<&MemoryMapping> {
        mapping_at(self.mappings.known()?, address)
    }

    /// An address as mapping and offset; `""` if no mapping contains it. In a file of a program the
    /// offset is that of the loaded file, as `nm` and `addr2line` print it.
    pub fn place(&self, address: u64) -> String {
        let Some(mapping) = self.mapping_at(address) else { return String::new() };
        match self.file_of(mapping) {
            Some(file) => format!("{}+{:#x}", file.name, address - file.start.saturating_sub(file.offset)),
            None => format!("{}+{:#x}", self.words_for(mapping), address - mapping.start),
        }
    }

    /// Description of a mapping for a sentence.
    pub fn words_for(&self, mapping: &MemoryMapping) -> String {
        let has = |at: u64| mapping.start <= at && at < mapping.end;
        let sleeps =
            |thread: &&ProgramThread| thread.waits.known().and_then(|waits| waits.stack).is_some_and(has);
        match (self.file_of(mapping), self.threads.iter().find(sleeps)) {
            _ if !mapping.name.is_empty() => mapping.name.clone(),
            (Some(file), _) => format!("data of {}", file.name),
            (None, Some(thread)) => format!("stack of {} ({})", thread.comm, thread.tid),
            (None, None) if self.is_arena(mapping) => format!("malloc arena at {:#x}", mapping.start),
            (None, None) => format!("anonymous memory at {:#x}", mapping.start),
        }
    }

    /// True for an arena that glibc's malloc gives a thread: aligned to 64 MiB, the rest of which
    /// is reserved behind it (HEAP_MAX_SIZE of malloc/arena.c; half of that on 32-bit machines).
    fn is_arena(&self, mapping: &MemoryMapping) -> bool {
        const SIZE: u64 = 64 << 20;
        let rest = self.mappings.known().and_then(|all| mapping_at(all, mapping.end));
        let reserved =
            rest.is_some_and(|rest| !rest.access.contains(&true) && rest.end == mapping.start + SIZE);
        mapping.start % SIZE == 0 && reserved
    }

    /// First mapping of the file that a mapping belongs to.
    fn file_of(&self, mapping: &MemoryMapping) -> Option<&MemoryMapping> {
        mappings::file_of(self.mappings.known()?, mapping)
    }
}
