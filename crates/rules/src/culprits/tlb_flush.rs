//! Address translations that all CPUs have to drop.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{TLB, TLB_C};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "tlb-flush",
    title: "a TLB flush requested by another CPU",
    signature: "An interrupt from another CPU that runs a function to flush the TLB; the sender is named if \
                it was recorded.",
    detection: "By the function's exact name, on x86 from 4.15 on, RISC-V and 32-bit Arm. Arm64 flushes with \
                an instruction that interrupts no CPU, and AMD's newest processors may do so too. The name \
                shows whether memory of a process or of the kernel was unmapped: flush_tlb_func is for a \
                process, the others are for the kernel.",
    remedy: "see what the sender does: unmapping or protecting memory in a process whose threads run on this \
             CPU (split the process, or map once and keep the mapping), or, in the kernel, loading modules \
             or BPF programs, or freeing large buffers",
    kinds: &[SliceKind::Ipi],
    sources: &[
        Source { title: "kernel: the TLB", url: TLB },
        Source { title: "kernel: arch/x86/mm/tlb.c", url: TLB_C },
    ],
    evidence: EvidenceKind::Source,
    cured_by: &["transparent-hugepages"],
    provoke: "munmap in a loop in one thread of a process whose other thread spins on the \
              victim's CPU",
    matches: |context| {
        context.function_in(FUNCTIONS).map(|function| super::remote_call::asked(function, context.slice))
    },
    examples: SpikeExamples {
        fires: "ipi ns=30000 function=flush_tlb_func irq=call_function from=0 comm=sender",
        silent: "ipi ns=30000 function=flush_smp_call_function_queue irq=call_function from=0 \
                 comm=sender",
    },
    ..CulpritRule::DEFAULT
};

/// Functions that other CPUs have to run.
const FUNCTIONS: &[&str] = &[
    "__cpa_flush_all",
    "__cpa_flush_tlb",
    "__ipi_flush_tlb_all",
    "__ipi_flush_tlb_range_asid",
    "do_flush_tlb_all",
    "do_kernel_range_flush",
    "flush_tlb_func",
    "flush_tlb_func_remote",
    "ipi_flush_tlb_all",
    "ipi_flush_tlb_kernel_page",
    "ipi_flush_tlb_kernel_range",
    "ipi_flush_tlb_mm",
    "ipi_flush_tlb_page",
    "ipi_flush_tlb_range",
];
