//! Names for the stacks of the worst wake-ups in little memory: the needed entries are extracted
//! from the kernel's list as it is read, and kept for the next interval.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use host::KernelList;
use host::kernel_text::KernelText;
use trace::naming::Naming;
use trace::symbols::{READ_LIMIT, Symbols};
use trace::symbols_near::SymbolsNear;

use trace::names::{Names, ReadCode};

/// Maximum number of known addresses; beyond it, all are looked up anew, as modules may be gone.
const MAX_KNOWN: usize = 4096;

/// Prefixes of the kernel's system call functions (include/linux/syscalls.h,
/// arch/*/include/asm/syscall_wrapper.h).
const SYSTEM_CALLS: [&str; 8] = [
    "__x64_sys_",
    "__ia32_sys_",
    "__ia32_compat_sys_",
    "__arm64_sys_",
    "__arm64_compat_sys_",
    "__riscv_sys_",
    "__se_sys_",
    "__do_sys_",
];

/// Files that names come from, opened while that is permitted.
pub struct StackNames {
    list: Option<KernelList>,
    text: Option<Arc<KernelText>>,
    machine: String,
    known: BTreeSet<u64>,
    /// Known functions, each up to the start of the next.
    spans: Vec<Range<u64>>,
    names: Option<Names>,
}

impl StackNames {
    /// Opens the files; returns remarks on missing ones.
    pub fn open() -> (StackNames, Vec<String>) {
        let mut missing = Vec::new();
        let list = KernelList::open()
            .map_err(|error| missing.push(format!("stacks have no names: /proc/kallsyms: {error}")))
            .ok();
        let text = KernelText::open().map_err(|error| {
            missing.push(format!(
                "stacks show function names without the line that re-enabled interrupts: /proc/kcore: {error}"
            ));
        });
        let names = StackNames {
            list,
            text: text.ok().map(Arc::new),
            machine: host::machine(),
            known: BTreeSet::new(),
            spans: Vec::new(),
            names: None,
        };
        (names, missing)
    }

    /// Names for watches without stacks.
    pub fn none() -> StackNames {
        let (list, text, machine) = (None, None, host::machine());
        StackNames { list, text, machine, known: BTreeSet::new(), spans: Vec::new(), names: None }
    }

    /// Prepares names for these addresses; false if the list cannot be read or hides them.
    pub fn learn(&mut self, addresses: impl IntoIterator<Item = u64>) -> bool {
        // A return address may be the first of the next function.
        let wanted: BTreeSet<u64> = addresses.into_iter().flat_map(|at| [at, at.saturating_sub(1)]).collect();
        // Stacks differ in addresses far more often than in functions.
        let is_named = |at: &u64| {
            let after = self.spans.partition_point(|span| span.start <= *at);
            let of = after.checked_sub(1).and_then(|last| self.spans.get(last));
            self.known.contains(at) || of.is_some_and(|span| span.contains(at))
        };
        let unnamed: BTreeSet<u64> = wanted.iter().copied().filter(|at| !is_named(at)).collect();
        if self.names.is_some() && unnamed.is_empty() {
            return true;
        }
        let Some(list) = &mut self.list else { return false };
        if self.known.len() + unnamed.len() > MAX_KNOWN {
            self.known = wanted;
        } else {
            self.known.extend(unnamed);
        }
        let mut near = SymbolsNear::new(self.known.iter().copied());
        let found = list.read(READ_LIMIT, |piece| near.take(piece)).ok().and_then(|()| near.symbols().ok());
        let (symbols, spans) = found.unzip();
        self.spans = spans.unwrap_or_default();
        self.names = symbols.map(|symbols| self.names_of(symbols));
        self.names.is_some()
    }

    fn names_of(&self, symbols: Symbols) -> Names {
        let read = self
            .text
            .clone()
            .map(|text| -> ReadCode { Box::new(move |at, into: &mut [u8]| text.read(at, into).is_ok()) });
        Names::new(Some(symbols), "", &self.machine, read)
    }

    /// Functions of a stack, innermost first, without those of the recording; and the index of the
    /// one that an interrupt stopped as interrupts were re-enabled.
    pub fn stack(&mut self, frames: Vec<u64>) -> (Vec<String>, Option<usize>) {
        let Some(names) = &mut self.names else { return (Vec::new(), None) };
        let (names, enables) = names.stack(frames);
        let recording =
            names.iter().take(RECORDING).rposition(|name| is_of_recording(name)).map_or(0, |at| at + 1);
        (names[recording..].to_vec(), enables.and_then(|at| at.checked_sub(recording)))
    }
}

/// Number of innermost frames that may belong to the recording.
const RECORDING: usize = 8;

/// True if a function is on the path from an event to a program (kernel/trace/bpf_trace.c,
/// include/trace/bpf_probe.h, include/trace/perf.h).
fn is_of_recording(name: &str) -> bool {
    ["bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_", "perf_trace_", "bpf_trampoline_"]
        .iter()
        .any(|start| name.starts_with(start))
        || matches!(name, "trace_call_bpf" | "perf_trace_run_bpf_submit" | "perf_call_bpf_enter")
}

/// Innermost system call in which a thread sleeps, by its stack.
pub fn system_call(stack: &[String]) -> Option<&str> {
    stack.iter().find_map(|name| SYSTEM_CALLS.iter().find_map(|start| name.strip_prefix(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_is_named_as_programs_know_it() {
        let stack = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let sleeping =
            stack("schedule do_nanosleep hrtimer_nanosleep __x64_sys_clock_nanosleep do_syscall_64");
        assert_eq!(system_call(&sleeping), Some("clock_nanosleep"));
        assert_eq!(system_call(&stack("schedule worker_thread kthread")), None);
    }

    #[test]
    fn frames_of_the_recording_are_known() {
        for name in [
            "bpf_prog_6deef7357e7b4530_onbeat_switch",
            "__traceiter_sched_switch",
            "bpf_trace_run4",
            "trace_call_bpf",
        ] {
            assert!(is_of_recording(name), "{name}");
        }
        assert!(!is_of_recording("__schedule"));
    }
}
