//! Identity of the kernel: release, architecture, command line and configuration, from the running
//! kernel or from the texts that stand for it.

use super::Reader;
use crate::cmdline::{Cmdline, parse_cmdline};
use crate::cpuinfo::CpuInfo;
use crate::kconfig::{Kconfig, parse_compressed, parse_kconfig};
use crate::line::{excerpt, parse_word};
use crate::{preempt, whole};
use host::access::Access;
use host::machine;
use model::fact::Fact;

/// `uname -m` as a file.
const ARCH: &str = "/proc/sys/kernel/arch";

impl Reader<'_> {
    /// A value that a configuration states about the kernel built with it.
    fn of_kconfig(&self, value: fn(&Kconfig) -> Option<String>) -> Fact<String> {
        self.texts.kconfig.as_ref().and_then(value).map_or(Fact::NotRunning, Fact::Known)
    }

    pub(super) fn release(&mut self) -> Fact<String> {
        match self.read("/proc/sys/kernel/osrelease", parse_word) {
            Fact::NotRunning => self.of_kconfig(Kconfig::release),
            fact => fact,
        }
    }

    /// The architecture; its file exists from 6.1 on, before that the configuration and the
    /// processor's lines show it.
    pub(super) fn machine(&mut self, kconfig: Option<&Kconfig>, cpuinfo: Option<&CpuInfo>) -> Fact<String> {
        match self.read(ARCH, parse_word) {
            Fact::NotRunning => self.of_kconfig(Kconfig::machine),
            // uname(2) answers for the running kernel, and a record needs the answer.
            Fact::Absent if self.host.is_live() => {
                let name = machine();
                self.host.record_as(ARCH, Access::File(format!("{name}\n").into_bytes()));
                Fact::Known(name)
            }
            Fact::Absent => {
                let machine = || cpuinfo.and_then(|info| info.machine).map(str::to_owned);
                kconfig.and_then(Kconfig::machine).or_else(machine).map_or(Fact::Absent, Fact::Known)
            }
            fact => fact,
        }
    }

    pub(super) fn cmdline(&mut self) -> Fact<Cmdline> {
        // The kernel receives bytes that are not UTF-8 like all others; they affect none of its
        // parameters.
        let fact = whole::bytes(self.host, "/proc/cmdline")
            .parse(|bytes| parse_cmdline(&String::from_utf8_lossy(&bytes)));
        let fact = if fact == Fact::NotRunning { self.texts.cmdline.clone() } else { fact };
        self.noted("/proc/cmdline", fact)
    }

    /// The configuration, and true if it is the running kernel's copy, which is better evidence
    /// than a file that may belong to another kernel.
    pub(super) fn kconfig(
        &mut self,
        release: Option<&String>,
        version: Option<&String>,
    ) -> (Fact<Kconfig>, bool) {
        let fitting = |config: Kconfig, own: bool| {
            let of_release = release.and_then(|release| config.misfit(release, own));
            let of_build = || {
                version.filter(|version| !config.fits_build(version)).map(|_| {
                    format!(
                        "it is for Linux {}, but the kernel is a different build",
                        excerpt(&config.version)
                    )
                })
            };
            let of_model = || version.and_then(|version| preempt::contradiction(version, &config));
            match of_release.or_else(of_build).or_else(of_model) {
                Some(why) => Err(format!("not used: {why}")),
                None => Ok(config),
            }
        };
        if let Some(config) = &self.texts.kconfig {
            let given = Fact::Known(config.clone()).parse(|config| fitting(config, true));
            return (self.noted("the kernel's configuration", given), true);
        }
        let compressed = self.host.read("/proc/config.gz").parse(|bytes| parse_compressed(&bytes));
        let mut outcome = self.noted("/proc/config.gz", compressed.parse(|config| fitting(config, true)));
        if outcome.known().is_some() {
            return (outcome, true);
        }
        let Some(release) = release else { return (outcome, false) };
        for path in [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")] {
            let found = self.host.read_text(&path).parse(parse_kconfig);
            let found = self.noted(&path, found.parse(|config| fitting(config, false)));
            if found != Fact::Absent {
                outcome = found;
            }
            if outcome.known().is_some() {
                break;
            }
        }
        (outcome, false)
    }
}
