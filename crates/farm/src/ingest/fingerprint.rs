//! Fingerprint of a culprit in all runs and rows: its rule, its kind and its name.
//!
//! It is stored as the name of culprits, so that a change of fingerprints needs a version of the
//! schema that renews them (`store::renewed`).

use model::text::excerpt;
use rules::culprits::find;
use rules::culprits::rule::Grouping;
use sha2::{Digest, Sha256};

use super::environment::hex;

/// Names, without their numbers, of kernel threads that exist per CPU, or several times.
const NUMBERED: [&str; 17] = [
    "backlog_napi",
    "cpuhp",
    "idle_inject",
    "irq_work",
    "ksoftirqd",
    "ktimers",
    "ktimersoftd",
    "migration",
    "posixcputmr",
    "rcub",
    "rcuc",
    "rcuog",
    "rcuop",
    "rcuos",
    "rcun",
    "stopper",
    "watchdog",
];
/// Threads that the kernel names after the process that they are of.
const OF_PROCESS: [&str; 4] = ["iou-sqp-", "iou-wrk-", "kvm-pit/", "vhost-"];

/// A culprit's address: equal for the same cause at each boot and on each CPU, different for each
/// program.
pub fn fingerprint_of(rule: &str, kind: &str, name: &str) -> String {
    let (rule, name) = (excerpt(rule), plain_name(name));
    let own = own_name(&rule, &name);
    hex(&Sha256::digest(format!("{rule}\0{kind}\0{own}"))[..8])
}

/// The name, at most an excerpt, without the numbers that the kernel gives its threads anew.
pub fn plain_name(name: &str) -> String {
    excerpt(name).split(' ').map(plain_word).collect::<Vec<_>>().join(" ")
}

/// Name in hunts of a culprit that a watch names: after its rule's title.
pub fn name_in_hunts(rule: &str, name: &str) -> String {
    use Grouping::{Function, Irq, Thread};
    match find(rule).filter(|rule| matches!(rule.grouping, Function | Thread | Irq)) {
        // The title stands for an unknown name.
        Some(known) if name != known.title => format!("{}: {name}", known.title),
        _ => name.to_owned(),
    }
}

/// Part of a name that distinguishes culprits of its rule, without the rule's title, which may be
/// worded differently in another version.
fn own_name<'a>(rule: &str, name: &'a str) -> &'a str {
    match find(rule).map(|rule| rule.grouping) {
        None | Some(Grouping::OwnName) => name,
        Some(Grouping::Single) => "",
        Some(Grouping::Function | Grouping::Thread | Grouping::Irq) => {
            name.split_once(": ").map_or("", |(_, own)| own)
        }
    }
}

fn plain_word(word: &str) -> String {
    if word.starts_with("kworker/") {
        return "kworker".to_owned();
    }
    if let Some((name, number)) = word.split_once('/')
        && is_number(number)
        && NUMBERED.contains(&name)
    {
        return name.to_owned();
    }
    if let Some((number, device)) = word.strip_prefix("irq/").and_then(|rest| rest.split_once('-'))
        && is_number(number)
    {
        return format!("irq/N-{device}");
    }
    if let Some((device, number)) = word.strip_prefix("napi/").and_then(|rest| rest.rsplit_once('-'))
        && is_number(number)
    {
        return format!("napi/{device}-N");
    }
    let of_process = OF_PROCESS.into_iter().find(|name| word.strip_prefix(*name).is_some_and(is_number));
    of_process.map_or_else(|| word.to_owned(), |name| format!("{name}N"))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_the_kernel_gives_anew_make_no_other_name() {
        for (name, plain) in [
            ("kworker/u8:3", "kworker"),
            ("kworker/0:1H-kblockd", "kworker"),
            ("kworker/R-rcu_g", "kworker"),
            ("ksoftirqd/12", "ksoftirqd"),
            ("migration/0", "migration"),
            ("rcuc/3", "rcuc"),
            ("rcub/0", "rcub"),
            ("cpuhp/1", "cpuhp"),
            ("ktimers/2", "ktimers"),
            ("irq/35-eth0", "irq/N-eth0"),
            ("irq/36-s-eth0", "irq/N-s-eth0"),
            ("napi/eth0-513", "napi/eth0-N"),
            ("vhost-4711", "vhost-N"),
            ("iou-wrk-99", "iou-wrk-N"),
            ("a turn of a lower thread: irq/24-mmc1", "a turn of a lower thread: irq/N-mmc1"),
            (
                "lock with priority inheritance, held by kworker/1:2",
                "lock with priority inheritance, held by kworker",
            ),
        ] {
            assert_eq!(plain_name(name), plain);
            assert_eq!(plain_name(plain), plain, "plain once, plain for ever");
        }
    }

    #[test]
    fn numbers_of_programs_devices_and_functions_stay() {
        for name in [
            "app1",
            "app2",
            "zeta_thread",
            "CPU 0/KVM",
            "irq/eth0",
            "irq/-eth0",
            "irq/x-eth0",
            "ksoftirqd/",
            "ksoftirqd/0a",
            "mine/0",
            "vhost-net",
            "kswapd0",
            "hold+0x10 [faults]",
            "eth0",
            "",
            "a  b",
            "35",
        ] {
            assert_eq!(plain_name(name), name);
        }
        assert_ne!(plain_name("irq/35-eth0"), plain_name("irq/35-eth1"));
        assert!(plain_name(&"x".repeat(900)).len() < 300);
    }

    #[test]
    fn a_program_is_another_culprit_and_a_number_is_not() {
        let of = |name: &str| fingerprint_of("realtime-thread", "thread", name);
        let title = find("realtime-thread").unwrap().title;
        let [hog, zeta] = ["fault_hogger", "zeta_thread"].map(|name| of(&format!("{title}: {name}")));
        assert_ne!(hog, zeta);
        assert_eq!(hog, of("a title of another version: fault_hogger"));
        let no_rule = |name: &str| fingerprint_of("", "thread", name);
        assert_ne!(no_rule("app1"), no_rule("app2"));
        assert_ne!(no_rule("x: app1"), no_rule("y: app1"));
        assert_eq!(no_rule("irq/35-eth0"), no_rule("irq/36-eth0"));
        assert_ne!(no_rule("irq/35-eth0"), fingerprint_of("", "irq", "irq/35-eth0"));
        assert_ne!(no_rule("app1"), fingerprint_of("a-new-rule", "thread", "app1"));
        assert_ne!(
            fingerprint_of("a-new-rule", "thread", "app2"),
            fingerprint_of("a-new-rule", "thread", "app1")
        );
    }

    #[test]
    fn a_watch_and_a_hunt_mean_the_same_culprit() {
        let title = find("realtime-thread").unwrap().title;
        let hunted = format!("{title}: hog: 1");
        assert_eq!(name_in_hunts("realtime-thread", "hog: 1"), hunted);
        assert_eq!(name_in_hunts("realtime-thread", title), title);
        assert_eq!(
            (name_in_hunts("", "hog"), name_in_hunts("a-new-rule", "hog")),
            ("hog".into(), "hog".into())
        );
        assert_ne!(
            fingerprint_of("realtime-thread", "thread", &hunted),
            fingerprint_of("realtime-thread", "thread", &format!("{title}: 1"))
        );
    }

    /// A title with a colon would be parsed as a title and a name.
    #[test]
    fn titles_have_no_colon_and_rules_without_names_are_one_culprit() {
        for rule in rules::culprits::ALL {
            assert!(!rule.title.contains(": "), "{}", rule.title);
            let is_one = fingerprint_of(rule.id, "irq", "x: a") == fingerprint_of(rule.id, "irq", "x: b");
            assert_eq!(is_one, rule.grouping == Grouping::Single, "{}", rule.id);
        }
    }
}
