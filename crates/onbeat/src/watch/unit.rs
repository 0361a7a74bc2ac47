//! Systemd unit that `onbeat watch --unit` prints.

/// A unit that runs this program with these arguments and the least rights for that.
pub fn unit(program: &str, arguments: &[String], keeps_rights: bool) -> String {
    let line = shell_words::join([program.to_owned()].iter().chain(arguments)).replace('%', "%%");
    // Processes started by an action have the rights of the unit.
    let hardened = if keeps_rights { "" } else { HARDENED };
    format!(
        "[Unit]
Description=Latency of every wake-up of real-time threads
Documentation=man:onbeat(1)

[Service]
ExecStart={line}
# Interrupted with all saved.
SuccessExitStatus=6
Restart=on-failure
RestartSec=60
StateDirectory=onbeat/watch
# Programs for the kernel (bpf(2)), the formats of its events, the names and the code of its
# functions: opened first, and given up then.
CapabilityBoundingSet=CAP_BPF CAP_PERFMON CAP_DAC_READ_SEARCH CAP_SYSLOG CAP_SYS_RAWIO{kill}
{hardened}
[Install]
WantedBy=multi-user.target
",
        kill = if keeps_rights { " CAP_KILL" } else { "" },
    )
}

/// Without ProtectKernelTunables, ProtectKernelLogs and PrivateDevices: they hide tracefs and the
/// kernel's symbols (systemd.exec(5)).
const HARDENED: &str = "NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateNetwork=yes
RestrictAddressFamilies=none
RestrictRealtime=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
LimitNOFILE=1024
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_one_line_for_its_command() {
        let arguments =
            ["watch", "-o", "/var/lib/onbeat/a b", "--on-alarm", "exec:mail 100%"].map(str::to_owned);
        let text = unit("/usr/bin/onbeat", &arguments, false);
        let line = text.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
        assert_eq!(
            line,
            "ExecStart=/usr/bin/onbeat watch -o '/var/lib/onbeat/a b' --on-alarm 'exec:mail 100%%'"
        );
        assert!(text.contains("ProtectSystem=strict") && !text.contains("CAP_KILL"));
        assert!(!unit("onbeat", &[], true).contains("ProtectSystem"));
        assert!(!text.contains("ProtectKernelTunables="), "it hides tracefs");
    }
}
