//! Settings that an export must not change: the only console, and fair servers at boot.

use facts::cmdline::Cmdline;
use model::plan::LeftOut;
use model::setting::Key;

use super::lasting::{BootLine, CmdlineWord, Lasting, is_of};

const FAIR_SERVERS: &str = "kernel/debug/sched/fair_server/";

impl Lasting {
    /// Removes fair servers: a kernel with CPUs isolated at boot warns when they are written to
    /// (`task_non_contending` of kernel/sched/deadline.c, seen on 6.12).
    pub(super) fn leave_out_servers(&mut self, booted: &Cmdline) {
        let isolates = |word: &CmdlineWord| word.added && word.word.starts_with("isolcpus=");
        if !booted.has("isolcpus") && !self.words.iter().any(isolates) {
            return;
        }
        let is_server =
            |line: &BootLine| matches!(&line.setting.key, Key::Sysfs(file) if file.starts_with(FAIR_SERVERS));
        let Some(rules) = self.files.iter().find(|line| is_server(line)).map(|line| line.rule.clone()) else {
            return;
        };
        self.files.retain(|line| !is_server(line));
        // Throttling must stay with the server: lines only for those rules are removed, too.
        for lines in [&mut self.sysctls, &mut self.files] {
            lines.retain_mut(|line| {
                let others: Vec<&str> = line.rule.split(", ").filter(|rule| !is_of(&rules, rule)).collect();
                let others = others.join(", ");
                line.rule = others;
                !line.rule.is_empty()
            });
        }
        self.left_out.push(LeftOut {
            rule: rules,
            why: "the kernel warns when it is written on CPUs that were isolated at boot".to_owned(),
            instead: "remove isolcpus=, then `onbeat isolate create` sets both in their order".to_owned(),
        });
    }

    /// Keeps the only console: a failing boot prints to it, and many boards have no other login.
    pub(super) fn keep_a_console(&mut self, booted: &Cmdline) {
        let is_console = |word: &CmdlineWord| word.word.starts_with("console=");
        let is_taken_off = |value: &str| {
            self.words.iter().any(|word| !word.added && word.word == format!("console={value}"))
        };
        let one_stays = booted.values("console").any(|value| !is_taken_off(value));
        let Some(first) = self.words.iter().find(|word| is_console(word)).cloned() else { return };
        if one_stays || self.words.iter().any(|word| word.added && is_console(word)) {
            return;
        }
        self.words.retain(|word| !is_console(word));
        self.left_out.push(LeftOut {
            rule: first.rule,
            why: format!("{} is the only console on the command line", first.word),
            instead: format!("add another one first, such as console=tty0, then remove {}", first.word),
        });
    }
}
