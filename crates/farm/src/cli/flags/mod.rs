//! Flags that commands have in common.

pub mod farm_flags;
pub mod objects_flag;
pub mod store_flag;
pub mod tls_flags;
pub mod webhook_flags;
