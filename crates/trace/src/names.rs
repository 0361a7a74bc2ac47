//! Names of a kernel for stored events, which contain no addresses.

use std::collections::HashMap;

use model::sort::CompactSort;

use super::event::Address;
use super::irq_enable_site::{self, Code};
use super::kernel_functions;
use super::naming::Naming;
use super::symbols::{self, Symbols};
use super::timer_arrivals::TimerArrivals;

/// Limit of cached names; a kernel calls some thousands of functions.
const MAX_CACHED: usize = 1 << 16;

/// Limit of numbered objects in a window; further ones share the number 0.
const MAX_OBJECTS: usize = 1 << 16;

/// Longest code decoded from the start of a function, in bytes.
const MAX_DECODED_BYTES: u64 = 32 << 10;

/// Reader of the kernel's code at an address; returns false if it cannot be read.
pub type ReadCode = Box<dyn Fn(Address, &mut [u8]) -> bool + Send>;

/// Names of addresses, and detection of code that re-enables interrupts.
pub struct Names {
    symbols: Option<Symbols>,
    /// Strings that events point to, sorted by address.
    formats: Vec<(Address, String)>,
    code: Code,
    read: Option<ReadCode>,
    /// Substitute if the code cannot be read.
    arrivals: TimerArrivals,
    cache: HashMap<Address, String>,
    /// Frame that had just re-enabled interrupts, by address and caller: 0 for the address itself,
    /// 1 for the caller.
    verdicts: HashMap<(Address, Address), Option<usize>>,
    objects: HashMap<u64, u64>,
}

impl Names {
    /// Creates names from the data of a kernel; `machine` as by `uname -m`.
    pub fn new(
        symbols: Option<Symbols>,
        printk_formats: &str,
        machine: &str,
        read: Option<ReadCode>,
    ) -> Names {
        Names {
            symbols,
            formats: symbols::printk_formats(printk_formats),
            code: Code::of(machine),
            read,
            arrivals: TimerArrivals::default(),
            cache: HashMap::new(),
            verdicts: HashMap::new(),
            objects: HashMap::new(),
        }
    }

    /// Names of a trace without addresses, in which made addresses stand for the names.
    pub fn of_table(mut table: Vec<(Address, String)>) -> Names {
        table.compact_sort();
        Names { formats: table, ..Names::new(None, "", "", None) }
    }

    /// Sets the arrivals of the timer's interrupts, which are used if the code cannot be read.
    pub fn set_arrivals(&mut self, arrivals: TimerArrivals) {
        self.arrivals = arrivals;
    }

    /// Address that an interrupt stopped, in a stack taken in its handler.
    pub fn interrupted(&mut self, frames: &[Address]) -> Option<Address> {
        let names: Vec<String> = frames.iter().map(|&at| self.name(at.saturating_sub(1))).collect();
        let list: Vec<&str> = names.iter().map(String::as_str).collect();
        irq_enable_site::interrupted(&list).map(|at| frames[at])
    }

    /// Starts a window, in which objects are numbered anew from 1.
    pub fn next_window(&mut self) {
        self.objects.clear();
    }

    /// Functions of the kernel, if known.
    pub fn symbols(&self) -> Option<&Symbols> {
        self.symbols.as_ref()
    }

    fn name(&mut self, address: Address) -> String {
        if let Some(name) = self.cache.get(&address) {
            return name.clone();
        }
        let place = self.symbols.as_ref().and_then(|symbols| symbols.name_of(address));
        let format = || self.formats.binary_search_by_key(&address, |entry| entry.0).ok();
        let name = match place {
            Some(place) if place.module.is_empty() => place.function.to_owned(),
            Some(place) => format!("{} [{}]", place.function, place.module),
            None => format().map(|at| self.formats[at].1.clone()).unwrap_or_default(),
        };
        if self.cache.len() >= MAX_CACHED {
            self.cache.clear();
        }
        self.cache.insert(address, name.clone());
        name
    }

    /// Index of the frame that had just re-enabled interrupts, from the interrupted one outwards:
    /// an interrupt that was pending together with the timer's, and was taken first, lets the
    /// timer's in on its exit.
    fn enabling(&mut self, frames: &[Address], names: &mut [String], at: usize) -> Option<usize> {
        let mut at = at;
        loop {
            // For an interrupted frame the address is that of the next instruction.
            names[at] = self.name(frames[at]);
            let caller = frames.get(at + 1).copied().unwrap_or(0);
            let found = at + self.judge(frames[at], caller, &names[at])?;
            let list: Vec<&str> = names.iter().map(String::as_str).collect();
            let below = irq_enable_site::outward(&list, found)?;
            if below == found {
                return Some(found);
            }
            at = below;
        }
    }

    /// Frame that had just re-enabled interrupts: 0 for the one at `at`, 1 for its caller.
    fn judge(&mut self, at: Address, caller: Address, name: &str) -> Option<usize> {
        let key = (at, caller);
        if let Some(&known) = self.verdicts.get(&key) {
            return known;
        }
        let verdict = if kernel_functions::is_idle_function(name) {
            None
        } else if kernel_functions::enables_irqs_at_end(name) {
            Some(0)
        } else {
            match (self.code_up_to(at), self.code_up_to(caller)) {
                // At the first instruction of a function its caller may have just re-enabled
                // interrupts.
                (Some(code), Some(calling)) if code.is_empty() => {
                    self.code.enables_and_calls(&calling).then_some(1)
                }
                (Some(code), _) => self.code.enables(&code).then_some(0),
                (None, _) => (kernel_functions::enables_irqs(name) || self.arrivals.lets_in(at)).then_some(0),
            }
        };
        if self.verdicts.len() >= MAX_CACHED {
            self.verdicts.clear();
        }
        self.verdicts.insert(key, verdict);
        verdict
    }

    /// Code of a function from its start to an address.
    fn code_up_to(&self, address: Address) -> Option<Vec<u8>> {
        let read = self.read.as_ref()?;
        let place = self.symbols.as_ref()?.name_of(address)?;
        if place.offset > MAX_DECODED_BYTES {
            return None;
        }
        let mut code = vec![0; place.offset as usize];
        (code.is_empty() || read(address - place.offset, &mut code)).then_some(code)
    }
}

impl Naming<Address, String> for Names {
    fn function(&mut self, place: Address) -> String {
        self.name(place)
    }

    fn object(&mut self, address: u64) -> u64 {
        let next = self.objects.len() as u64 + 1;
        match self.objects.get(&address) {
            Some(&number) => number,
            None if address == 0 || self.objects.len() >= MAX_OBJECTS => 0,
            None => {
                self.objects.insert(address, next);
                next
            }
        }
    }

    fn stack(&mut self, frames: Vec<Address>) -> (Vec<String>, Option<usize>) {
        // Frames are return addresses: the byte before one belongs to the call, and so to the
        // calling function.
        let mut names: Vec<String> = frames.iter().map(|&at| self.name(at.saturating_sub(1))).collect();
        let functions: Vec<&str> = names.iter().map(String::as_str).collect();
        let Some(at) = irq_enable_site::interrupted(&functions) else { return (names, None) };
        let enables = self.enabling(&frames, &mut names, at);
        (names, enables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, Raw, Vector, What};
    use model::units::{Cpu, Nanos};

    const LIST: &[u8] = b"ffffffff81000000 T hrtimer_interrupt
ffffffff81000100 T asm_sysvec_apic_timer_interrupt
ffffffff81000200 t _raw_spin_unlock_irqrestore
ffffffff81000300 t do_it.isra.0
ffffffff81000400 t finish_task_switch.isra.0
ffffffff81000500 t noreturn
ffffffff81000600 T default_idle
ffffffff81000700 t last
ffffffff81000800 T preempt_schedule_irq
ffffffff81000900 T asm_sysvec_reschedule_ipi
ffffffff81000a00 T handle_softirqs
ffffffffc0000000 t driver_poll\t[driver]
";
    const TIMER: [u64; 2] = [0xffff_ffff_8100_0010, 0xffff_ffff_8100_0110];

    fn names(code: bool) -> Names {
        // do_it: nop, sti, nop, call.
        let read: ReadCode = Box::new(|at, into| {
            let code = [0x90, 0xfb, 0x90, 0xe8, 0, 0, 0, 0, 0xfb, 0xe8, 0, 0, 0, 0];
            let from = (at & 0xff) as usize;
            into.iter_mut().enumerate().for_each(|(n, b)| *b = *code.get(from + n).unwrap_or(&0x90));
            true
        });
        let formats = "0xffffffff82000010 : \"Rescheduling interrupts\"\n";
        Names::new(Symbols::parse(LIST).ok(), formats, "x86_64", code.then_some(read))
    }

    fn enables(code: bool, interrupted: u64, caller: u64) -> Option<usize> {
        names(code).stack(vec![TIMER[0], TIMER[1], interrupted, caller]).1
    }

    #[test]
    fn addresses_get_names_or_none() {
        let mut names = names(false);
        assert_eq!(names.function(0xffff_ffff_8100_0310), "do_it");
        assert_eq!(names.function(0xffff_ffff_c000_0001), "driver_poll [driver]");
        assert_eq!(names.function(0xffff_ffff_8200_0010), "Rescheduling interrupts");
        assert_eq!(names.function(0), "");
        assert_eq!(names.function(0x1234), "");
    }

    #[test]
    fn objects_have_small_numbers_within_a_window() {
        let mut names = names(false);
        assert_eq!([7, 9, 7, 0].map(|at| names.object(at)), [1, 2, 1, 0]);
        names.next_window();
        assert_eq!(names.object(9), 1);
    }

    #[test]
    fn a_return_address_belongs_to_the_call_before_it() {
        let frames = vec![0xffff_ffff_8100_0600, TIMER[1], 0xffff_ffff_8100_0600];
        assert_eq!(
            names(false).stack(frames).0,
            ["noreturn", "asm_sysvec_apic_timer_interrupt", "default_idle"]
        );
    }

    #[test]
    fn interrupts_are_enabled_where_the_code_does_it() {
        let (caller, do_it) = (0xffff_ffff_8100_0710, 0xffff_ffff_8100_0300);
        assert_eq!(enables(true, do_it + 3, caller), Some(2));
        assert_eq!(enables(true, do_it + 2, caller), None);
        assert_eq!(enables(true, do_it + 8, caller), None);
        assert_eq!(enables(false, do_it + 3, caller), None);
        // Called between sti and its effect.
        assert_eq!(enables(true, do_it, 0xffff_ffff_8100_070e), Some(3));
        assert_eq!(enables(true, do_it, 0xffff_ffff_8100_0708), None);
        // No code before the address that could have enabled interrupts.
        assert_eq!(enables(true, 0xffff_ffff_8100_0600, caller), None);
    }

    #[test]
    fn who_kept_two_interrupts_waiting_is_below_the_first() {
        let stack = |code, way: u64, interrupted: u64| {
            let ipi = 0xffff_ffff_8100_0910;
            names(code).stack(vec![TIMER[0], TIMER[1], way, ipi, interrupted, 0xffff_ffff_8100_0710]).1
        };
        let (way, do_it) = (0xffff_ffff_8100_0800, 0xffff_ffff_8100_0300);
        assert_eq!(stack(true, way + 3, do_it + 3), Some(4));
        assert_eq!(stack(true, way + 3, do_it + 2), None, "it had interrupts on");
        assert_eq!(stack(true, way + 2, do_it + 3), None, "the timer did not wait");
        assert_eq!(stack(true, 0xffff_ffff_8100_0a03, do_it + 3), Some(4));
        assert_eq!(stack(false, way + 2, 0xffff_ffff_8100_0210), Some(4));
        assert_eq!(stack(false, way + 2, do_it + 3), None);
        // None without an interrupt below.
        assert_eq!(names(true).stack(vec![TIMER[0], TIMER[1], way + 3, do_it + 3]).1, None);
    }

    #[test]
    fn names_decide_where_no_code_is_readable() {
        let caller = 0xffff_ffff_8100_0710;
        assert_eq!(enables(false, 0xffff_ffff_8100_0210, caller), Some(2));
        assert_eq!(enables(true, 0xffff_ffff_8100_0210, caller), Some(2));
        assert_eq!(enables(false, 0xffff_ffff_8100_0410, caller), Some(2));
        assert_eq!(enables(true, 0xffff_ffff_8100_0410, caller), None);
        // Late interrupts at one instruction decide as well.
        let (mut names_alone, mut late, do_it) =
            (names(false), TimerArrivals::default(), 0xffff_ffff_8100_0303);
        let frames = vec![TIMER[0], TIMER[1], do_it, caller];
        for time in 0..3 {
            let event =
                |what| Raw { time: Nanos(time), cpu: Cpu(1), pid: 9, context: Context(8), preempt: 0, what };
            let expiry = What::TimerEntry { timer: 1, function: 1, now: Nanos(time) };
            let stack = What::Stack { frames: frames.clone(), enables: None };
            for what in [expiry, stack, What::VectorExit { vector: Vector::LocalTimer }] {
                late.observe(&event(what), |frames| names_alone.interrupted(frames), |_| true);
            }
        }
        names_alone.set_arrivals(late);
        assert_eq!(names_alone.stack(frames).1, Some(2));
        assert_eq!(names(true).stack(vec![TIMER[0], TIMER[1]]).1, None);
    }
}
