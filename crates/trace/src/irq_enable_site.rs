//! Detection of interrupts taken right after the instruction that re-enables interrupts: such an
//! interrupt was pending, delayed by that function. For any other place, or user mode, that is
//! unknown.
//!
//! Sources: local_irq_enable and local_irq_restore in arch/x86/include/asm/irqflags.h and
//! arch/arm64/include/asm/irqflags.h; Intel's manual on STI, Arm's on DAIF (DDI 0487); entry_64.S
//! and entry.S.

use super::kernel_functions::is_entry;
use super::x86;

/// Architecture of the code to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    X86,
    Arm,
    /// Any other architecture: only function names are used.
    Unknown,
}

impl Code {
    /// Architecture by `uname -m`.
    pub fn of(machine: &str) -> Code {
        match machine {
            "x86_64" => Code::X86,
            "aarch64" => Code::Arm,
            _ => Code::Unknown,
        }
    }

    /// True if the last of these instructions enabled interrupts: the code of a function from its
    /// start up to the interrupted address. False for code that cannot be decoded.
    pub fn enables(self, code: &[u8]) -> bool {
        match self {
            Code::X86 => x86::last_two(code).is_some_and(|(before, last)| {
                // POPF takes effect immediately; STI after one more instruction, unless that waits
                // or branches. An interrupt between the two means that interrupts were on before.
                last == POPF || (before == STI && !waits(last) && !leads_away(last))
            }),
            Code::Arm => arm_enables(code),
            Code::Unknown => false,
        }
    }

    /// True if the last of these instructions is a call, and the one before it enabled interrupts:
    /// they arrive at the first instruction of the callee. The code is that of the calling function
    /// up to the return address.
    pub fn enables_and_calls(self, code: &[u8]) -> bool {
        let calls = |last: &[u8]| last.first() == Some(&0xe8);
        self == Code::X86 && x86::last_two(code).is_some_and(|(before, last)| before == STI && calls(last))
    }
}

const STI: &[u8] = &[0xfb];
const POPF: &[u8] = &[0x9d];

/// True for HLT, MWAIT and MWAITX after STI, by which a CPU idles: they delay no interrupt.
fn waits(instruction: &[u8]) -> bool {
    matches!(instruction, [0xf4] | [0x0f, 0x01, 0xc9 | 0xfb])
}

/// True for calls, jumps and returns: the instruction after them is not the one that ran next.
fn leads_away(instruction: &[u8]) -> bool {
    let prefix =
        |b: &u8| matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let opcode = instruction.iter().find(|b| !prefix(b));
    match opcode {
        Some(0xc2 | 0xc3 | 0xca..=0xcf | 0xe8..=0xeb) => true,
        Some(0xff) => {
            instruction.iter().skip_while(|b| **b != 0xff).nth(1).is_some_and(|m| matches!(m >> 3 & 7, 2..=5))
        }
        _ => false,
    }
}

/// Limit of barriers and nops between the instruction and the arrival of the interrupt, as in
/// pmr_sync.
const BARRIERS: usize = 2;

fn arm_enables(code: &[u8]) -> bool {
    let words = code.rchunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    // nop, isb, dsb sy.
    let mut words = words
        .enumerate()
        .skip_while(|&(at, word)| at < BARRIERS && matches!(word, 0xd503_201f | 0xd503_3fdf | 0xd503_3f9f));
    words.next().is_some_and(|(_, word)| {
        let clears_i = word & 0xffff_f0ff == 0xd503_40ff && word & 0x200 != 0; // msr daifclr, #imm
        let restores = word & 0xffff_ffe0 == 0xd51b_4220; // msr daif, xN
        let unmasks = word & 0xffff_ffe0 == 0xd518_4600; // msr icc_pmr_el1, xN
        clears_i || restores || unmasks
    })
}

/// Index of the frame that an interrupt stopped, in a stack taken in its handler, innermost first;
/// none in user mode or without an interrupt.
///
/// It is the frame after the entry code that saved the registers. That this is the exact place
/// relies on an unwinder that follows saved registers (ORC and frame pointers on x86, frame records
/// on arm64), as all distributions build it. The guessing one (CONFIG_UNWINDER_GUESS) can put stale
/// frames there.
pub fn interrupted(frames: &[&str]) -> Option<usize> {
    let entry = frames.iter().position(|name| is_entry(name))?;
    let from_user = frames[entry].starts_with("el0") || frames[entry].ends_with("_user");
    (!from_user && frames.get(entry + 1).is_some_and(|name| !name.is_empty())).then_some(entry + 1)
}

/// Index of the frame interrupted first, if frame `at` is on the entry or exit path of an
/// interrupt: that path always lets the next interrupt in, and the code below it kept both waiting,
/// if any did. None if the path leads to user mode, or was that of an exception, a system call or a
/// softirq, which delay no interrupt.
pub fn outward(frames: &[&str], at: usize) -> Option<usize> {
    let mut at = at;
    while passes(frames.get(at)?) {
        let entry = at + frames[at..].iter().position(|name| !passes(name))?;
        let rest = &frames[entry..];
        at = interrupted(rest).filter(|_| is_entry(rest[0])).map(|below| entry + below)?;
    }
    Some(at)
}

/// True for functions on the entry and exit paths of interrupts, exceptions and system calls, which
/// re-enable interrupts as part of the exit (kernel/entry/common.c, arch/x86/mm/fault.c,
/// arch/arm64/kernel/entry-common.c).
fn passes(name: &str) -> bool {
    let starts = [
        "irqentry_",
        "raw_irqentry_",
        "dynamic_irqentry_",
        "exit_to_user_mode",
        "syscall_exit_",
        "syscall_enter_",
        "sysvec_",
        "__sysvec_",
        "exc_",
        "asm_exc_",
        "el0_",
        "el0t_",
        "el1_",
        "__el1_",
        "el1h_64_irq_",
        "el1h_64_sync",
        "do_el0_",
    ];
    let exact = [
        "preempt_schedule_irq",
        "arm64_preempt_schedule_irq",
        "exit_to_kernel_mode",
        "common_interrupt",
        "__common_interrupt",
        "do_user_addr_fault",
        "do_syscall_64",
        "do_notify_resume",
        "handle_softirqs",
        "__do_softirq",
        "irq_exit",
        "irq_exit_rcu",
        "__irq_exit_rcu",
    ];
    // Code that saves the registers for Xen is the entry itself.
    !is_entry(name) && (exact.contains(&name) || starts.iter().any(|start| name.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// _raw_spin_unlock_irq of a kernel with CONFIG_PREEMPTION: movb, sti, decl, je, jmp to the
    /// return thunk.
    const UNLOCK: &[u8] = &[
        0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc6, 0x07, 0x00, 0xfb, 0x65, 0xff, 0x0d, 0xd9,
        0x28, 0xbc, 0x7d, 0x74, 0x05, 0xe9, 1, 2, 3, 4,
    ];

    #[test]
    fn sti_works_after_one_more_instruction() {
        let at: Vec<usize> = (0..=UNLOCK.len()).filter(|&at| Code::X86.enables(&UNLOCK[..at])).collect();
        assert_eq!(at, [20]);
        assert!(Code::X86.enables(&[0xfb, 0x0f, 0x1f, 0x44, 0x00, 0x00]));
        assert!(!Code::X86.enables(&[0xfb, 0x90, 0x90]));
        assert!(Code::X86.enables(&[0x57, 0x9d]));
        assert!(!Code::X86.enables(&[0x9d, 0x90]));
    }

    #[test]
    fn idling_and_what_leads_away_prove_nothing() {
        for last in
            [&[0xf4][..], &[0x0f, 0x01, 0xc9], &[0xc3], &[0xe8, 0, 0, 0, 0], &[0xeb, 1], &[0x41, 0xff, 0xd0]]
        {
            assert!(!Code::X86.enables(&[&[0xfb], last].concat()), "{last:x?}");
        }
        assert!(Code::X86.enables(&[0xfb, 0xff, 0xc0]), "inc is no call");
        assert!(Code::X86.enables_and_calls(&[0xfb, 0xe8, 0, 0, 0, 0]));
        assert!(!Code::X86.enables_and_calls(&[0x90, 0xe8, 0, 0, 0, 0]));
    }

    #[test]
    fn an_operand_is_no_instruction() {
        // mov -5(%rbx),%rax; pop %rbx
        assert!(!Code::X86.enables(&[0x48, 0x8b, 0x43, 0xfb, 0x5b]));
        // mov $0x9d,%al
        assert!(!Code::X86.enables(&[0xb0, 0x9d]));
    }

    #[test]
    fn arm_enables_immediately_or_after_barriers() {
        let code = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let (nop, isb, clear_i, clear_a, set_i) =
            (0xd503_201f, 0xd503_3fdf, 0xd503_42ff, 0xd503_44ff, 0xd503_42df);
        for enabling in [clear_i, 0xd503_43ff, 0xd51b_4220, 0xd51b_4233, 0xd518_4601] {
            assert!(Code::Arm.enables(&code(&[nop, enabling])), "{enabling:x}");
            assert!(Code::Arm.enables(&code(&[enabling, isb, nop])), "{enabling:x}");
            assert!(!Code::Arm.enables(&code(&[enabling, nop, nop, nop])), "{enabling:x}");
            assert!(!Code::Arm.enables(&code(&[enabling, 0x9100_0400])), "{enabling:x}");
        }
        for other in [clear_a, set_i, nop, 0xd53b_4220] {
            assert!(!Code::Arm.enables(&code(&[other])), "{other:x}");
        }
    }

    #[test]
    fn the_interrupted_frame_is_behind_the_entry() {
        let x86 = [
            "hrtimer_interrupt",
            "__sysvec_apic_timer_interrupt",
            "sysvec_apic_timer_interrupt",
            "asm_sysvec_apic_timer_interrupt",
            "_raw_spin_unlock_irqrestore",
            "e1000_watchdog",
            "asm_common_interrupt",
            "memcpy",
        ];
        assert_eq!(interrupted(&x86), Some(4));
        assert_eq!(interrupted(&x86[..4]), None);
        let arm = [
            "hrtimer_interrupt",
            "gic_handle_irq",
            "el1_interrupt",
            "el1h_64_irq_handler",
            "el1h_64_irq",
            "f",
        ];
        assert_eq!(interrupted(&arm), Some(5));
        assert_eq!(interrupted(&["gic_handle_irq", "el0t_64_irq", "stale"]), None);
        assert_eq!(interrupted(&["hrtimer_run_softirq", "handle_softirqs", "kthread"]), None);
        assert_eq!(interrupted(&["asm_common_interrupt", ""]), None);
    }

    #[test]
    fn the_exit_path_of_one_interrupt_did_not_delay_the_next() {
        let out = |frames: &str| {
            let frames: Vec<&str> = frames.split(' ').collect();
            outward(&frames, interrupted(&frames)?).map(|at| frames[at].to_owned())
        };
        let timer = "hrtimer_interrupt sysvec_apic_timer_interrupt asm_sysvec_apic_timer_interrupt";
        let of = |below: &str| out(&format!("{timer} {below}"));
        assert_eq!(of("hold write").as_deref(), Some("hold"));
        let way = "preempt_schedule_irq raw_irqentry_exit_cond_resched irqentry_exit sysvec_reschedule_ipi";
        assert_eq!(of(&format!("{way} asm_sysvec_reschedule_ipi hold write")).as_deref(), Some("hold"));
        let twice = "preempt_schedule_irq asm_sysvec_reschedule_ipi handle_softirqs __irq_exit_rcu asm_common_interrupt hold";
        assert_eq!(of(twice).as_deref(), Some("hold"));
        for nobody in [
            "preempt_schedule_irq asm_sysvec_reschedule_ipi",
            "exit_to_user_mode_loop irqentry_exit_to_user_mode asm_sysvec_reschedule_ipi",
            "do_user_addr_fault exc_page_fault asm_exc_page_fault copy_from_user",
            "handle_softirqs run_ksoftirqd smpboot_thread_fn kthread",
            "do_syscall_64 entry_SYSCALL_64_after_hwframe",
        ] {
            assert_eq!(of(nobody), None, "{nobody}");
        }
        let arm = |below: &str| {
            out(&format!("gic_handle_irq el1_interrupt el1h_64_irq_handler el1h_64_irq {below}"))
        };
        assert_eq!(
            arm("arm64_preempt_schedule_irq el1_interrupt el1h_64_irq_handler el1h_64_irq hold").as_deref(),
            Some("hold")
        );
        assert_eq!(arm("el0_svc el0t_64_sync_handler el0t_64_sync"), None);
    }

    proptest! {
        #[test]
        fn any_code_and_any_stack_is_survived(code in proptest::collection::vec(any::<u8>(), 0..64), names in proptest::collection::vec("(el1h_64_irq|asm_sysvec_a|_raw_spin_unlock_irq|preempt_schedule_irq|f|)", 0..6), at in 0usize..8) {
            for kind in [Code::X86, Code::Arm, Code::Unknown] {
                kind.enables(&code);
                kind.enables_and_calls(&code);
            }
            let frames: Vec<&str> = names.iter().map(String::as_str).collect();
            prop_assert!(interrupted(&frames).is_none_or(|found| found < frames.len()));
            prop_assert!(outward(&frames, at).is_none_or(|found| found < frames.len() && found >= at));
        }
    }
}
