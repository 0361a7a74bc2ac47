//! Access to the machine: the only code that calls the kernel or opens files.
//!
//! A running machine, a tree, a captured bundle and answers in memory differ in where
//! [`MachineFiles`] reads, not in code paths. [`access`] records accesses, [`dir`] and `output`
//! write below descriptors, a watch writes to a [`RecordFolder`], [`bpf`] loads programs into the
//! kernel, [`rt`] and [`clock`] are the real-time calls of the measuring loop, [`tracefs`] is an
//! instance of the kernel's tracing, and [`work`] has the work of loads. All `unsafe` code of
//! onbeat is here.

#![allow(clippy::disallowed_methods)] // This is the replacement that clippy.toml names.

pub mod access;
mod beneath;
pub mod bpf;
pub mod capabilities;
pub mod children;
pub mod clock;
mod console;
mod device_reads;
pub mod dir;
mod folder_lock;
pub mod gpio;
#[cfg(target_env = "musl")]
pub mod heap;
mod input;
pub mod ipc;
pub mod keeper;
mod kernel_answer;
mod kernel_list;
mod kernel_log;
pub mod kernel_text;
mod machine;
pub mod net;
mod output;
mod own_run;
mod process;
mod program;
mod pseudo_file;
mod random;
pub mod reaction;
mod read_budget;
mod record_folder;
pub mod rt;
mod script_output;
pub mod settings;
mod smi;
mod state_folder;
pub mod switch_script;
mod system;
mod terminal;
mod this_machine;
pub mod threads;
pub mod tracefs;
mod trusted_path;
mod user;
mod wake_file;
pub mod work;

pub use console::{ConsoleEvent, ScreenConsole};
pub use device_reads::DeviceReads;
pub use folder_lock::{FolderLock, LockOutcome, LockOwner};
pub use input::{
    Lines, count_names, file_version, identity, is_dir, open_input, read_user_file, whole_path, written_at,
};
pub use kernel_list::KernelList;
pub use kernel_log::KernelLog;
pub use machine::{MachineFiles, NAMES_LIMIT, READ_LIMIT};
pub use output::{
    check_access, check_executable, check_writable, is_standard_output, make_private_file, write_document,
    write_user_file,
};
pub use own_run::{OwnRun, end_with};
pub use process::{
    ProcessId, is_own, is_root, make_new_files_private, open_files_limit, peak_memory_kib, process_start,
    replace_by, resident_kib, start_apart,
};
pub use program::{HeldProgram, ProgramEnd, find_program, owned_by_root, sets_ids};
pub use pseudo_file::{HeldFile, RereadFile, write_and_hold};
pub use random::{random_u64, secret};
pub use record_folder::{RecordDisk, RecordFolder};
pub use smi::SmiCounter;
pub use state_folder::state_folder;
pub use system::{machine, memory_kib, node_name, release};
pub use terminal::{
    HiddenInput, TerminalState, columns_of, in_foreground, is_character_device, terminal_size,
};
pub use this_machine::is_this_machine;
pub use trusted_path::CreatedDirs;
pub use user::{ProgramUser, find_user};
pub use wake_file::WakeFile;
