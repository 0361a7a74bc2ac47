//! Sentence at the top if most of a hunt's lost time is outside Linux: stopped from outside, or
//! without an event in a virtual machine.

use super::parts::{share, total, unexplained};
use super::sentences;
use model::run::Run;
use model::units::Nanos;

/// Cause of most of the lost time, if outside Linux.
enum Outside {
    /// The hypervisor stopped the machine.
    Hypervisor,
    /// Firmware or hardware on metal; any of these or a hypervisor if that is not known.
    Below(&'static str),
    /// No event inside a virtual machine.
    NoEvent,
}

/// Sentence; `None` if most of the time is accounted for, or nothing is known of the rest.
pub fn sentence(run: &Run) -> Option<String> {
    let (share, outside) = most(run)?;
    let most = format!("Most of the lost time ({share})");
    Some(match outside {
        Outside::Hypervisor => format!(
            "{most} was stopped from outside: the hypervisor did not run this virtual machine, which no \
             setting inside it can cure."
        ),
        Outside::Below(by) => format!(
            "{most} was stopped from outside: {by} stopped all CPUs at once, which no Linux setting can cure."
        ),
        Outside::NoEvent => format!(
            "{most} has no event inside this virtual machine, as when the hypervisor does not run it: check the host first, because no setting inside can cure that."
        ),
    })
}

/// Short form of the sentence for the last lines.
pub fn brief(run: &Run) -> Option<String> {
    let (share, outside) = most(run)?;
    Some(match outside {
        Outside::Hypervisor => {
            format!(
                "{share} of it was stopped from outside by the hypervisor, which no setting inside can cure"
            )
        }
        Outside::Below(by) => format!("{share} of it was stopped from outside by {by}"),
        Outside::NoEvent => {
            format!("{share} of it has no event in this virtual machine: check the host first")
        }
    })
}

fn most(run: &Run) -> Option<(String, Outside)> {
    let sum = |ns: &dyn Fn(&model::run::Spike) -> i64| {
        Nanos(run.spikes.iter().fold(0i64, |sum, spike| sum.saturating_add(ns(spike).max(0))))
    };
    let latency = sum(&|spike| spike.latency_ns.0);
    let outage = sum(&|spike| spike.stopped_ns.0);
    let (stopped, unknown) = (share(outage, latency), share(unexplained(run), total(run)));
    let metal = run.host.virtualization == "none";
    let guest = !metal && !run.host.virtualization.is_empty();
    let by = if metal { "firmware (SMI) or hardware" } else { "firmware, hardware or a hypervisor" };
    let (share, outside) = if stopped > 0.5 {
        (stopped, if guest { Outside::Hypervisor } else { Outside::Below(by) })
    } else if unknown > 0.5 && guest {
        (unknown, Outside::NoEvent)
    } else {
        return None;
    };
    Some((sentences::percent(share.min(1.0)), outside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::{fixture, text};

    fn run(virtualization: &str, stopped: i64, unexplained: i64) -> Run {
        let mut run = fixture::run();
        run.host.virtualization = virtualization.to_owned();
        run.spikes.iter_mut().for_each(|spike| {
            (spike.latency_ns, spike.stopped_ns) = (Nanos(100), Nanos(stopped));
            spike.unexplained_ns = Nanos(unexplained);
            spike.unexplained_why = "it cannot be told: x".to_owned();
        });
        let account = run.recorder.as_mut().unwrap();
        (account.latency_ns, account.unexplained_ns) = (Nanos(1_000), Nanos(10 * unexplained));
        run
    }

    #[test]
    fn the_largest_share_comes_first() {
        let of = |host: &str, stopped: i64, ns: i64| sentence(&run(host, stopped, ns)).unwrap_or_default();
        assert_eq!(
            of("kvm", 78, 5),
            "Most of the lost time (78 %) was stopped from outside: the hypervisor did not run this virtual machine, which no setting inside it can cure."
        );
        assert!(of("kvm", 0, 78).contains("78 %) has no event inside this virtual machine"));
        assert!(of("none", 78, 0).contains("SMI"));
        for (host, stopped, ns) in [("kvm", 50, 50), ("none", 0, 78), ("", 0, 78)] {
            assert_eq!(of(host, stopped, ns), "", "{host} {stopped}");
        }
        assert_eq!(sentence(&Run::default()), None);
    }

    #[test]
    fn it_is_the_first_line_of_text_and_page() {
        let run = run("kvm", 78, 12);
        let sentence = sentence(&run).unwrap();
        assert!(text::render(&run, 200, false).starts_with(&sentence));
        let sample = crate::fixture::quiet();
        let page = crate::run::page::html(&[crate::input::Input { run: &run, ..sample.input() }]).unwrap();
        assert!(page.find(&sentence).unwrap() < page.find("class=\"lead\"").unwrap());
        let sample = crate::fixture::quiet();
        let input = crate::Input { run: &run, ..sample.input() };
        let section = crate::hunt::section::section(&input).into_string();
        assert_eq!(
            section.matches("<p>Reason why it is unexplained: it cannot be told: x.").count(),
            8,
            "{section}"
        );
        assert!(text::render(&run, 200, false).contains("   unexplained: it cannot be told: x"));
    }
}
