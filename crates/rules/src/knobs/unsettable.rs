//! Why `onbeat tune` leaves a setting as it is, where that is so of many.

/// It is a word of the kernel's command line.
pub const BOOT: &str = "the kernel takes it from its command line, which it reads at boot alone";

/// It is an option of the kernel's configuration.
pub const BUILT: &str = "it was decided when the kernel was built";

/// It is a limit of a user's or a service's.
pub const LOGIN: &str =
    "a limit is given with a login or at the start of a service, not to what runs already";

/// It is the hardware, its heat, or the host of a guest.
pub const MACHINE: &str = "it is the machine itself, or a choice of other CPUs";

/// It is what another program does.
pub const PROGRAM: &str = "it is what another program does, and none is stopped unasked";
