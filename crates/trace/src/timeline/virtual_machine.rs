//! Detection of virtual machines, in which a hypervisor may have stopped a CPU.

use model::run::Host;

/// True if the machine is known to be virtual.
pub fn is_virtual(host: &Host) -> bool {
    !matches!(host.virtualization.as_str(), "" | "none")
}
