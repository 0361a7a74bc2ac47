//! Systemd unit that `onbeat watch --unit` prints.

use std::path::Path;

/// Folder of the record by default, which systemd creates.
pub const FOLDER: &str = "/var/lib/onbeat/watch";

/// Folders that ProtectHome=yes hides, and those that PrivateTmp=yes replaces by private ones
/// (systemd.exec(5)).
const HOMES: [&str; 3] = ["/home", "/root", "/run/user"];
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// Contents of the unit.
pub struct WatchUnit<'a> {
    pub program: &'a str,
    pub arguments: &'a [String],
    /// Folder of the record: an absolute path.
    pub folder: &'a str,
    /// True for actions: the processes that they start have the rights of the unit.
    pub keeps_rights: bool,
}

impl WatchUnit<'_> {
    /// A unit that runs this program with these arguments and the least rights for that.
    pub fn text(&self) -> String {
        let words: Vec<String> =
            self.arguments.iter().map(|word| quoted_word(word).replace('$', "$$")).collect();
        let hardened = if self.keeps_rights { String::new() } else { self.hardened() };
        format!(
            "[Unit]
Description=Latency of every wake-up of real-time threads
Documentation=man:onbeat(1)
{mounts}
[Service]
{created}ExecStart={program} {line}
# Interrupted with all saved.
SuccessExitStatus=6
Restart=on-failure
RestartSec=60
{state}# Programs for the kernel (bpf(2)), the formats of its events, the names and the code of its
# functions: opened first, and given up then.
CapabilityBoundingSet=CAP_BPF CAP_PERFMON CAP_DAC_READ_SEARCH CAP_SYSLOG CAP_SYS_RAWIO{kill}
{hardened}
[Install]
WantedBy=multi-user.target
",
            program = quoted_word(self.program),
            line = words.join(" "),
            mounts = self.elsewhere("RequiresMountsFor="),
            // With full rights, as ReadWritePaths= needs a folder that exists.
            created = self.elsewhere("ExecStartPre=+/bin/mkdir -p ").replace('$', "$$"),
            state = if self.folder == FOLDER { "StateDirectory=onbeat/watch\n" } else { "" },
            kill = if self.keeps_rights { " CAP_KILL" } else { "" },
        )
    }

    /// Without ProtectKernelTunables, ProtectKernelLogs and PrivateDevices: they hide tracefs and
    /// the kernel's symbols (systemd.exec(5)).
    fn hardened(&self) -> String {
        let home = if self.is_below(&HOMES) { "read-only" } else { "yes" };
        let private = if self.is_below(&TEMPORARY) { "" } else { "PrivateTmp=yes\n" };
        let written = self.elsewhere("ReadWritePaths=");
        format!(
            "NoNewPrivileges=yes
ProtectSystem=strict
{written}ProtectHome={home}
{private}PrivateNetwork=yes
RestrictAddressFamilies=none
RestrictRealtime=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
LimitNOFILE=1024
"
        )
    }

    /// Line about the folder, if systemd does not create it.
    fn elsewhere(&self, name: &str) -> String {
        if self.folder == FOLDER { String::new() } else { format!("{name}{}\n", quoted_word(self.folder)) }
    }

    fn is_below(&self, folders: &[&str]) -> bool {
        [self.program, self.folder]
            .iter()
            .any(|path| folders.iter().any(|above| Path::new(path).starts_with(above)))
    }

    /// Remarks on places that a service should not use, each with the remedy.
    pub fn remarks(&self) -> Vec<String> {
        let below = |path: &str, folders: &[&str]| {
            folders.iter().find(|above| Path::new(path).starts_with(above)).map(|above| (*above).to_owned())
        };
        let program = below(self.program, &[HOMES.as_slice(), &TEMPORARY].concat()).map(|above| {
            let own = quoted_word(self.program);
            format!(
                "the unit runs the program below {above}, where others may replace or remove it: install it \
                 first (sudo install {own} /usr/local/bin/onbeat), and print the unit with that program"
            )
        });
        let emptied = [TEMPORARY.as_slice(), &["/run", "/dev/shm"]].concat();
        let folder = below(self.folder, &emptied).map(|above| {
            format!(
                "{above} is emptied at boot or by age, and the record with it: give a lasting folder with -o"
            )
        });
        program.into_iter().chain(folder).collect()
    }
}

/// A word in the syntax of units: `%` is doubled, and what is not plain stands in quotes, in which
/// a backslash escapes (systemd.syntax(7)).
fn quoted_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%$".contains(c);
    let text = word.replace('%', "%%");
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    let escaped = text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n");
    format!("'{escaped}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(program: &str, folder: &str, more: &[&str], keeps_rights: bool) -> (String, Vec<String>) {
        let words: Vec<String> =
            ["watch", "-o", folder].iter().chain(more).map(|&word| word.to_owned()).collect();
        let unit = WatchUnit { program, arguments: &words, folder, keeps_rights };
        (unit.text(), unit.remarks())
    }

    #[test]
    fn a_unit_has_one_line_for_its_command() {
        let actions = ["--on-alarm", "exec:mail 100%", "--label", "a=it's \\ $X"];
        let (text, remarks) = unit("/usr/bin/onbeat", "/data/a b", &actions, false);
        let line = text.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
        assert_eq!(
            line,
            "ExecStart=/usr/bin/onbeat watch -o '/data/a b' --on-alarm 'exec:mail 100%%' --label \
             'a=it\\'s \\\\ $$X'"
        );
        assert!(text.contains("ProtectSystem=strict") && !text.contains("CAP_KILL"));
        let (with_actions, _) = unit("/usr/bin/onbeat", FOLDER, &[], true);
        assert!(!with_actions.contains("ProtectSystem") && with_actions.contains("CAP_KILL"));
        assert!(!text.contains("ProtectKernelTunables="), "it hides tracefs");
        assert_eq!(remarks, [""; 0]);
    }

    #[test]
    fn the_unit_can_write_to_the_folder_of_its_record() {
        let (text, _) = unit("/usr/bin/onbeat", FOLDER, &[], false);
        assert!(text.contains("\nStateDirectory=onbeat/watch\n"), "{text}");
        assert!(!text.contains("ReadWritePaths=") && !text.contains("ExecStartPre="), "{text}");
        let (text, remarks) = unit("/usr/bin/onbeat", "/data/$a%", &[], false);
        for line in [
            "RequiresMountsFor=/data/$a%%",
            "ExecStartPre=+/bin/mkdir -p /data/$$a%%",
            "ReadWritePaths=/data/$a%%",
            "ProtectHome=yes",
            "PrivateTmp=yes",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}: {text}");
        }
        assert!(!text.contains("StateDirectory=") && remarks.is_empty(), "{text}");
    }

    #[test]
    fn nothing_hides_the_program_or_the_record() {
        let [home, root, _] = HOMES.map(|home| format!("{home}/w"));
        for (program, folder) in [(home.as_str(), FOLDER), ("/usr/bin/onbeat", &root)] {
            let (text, _) = unit(program, folder, &[], false);
            assert!(text.contains("\nProtectHome=read-only\n") && text.contains("PrivateTmp=yes"), "{text}");
        }
        let temporary = TEMPORARY.map(|folder| format!("{folder}/w"));
        for (program, folder) in [(temporary[0].as_str(), FOLDER), ("/usr/bin/onbeat", &temporary[1])] {
            let (text, remarks) = unit(program, folder, &[], false);
            assert!(!text.contains("PrivateTmp=") && text.contains("ProtectHome=yes"), "{text}");
            assert_eq!(remarks.len(), 1, "{remarks:?}");
        }
        let (_, remarks) = unit(&root, "/run/w", &[], false);
        assert!(remarks[0].contains("sudo install") && remarks[1].contains("emptied"), "{remarks:?}");
        let (_, remarks) = unit("/usr/bin/onbeat", &home, &[], false);
        assert_eq!(remarks, [""; 0], "a home lasts");
    }
}
