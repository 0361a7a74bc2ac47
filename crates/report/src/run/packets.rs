//! Definition and verdict of `probe net`.

use crate::words::{clean, or_dash, percent, several, span};
use model::run::{Packets, Run};
use model::vocabulary::Probe;

/// Definition of the measured quantity.
pub fn definition(run: &Run) -> String {
    format!(
        "net: round trip of a UDP packet, from before the call that sends it to after the one that receives \
         its answer, {}",
        match run.plan.kind.as_str() {
            "veth" => "between two network namespaces of this machine (veth)".into(),
            "loopback" => "over the loopback device of this machine".into(),
            "peer" => "to another machine and back".into(),
            other => clean(other),
        }
    )
}

/// The verdict on lost packets; none for other runs.
pub fn verdict(run: &Run) -> Option<String> {
    if run.probe() != Some(Probe::Net) {
        return None;
    }
    let mut known = run.cpus.iter().filter_map(|cpu| cpu.packets).peekable();
    if known.peek().is_none() {
        return Some("not known: the counts are written at the end".into());
    }
    let of = known.fold(Packets::default(), |sum, of| Packets {
        sent: sum.sent.saturating_add(of.sent),
        lost: sum.lost.saturating_add(of.lost),
        late: sum.late.saturating_add(of.late),
        reordered: sum.reordered.saturating_add(of.reordered),
        duplicates: sum.duplicates.saturating_add(of.duplicates),
        ..sum
    });
    let sent = several(of.sent, "packet", "packets");
    Some(if of.sent == 0 {
        "not known: no packet was sent".into()
    } else if of.lost + of.late + of.reordered + of.duplicates == 0 {
        format!("all of {sent} were answered in time and in order")
    } else {
        format!(
            "of {sent} {} were lost ({}), {} answered too late, {} out of order, {} more than once",
            of.lost,
            percent(of.lost as f64 / of.sent as f64),
            of.late,
            of.reordered,
            of.duplicates
        )
    })
}

/// Lines below the table: the parts of the round trips.
pub fn lines(run: &Run) -> Vec<String> {
    let of = |cpu: &model::run::CpuRun| {
        let packets = cpu.packets?;
        let part = |mean, max| match (mean, max) {
            (Some(mean), Some(max)) => format!("{}, at most {}", span(mean), span(max)),
            _ => or_dash::<u64>(None),
        };
        packets.path_mean_ns?;
        Some(match packets.send_mean_ns {
            // The network card's clock measures the path alone.
            None => format!(
                "{}: from the network card back to it {} (mean, by its time stamps)",
                cpu.name(),
                part(packets.path_mean_ns, packets.path_max_ns)
            ),
            Some(_) => format!(
                "{}: to the driver {}; from there to the receiving stack {}; from there to the thread {} \
                 (means, by the kernel's time stamps)",
                cpu.name(),
                part(packets.send_mean_ns, packets.send_max_ns),
                part(packets.path_mean_ns, packets.path_max_ns),
                part(packets.receive_mean_ns, packets.receive_max_ns)
            ),
        })
    };
    run.cpus.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::CpuRun;
    use model::units::Nanos;

    #[test]
    fn what_was_lost_is_the_verdict() {
        assert_eq!(verdict(&Run::default()), None);
        let mut run = Run { command: "probe".into(), ..Run::default() };
        run.plan.probe = Probe::Net.into();
        assert!(verdict(&run).is_some_and(|words| words.starts_with("not known")));
        let of = |lost| {
            let packets = Packets { sent: 100, answered: 100 - lost, lost, ..Packets::default() };
            CpuRun { packets: Some(packets), ..CpuRun::default() }
        };
        run.cpus = vec![of(0)];
        assert_eq!(verdict(&run).as_deref(), Some("all of 100 packets were answered in time and in order"));
        assert!(lines(&run).is_empty());
        run.cpus.push(of(2));
        let words = verdict(&run).expect("a verdict");
        assert!(
            words.starts_with("of 200 packets 2 were lost (") && words.contains(" 0 answered too late"),
            "{words}"
        );
        let parts = [9_000, 50_000].map(|ns| Some(Nanos(ns)));
        if let Some(packets) = &mut run.cpus[0].packets {
            (packets.send_mean_ns, packets.path_mean_ns, packets.path_max_ns) =
                (parts[0], parts[0], parts[1]);
        }
        assert!(lines(&run)[0].contains("to the receiving stack 9 us, at most 50 us"), "{:?}", lines(&run));
        if let Some(packets) = &mut run.cpus[0].packets {
            packets.send_mean_ns = None;
        }
        assert!(lines(&run)[0].contains("network card back to it 9 us, at most 50 us"), "{:?}", lines(&run));
    }
}
