//! Kinds of slices: a short description of each, and its colour in every picture.
//!
//! There are more kinds than distinguishable colours. Kinds of a family share one and differ in its
//! strength; families whose colours are alike to many men (deuteranopia) or on grey paper have a
//! hatch over it.

use maud::{Markup, html};

use crate::plot::theme::{PAGE, Theme};

/// Kind of time that no event accounts for.
pub const UNEXPLAINED: &str = model::slice::SliceKind::Unexplained.name();

/// Kind of a stop from outside: grey, for nothing ran, with a hatch that sets it apart.
pub const STOPPED: &str = model::slice::SliceKind::Stopped.name();

/// Name and look of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KindStyle {
    /// Value in `run.json`.
    pub name: &'static str,
    /// Description in a few words.
    pub words: &'static str,
    /// Index of the theme's line with its colour.
    colour: usize,
    /// Strength of the colour, 0 to 1.
    pub strength: f64,
}

/// Colours of the families: another thread, hard interrupts, the path itself, other CPUs, power,
/// softirqs, waiting for another thread, contexts that keep the CPU from reacting.
const ALL: &[KindStyle] = &[
    kind("irqs-off", "interrupts were off", 7, 1.0),
    kind("preempt-off", "a thread could not be preempted", 7, 0.5),
    kind("irq", "a device's interrupt", 1, 1.0),
    kind("timer-irq", "the timer interrupt", 1, 0.6),
    kind("nmi", "a non-maskable interrupt", 1, 0.3),
    kind("softirq", "a soft interrupt", 5, 1.0),
    kind("timer-softirq", "the timer's soft interrupt", 5, 0.5),
    kind("ipi", "an interrupt from another CPU", 3, 1.0),
    kind("stop-machine", "all CPUs were stopped", 3, 0.5),
    kind("thread", "another thread ran", 0, 1.0),
    kind("fair-server", "the fair server ran ordinary threads", 0, 0.65),
    kind("throttled", "real-time throttling", 0, 0.4),
    kind("workqueue", "a work item", 0, 0.25),
    kind("lock-contention", "waited for a lock", 6, 0.8),
    kind("priority-inversion", "waited for a lower thread", 6, 0.5),
    kind("page-fault", "a page fault", 6, 0.25),
    kind("idle-exit", "the CPU left idle", 4, 1.0),
    kind("frequency", "the clock frequency changed", 4, 0.5),
    kind("switch", "the switch to the thread", 2, 0.25),
    kind("return-to-user", "the return to user space", 2, 0.5),
    kind("own", "the followed thread ran itself", 2, 1.0),
    kind("preempted", "another thread took the CPU from the followed one", 0, 0.85),
    kind("blocked", "slept before its cycle was done", 6, 1.0),
    kind("syscall", "in a system call", 2, 0.75),
    kind(STOPPED, "stopped from outside", 6, 1.0),
    kind(UNEXPLAINED, "no event accounts for it", 6, 0.12),
];

const fn kind(name: &'static str, words: &'static str, colour: usize, strength: f64) -> KindStyle {
    KindStyle { name, words, colour, strength }
}

/// Kind of a name; an unknown one looks like unexplained time.
pub fn of(name: &str) -> KindStyle {
    ALL.iter().copied().find(|kind| kind.name == name).unwrap_or(ALL[ALL.len() - 1])
}

/// Position of a kind in legends.
pub fn order(name: &str) -> usize {
    ALL.iter().position(|kind| kind.name == name).unwrap_or(ALL.len())
}

/// Hatch over a colour of the theme's lines, as the fill of a second rectangle.
fn hatch_of(colour: usize) -> Option<&'static str> {
    match colour {
        4 => Some("url(#hatch-rows)"),
        5 => Some("url(#hatch-up)"),
        7 => Some("url(#hatch-back)"),
        _ => None,
    }
}

/// Definitions of the hatches, once per page.
pub fn hatches() -> Markup {
    let lines = [("hatch-up", "45"), ("hatch-back", "-45"), ("hatch-rows", "90"), ("hatch-columns", "0")];
    html! {
        svg class="defs" width="0" height="0" aria-hidden="true" {
            defs { @for (id, turn) in lines {
                pattern id=(id) width="5" height="5" patternUnits="userSpaceOnUse"
                    patternTransform={ "rotate(" (turn) ")" } {
                    path d="M1 0V5" stroke=(PAGE.background) stroke-width="1.3" {}
                }
            } }
        }
    }
}

impl KindStyle {
    /// Hatch over its colour.
    pub fn hatch(&self) -> Option<&'static str> {
        match self.name {
            UNEXPLAINED => None,
            STOPPED => Some("url(#hatch-columns)"),
            _ => hatch_of(self.colour),
        }
    }

    pub fn colour(&self, theme: &Theme) -> &'static str {
        if [UNEXPLAINED, STOPPED].contains(&self.name) { theme.muted } else { theme.lines[self.colour] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::theme::{NIGHT, PAPER};
    use model::slice::SliceKind;

    #[test]
    fn every_kind_of_slices_is_known_by_its_name() {
        for slice in [
            SliceKind::IrqsOff,
            SliceKind::TimerSoftirq,
            SliceKind::StopMachine,
            SliceKind::ReturnToUser,
            SliceKind::Unexplained,
        ] {
            assert_eq!(of(slice.name()).name, slice.name());
        }
        assert_eq!(ALL.len(), SliceKind::Unexplained as usize + 1);
        assert_eq!(of("novel").name, UNEXPLAINED);
    }

    /// Lightness and the two axes of colour (CIELAB) that an eye without green cones sees (Machado,
    /// Oliveira and Fernandes 2009, severity 1).
    fn seen(colour: &str) -> [f64; 3] {
        let linear = |i: usize| {
            let c = f64::from(u8::from_str_radix(&colour[i..i + 2], 16).unwrap()) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        let of = |row: [f64; 3]| row[0] * linear(1) + row[1] * linear(3) + row[2] * linear(5);
        let [r, g, b] = [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]].map(of);
        let f = |t: f64| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        let x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
        let y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
        let z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn families_differ_without_green_cones_by_colour_or_by_hatch() {
        for theme in [&PAPER, &NIGHT] {
            for (at, one) in ALL.iter().enumerate() {
                for other in ALL[at + 1..].iter().filter(|other| other.colour != one.colour) {
                    let (a, b) = (seen(theme.lines[one.colour]), seen(theme.lines[other.colour]));
                    let far = (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt();
                    let hatched = hatch_of(one.colour) != hatch_of(other.colour);
                    assert!(far > 15.0 || hatched, "{} {} {far:.1}", one.name, other.name);
                }
            }
        }
    }

    #[test]
    fn no_two_kinds_look_the_same() {
        for (at, one) in ALL.iter().enumerate() {
            for other in &ALL[at + 1..] {
                let same = one.colour(&PAPER) == other.colour(&PAPER) && one.hatch() == other.hatch();
                let alike = same && (one.strength - other.strength).abs() < 0.1;
                assert!(!alike, "{one:?} {other:?}");
            }
        }
    }
}
