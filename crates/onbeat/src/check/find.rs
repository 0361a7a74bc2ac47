//! Lookup of the process to check, and reasons against checking it.

use crate::hunt::victims;
use facts::process::status::ProcessStatus;
use facts::process::surroundings::process_number;
use facts::process::{dir_of, processes_named, status_of};
use host::MachineFiles;
use model::error::{Failure, Result};
use model::text::{quoted_value, several};

/// Maximum number of PIDs in a refusal.
const MAX_NAMED: usize = 8;

/// PID of the process with this number or name.
pub fn find(host: &MachineFiles, wanted: &str) -> Result<u32> {
    let pid = match process_number(wanted) {
        Some(pid) => pid,
        None => by_name(host, wanted)?,
    };
    let status = status_of(&host.unrecorded(), pid);
    let Some(status) = status.known() else {
        return Err(Failure::usage(format!(
            "no process {pid}: give a number or name that `ps -eo pid,comm` lists"
        )));
    };
    judgeable(pid, status).map(|()| pid)
}

fn by_name(host: &MachineFiles, name: &str) -> Result<u32> {
    let mut found = processes_named(host, name);
    // A name that only threads have stands for their process.
    if found.is_empty() {
        let processes = victims::processes_with(&host.unrecorded(), name).into_iter();
        found = processes.filter_map(|process| process.try_into().ok()).collect();
    }
    match found[..] {
        [pid] => Ok(pid),
        [] => Err(Failure::usage(format!(
            "no process named {}: give a number or name that `ps -eo pid,comm` lists",
            quoted_value(name)
        ))),
        _ => {
            let named: Vec<String> = found.iter().take(MAX_NAMED).map(u32::to_string).collect();
            let more = found.len().saturating_sub(MAX_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let count = several(found.len() as u64, "process is", "processes are");
            let named = named.join(", ");
            Err(Failure::usage(format!(
                "{count} named {}: give the number of one: {named}{more}",
                quoted_value(name)
            )))
        }
    }
}

fn judgeable(pid: u32, status: &ProcessStatus) -> Result<()> {
    if status.process != pid {
        let process = status.process;
        return Err(Failure::usage(format!("{pid} is a thread of process {process}: give {process}")));
    }
    if pid == std::process::id() {
        return Err(Failure::usage("this is onbeat itself: give another process"));
    }
    if !status.has_memory {
        return Err(Failure::usage(format!(
            "process {pid} is a kernel thread or a zombie: give the number of a program"
        )));
    }
    Ok(())
}

/// Remarks on limits of the check due to the rights and namespaces of a process.
pub fn remarks(host: &MachineFiles, pid: u32) -> Vec<String> {
    let status = status_of(&host.unrecorded(), pid);
    let Some(status) = status.known() else { return Vec::new() };
    let mut remarks = Vec::new();
    if let [_, .., inside] = status.numbers[..] {
        remarks.push(format!("process {pid} is in a separate PID namespace, where its number is {inside}"));
    }
    if status.users[0] != status.users[1] {
        remarks.push(format!("process {pid} runs with the rights of user {} (setuid)", status.users[1]));
    }
    let vector =
        host.unrecorded().read_at_most(&format!("{}/auxv", dir_of(&host.unrecorded(), pid)), 1 << 16);
    if vector.known().is_none() {
        remarks.push(
            "this user may not read its memory and system calls: run with CAP_SYS_PTRACE, or as its user; \
             the rest is checked"
                .to_owned(),
        );
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::access::Access;
    use model::error::Exit;
    use std::collections::BTreeMap;

    fn machine() -> MachineFiles {
        let file = |text: &str| Access::File(text.as_bytes().to_vec());
        let status = |process: u32, memory: &str| {
            file(&format!(
                "Tgid:\t{process}\nTracerPid:\t0\nUid:\t1000\t0\t0\t0\n\
                 NStgid:\t{process}\t7\nThreads:\t1\n{memory}CapEff:\t0\n"
            ))
        };
        let memory = "VmLck:\t0 kB\nVmData:\t4 kB\n";
        let mut answers = BTreeMap::new();
        let list = ["2", "100", "200", "300"].map(str::to_owned).to_vec();
        answers.insert("/proc".to_owned(), Access::List(list));
        for (pid, comm) in [(100, "robot"), (200, "twin"), (300, "twin"), (2, "kthreadd")] {
            answers.insert(format!("/proc/{pid}/comm"), file(&format!("{comm}\n")));
            answers.insert(format!("/proc/{pid}/status"), status(pid, if pid == 2 { "" } else { memory }));
        }
        answers.insert("/proc/101/status".to_owned(), status(100, memory));
        MachineFiles::in_memory(answers)
    }

    #[test]
    fn a_process_is_meant_by_number_or_name() {
        assert_eq!(find(&machine(), "100").expect("a number"), 100);
        assert_eq!(find(&machine(), "robot").expect("a name"), 100);
        for (wanted, said) in [
            ("twin", "200, 300"),
            ("101", "process 100"),
            ("2", "a kernel thread or a zombie"),
            ("999", "no process 999"),
            ("nobody", "no process named"),
            ("", "no process named"),
            ("-1", "no process named"),
            ("99999999999999999999", "no process named"),
        ] {
            let refused = find(&machine(), wanted).expect_err(wanted);
            assert_eq!(refused.exit, Exit::Usage, "{wanted}");
            assert!(refused.message.contains(said) && !refused.message.contains('\n'), "{refused}");
        }
    }

    #[test]
    fn what_limits_the_judgement_is_said() {
        let said = remarks(&machine(), 100).join("; ");
        assert!(
            said.contains("its number is 7") && said.contains("(setuid)") && said.contains("CAP_SYS_PTRACE"),
            "{said}"
        );
    }
}
