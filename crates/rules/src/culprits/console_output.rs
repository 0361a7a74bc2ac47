//! A message that is written to a console with interrupts or preemption off.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{PRINTK_C, SERIAL_CONSOLE};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "console-output",
    title: "a message written to a console",
    signature: "A section with interrupts or preemption off, with a function in its stack that writes to a \
                console, often the serial one: a character takes 87 us at 115200 baud.",
    detection: "By exact names of the kernel's console code in the stack. On PREEMPT_RT from 6.12 on, \
                consoles with a thread write in that thread and can be preempted; others write with \
                preemption enabled, but hold the console lock.",
    remedy: "let fewer messages reach the console (kernel.printk, quiet), take the console off the serial \
             line, and see in the log which code printed",
    kinds: &[SliceKind::IrqsOff, SliceKind::PreemptOff, SliceKind::LockContention],
    sources: &[
        Source { title: "kernel: serial consoles", url: SERIAL_CONSOLE },
        Source { title: "kernel: kernel/printk/printk.c", url: PRINTK_C },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["serial-console", "console-loglevel", "printk-devkmsg", "preemption-model"],
    provoke: "echo to /dev/kmsg at level 0 in a loop, with a serial console",
    matches: |context| {
        context.stack_function_in(FUNCTIONS).map(|function| format!("{function} in the stack"))
    },
    examples: SpikeExamples {
        fires: "irqs-off ns=4000000 function=__console_unlock \
                stack=__console_unlock<console_flush_all<console_unlock<vprintk_emit",
        silent: "irqs-off ns=4000000 function=__console_unlock \
                 stack=__console_unlock<console_list_lock",
    },
    ..CulpritRule::DEFAULT
};

/// Functions that write messages to consoles, or wait for one that does.
const FUNCTIONS: &[&str] = &[
    // The first two do not exist in 7.2, which has the third.
    "console_emit_next_record",
    "console_flush_all",
    "console_flush_one_record",
    "console_unlock",
    "nbcon_emit_next_record",
    "nbcon_legacy_emit_next_record",
    // Does not exist in 7.3, like univ8250_console_write.
    "pl011_console_write",
    "serial8250_console_write",
    "univ8250_console_write",
    "vprintk_emit",
    "vt_console_print",
];
