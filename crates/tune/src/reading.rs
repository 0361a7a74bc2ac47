//! Values of keys from the files of a machine: the running one, a tree, or a capture.

use host::MachineFiles;
use model::fact::Fact;
use model::setting::{Key, PRESENT, TaskSetting};

/// Value of a key; not captured if it is missing from a capture.
pub fn read(files: &MachineFiles, key: &Key) -> Fact<String> {
    match key {
        Key::Group(_) => files.list(&key.path()).map(|_| PRESENT.to_owned()),
        Key::Hold(_) => Fact::Absent,
        Key::Task { tid, start, what } => thread(files, *tid, *start, *what),
        _ => files.read_text(&key.path()).map(|text| text.trim_end().to_owned()),
    }
}

fn thread(files: &MachineFiles, tid: u32, start: u64, what: TaskSetting) -> Fact<String> {
    let stat = match files.read_text(&format!("/proc/{tid}/stat")) {
        Fact::Known(stat) => stat,
        other => return other,
    };
    let fields: Vec<&str> = match stat.rsplit_once(") ") {
        Some((_, fields)) => fields.split_ascii_whitespace().collect(),
        None => return Fact::Malformed("/proc/TID/stat has no name".to_owned()),
    };
    // Fields 22, 19, 40 and 41 of proc_pid_stat(5); `fields` starts with the third.
    let number = |field: usize| fields.get(field - 3).and_then(|word| word.parse::<i64>().ok());
    if number(22).and_then(|own| u64::try_from(own).ok()) != Some(start) {
        return Fact::Absent;
    }
    match what {
        TaskSetting::Affinity => files.read_text(&format!("/proc/{tid}/status")).then(|status| {
            let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            match list {
                Some(list) => Fact::Known(list.trim().to_owned()),
                None => Fact::Malformed("/proc/TID/status has no Cpus_allowed_list".to_owned()),
            }
        }),
        TaskSetting::Policy => match (number(41), number(40), number(19)) {
            (Some(0), _, Some(nice)) => Fact::Known(format!("other {nice}")),
            (Some(1), Some(priority), _) => Fact::Known(format!("fifo {priority}")),
            (Some(2), Some(priority), _) => Fact::Known(format!("rr {priority}")),
            (Some(3), _, Some(nice)) => Fact::Known(format!("batch {nice}")),
            (Some(5), _, Some(nice)) => Fact::Known(format!("idle {nice}")),
            (policy, _, _) => Fact::Malformed(format!("policy {policy:?} is more than a priority")),
        },
        TaskSetting::Group => files.read_text(&format!("/proc/{tid}/cgroup")).then(|text| {
            match text.lines().find_map(|line| line.strip_prefix("0::")) {
                Some(group) => Fact::Known(group.to_owned()),
                None => Fact::Absent,
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use host::MachineFiles;
    use host::access::Access;
    use model::fact::Fact;

    fn machine() -> MachineFiles {
        let stat = "12 (a) b) S 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 -51 0 1 0 345 0 0 18446744073709551615 \
                    0 0 0 0 0 0 0 2147483647 0 0 0 0 17 3 50 1 0 0 0 0 0 0 0 0 0 0 0\n";
        let files = [
            ("/proc/12/stat", stat),
            ("/proc/12/status", "Name:\ta) b\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n"),
            ("/proc/12/cgroup", "0::/onbeat/rt\n"),
            ("/proc/sys/vm/stat_interval", "1\n"),
        ];
        let file = |(path, text): (&str, &str)| (path.to_owned(), Access::File(text.as_bytes().to_vec()));
        MachineFiles::in_memory(files.into_iter().map(file).collect())
    }

    #[test]
    fn each_key_is_read_where_the_kernel_shows_it() {
        let value = |key: &str| read(&machine(), &key.parse().unwrap());
        assert_eq!(value("sysctl:vm.stat_interval"), Fact::Known("1".to_owned()));
        assert_eq!(value("task:12/345"), Fact::Known("0-3".to_owned()));
        assert_eq!(value("task:12/345/policy"), Fact::Known("fifo 50".to_owned()));
        assert_eq!(value("task:12/345/group"), Fact::Known("/onbeat/rt".to_owned()));
        assert_eq!(value("task:12/346"), Fact::Absent, "another thread with its number");
        assert_eq!(value("task:13/345"), Fact::Absent);
        assert_eq!(value("sysctl:vm.none"), Fact::Absent);
        assert_eq!(value("cgroup:onbeat/"), Fact::Absent);
    }
}
