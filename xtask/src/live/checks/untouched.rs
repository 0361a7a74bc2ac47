//! Reading the machine changes no setting, and not the effect of a later write.
//!
//! The second is tested on the lockup detectors, whose files forget the requested value when they
//! are read (before 6.14): the number of their timers that a write arms is compared with the number
//! without a read in between.

use super::super::frames::Reply;
use super::super::judge::{CheckResult, require};
use super::super::machine::Machine;
use super::Check;

const SCRIPT: &str = include_str!("../guest/untouched.sh");
const READERS: [&str; 6] = ["audit", "user", "root", "capture", "bundle", "measure"];
/// Ways in which the detectors are switched: in each landing the first.
const STATES: [&str; 3] = ["both", "each", "on"];
/// Fewer settings are not those of a whole machine.
const SETTINGS: i64 = 500;

pub fn checks(all: bool) -> Vec<Check> {
    let states = if all { &STATES[..] } else { &STATES[..1] };
    let script = format!("states='{}'\n{SCRIPT}", states.join(" "));
    vec![Check::new("untouched", &script, move |reply, machine| untouched(states, reply, machine))]
}

fn untouched(states: &[&str], reply: &Reply, machine: &Machine) -> CheckResult {
    for &state in states {
        let armed = |reader: &str| reply.number(&format!("{state}.{reader}"));
        let wanted = armed("none")?;
        require(wanted > 0, || format!("{state}: no timer is armed where nothing was read"))?;
        for reader in READERS {
            let found = armed(reader)?;
            require(found == wanted, || {
                format!("{state}: after {reader} a write arms the timers of {found} CPUs instead of {wanted}")
            })?;
        }
        if state == "on" {
            continue;
        }
        require(reply.number(&format!("{state}.none.off"))? == 0, || format!("{state}: they were not off"))?;
        // If the kernel forgets, the comparison without that effect would prove nothing.
        let (left, forgotten) = (if machine.is_before_7() { 0 } else { wanted }, armed("forget")?);
        require(forgotten == left, || {
            format!("{state}: after all three are read a write arms {forgotten} timers instead of {left}")
        })?;
    }
    let compared = reply.number("compared")?;
    require(compared >= SETTINGS, || format!("{compared} settings are too few"))?;
    let changed = reply.file("changed")?;
    println!("  {compared} settings compared, {} are noise", reply.number("noise")?);
    require(changed.trim().is_empty(), || {
        format!("changed: {}", changed.lines().take(6).collect::<Vec<_>>().join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::machine::MACHINES;
    use super::*;

    fn reply() -> Reply {
        let mut reply = Reply::default();
        for state in STATES {
            for reader in READERS.iter().chain(&["none"]) {
                reply.values.insert(format!("{state}.{reader}"), "2".into());
            }
            reply.values.insert(format!("{state}.none.off"), "0".into());
            reply.values.insert(format!("{state}.forget"), "0".into());
        }
        reply.values.insert("compared".into(), "1200".into());
        reply.values.insert("noise".into(), "3".into());
        reply.files.insert("changed".into(), Some(String::new()));
        reply
    }

    #[test]
    fn each_effect_is_seen() {
        let judge = |change: &dyn Fn(&mut Reply)| {
            let mut reply = reply();
            change(&mut reply);
            untouched(&STATES, &reply, &MACHINES[0])
        };
        assert_eq!(judge(&|_| {}), Ok(()));
        for (label, value) in [
            ("both.audit", "0"),
            ("each.user", "0"),
            ("on.measure", "1"),
            ("both.none", "0"),
            ("both.forget", "2"),
            ("each.none.off", "2"),
            ("compared", "10"),
        ] {
            let wrong = judge(&|reply| drop(reply.values.insert(label.into(), value.into())));
            assert!(wrong.is_err(), "{label}");
        }
        let newer = MACHINES.iter().find(|machine| !machine.is_before_7()).unwrap();
        assert!(untouched(&STATES, &reply(), newer).is_err());
        let mut kept = reply();
        kept.values.extend(["both.forget", "each.forget"].map(|label| (label.to_string(), "2".to_string())));
        assert_eq!(untouched(&STATES, &kept, newer), Ok(()));
        let changed = "> /proc/sys/kernel/printk:4\n".to_string();
        assert!(judge(&|reply| drop(reply.files.insert("changed".into(), Some(changed.clone())))).is_err());
    }
}
