//! Subsystem of a function or module, for the reader who has to find its caller.
//!
//! By prefixes that the kernel's source uses for one subsystem only; others are not guessed.

/// Prefixes of functions with their subsystem; the longest match counts.
const FUNCTIONS: &[(&str, &str)] = &[
    ("acpi_", "ACPI"),
    ("ahci_", "the AHCI (SATA) driver"),
    ("ata_", "ATA disks"),
    ("blk_", "block devices"),
    ("blk_mq_", "block devices"),
    ("bpf_", "BPF"),
    ("btrfs_", "the Btrfs file system"),
    ("cgroup_", "control groups"),
    ("compact_", "memory compaction"),
    ("console_", "consoles"),
    ("cpufreq_", "frequency scaling"),
    ("cpuidle_", "idle states"),
    ("damon_", "memory access monitoring (DAMON)"),
    ("drm_", "graphics (DRM)"),
    ("e1000_", "the e1000 network driver"),
    ("e1000e_", "the e1000e network driver"),
    ("edac_", "memory error reporting (EDAC)"),
    ("efi_", "EFI runtime services"),
    ("ext4_", "the ext4 file system"),
    ("fbcon_", "the framebuffer console"),
    ("flush_tlb_", "TLB flushes"),
    ("fuse_", "user-space file systems (FUSE)"),
    ("i2c_", "I2C buses"),
    ("i915_", "Intel graphics (i915)"),
    ("igb_", "the igb network driver"),
    ("igc_", "the igc network driver"),
    ("ixgbe_", "the ixgbe network driver"),
    ("jbd2_", "the journal of ext4 (jbd2)"),
    ("kcompactd", "memory compaction"),
    ("kdamond_", "memory access monitoring (DAMON)"),
    ("khugepaged", "transparent huge pages"),
    ("ksm_", "same-page merging"),
    ("kvm_", "virtualisation (KVM)"),
    ("loop_", "loop devices"),
    ("mce_", "machine checks"),
    ("mmc_", "MMC and SD cards"),
    ("napi_", "networking"),
    ("net_rx_action", "networking"),
    ("net_tx_action", "networking"),
    ("netif_", "networking"),
    ("nf_", "packet filters"),
    ("nfs_", "NFS"),
    ("nft_", "packet filters (nftables)"),
    ("nvkm_", "Nvidia graphics (nouveau)"),
    ("nvme_", "NVMe disks"),
    ("pci_", "the PCI bus"),
    ("perf_", "performance events"),
    ("phy_", "network PHYs"),
    ("pl011_", "the PL011 serial driver"),
    ("r8169_", "the r8169 network driver"),
    ("radeon_", "AMD graphics (radeon)"),
    ("rcu_", "RCU"),
    ("scmi_", "the SCMI firmware"),
    ("scsi_", "SCSI"),
    ("sdhci_", "the SD host controller"),
    ("serial8250_", "the 8250 serial driver and its console"),
    ("skb_", "networking"),
    ("snd_", "sound"),
    ("spi_", "SPI buses"),
    ("stmmac_", "the stmmac network driver"),
    ("tcp_", "TCP"),
    ("tg3_", "the tg3 network driver"),
    ("thermal_", "thermal management"),
    ("tick_", "the tick"),
    ("tpm_", "the TPM"),
    ("udp_", "UDP"),
    ("univ8250_", "the 8250 serial console"),
    ("usb_", "USB"),
    ("virtio_", "virtio devices"),
    ("virtnet_", "the virtio network driver"),
    ("vmstat_", "memory statistics"),
    ("vmw_", "VMware devices"),
    ("vt_", "virtual terminals"),
    ("xfs_", "the XFS file system"),
    ("xhci_", "the USB 3 host controller"),
];

/// Modules by name.
const MODULES: &[(&str, &str)] = &[
    ("ahci", "the AHCI (SATA) driver"),
    ("amdgpu", "AMD graphics"),
    ("e1000", "the e1000 network driver"),
    ("e1000e", "the e1000e network driver"),
    ("ext4", "the ext4 file system"),
    ("i915", "Intel graphics (i915)"),
    ("igb", "the igb network driver"),
    ("igc", "the igc network driver"),
    ("ixgbe", "the ixgbe network driver"),
    ("jbd2", "the journal of ext4 (jbd2)"),
    ("kvm", "virtualisation (KVM)"),
    ("mlx5_core", "the Mellanox network driver"),
    ("nouveau", "Nvidia graphics (nouveau)"),
    ("nvidia", "Nvidia's graphics driver"),
    ("nvme", "NVMe disks"),
    ("r8169", "the r8169 network driver"),
    ("radeon", "AMD graphics (radeon)"),
    ("usbcore", "USB"),
    ("virtio_net", "the virtio network driver"),
    ("xe", "Intel graphics (xe)"),
    ("xhci_hcd", "the USB 3 host controller"),
];

/// Subsystem of a function in a module, if known; the module, `""` for the kernel itself, is more
/// specific than the prefix.
pub fn of(function: &str, module: &str) -> Option<&'static str> {
    if let Some(known) = MODULES.iter().find(|known| known.0 == module) {
        return Some(known.1);
    }
    let fitting = FUNCTIONS.iter().filter(|known| function.starts_with(known.0));
    fitting.max_by_key(|known| known.0.len()).map(|known| known.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_unique() {
        for table in [FUNCTIONS, MODULES] {
            let names: Vec<&str> = table.iter().map(|entry| entry.0).collect();
            let mut sorted = names.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(names, sorted);
        }
    }

    #[test]
    fn the_module_and_the_longest_prefix_count() {
        assert_eq!(of("anything", "i915"), Some("Intel graphics (i915)"));
        assert_eq!(of("serial8250_console_write", ""), Some("the 8250 serial driver and its console"));
        assert_eq!(of("e1000e_poll", ""), Some("the e1000e network driver"));
        assert_eq!(of("hold_irqs", "faults"), None);
        assert_eq!(of("", ""), None);
    }
}
