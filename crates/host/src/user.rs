//! User to run a program as, from the system's lists of users and groups.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::ptr;

use rustix::process::{Gid, Uid};

/// Limit of groups of a process in the kernel (NGROUPS_MAX).
const MAX_GROUPS: usize = 65_536;

/// Limit of the size of a user's entry.
const MAX_ENTRY: usize = 1 << 20;

/// User with all its groups.
#[derive(Clone, Debug)]
pub struct ProgramUser {
    pub name: OsString,
    pub home: OsString,
    pub shell: OsString,
    pub uid: Uid,
    pub gid: Gid,
    pub groups: Vec<Gid>,
}

impl ProgramUser {
    /// Environment variables of the user.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("HOME", self.home.clone()),
            ("SHELL", self.shell.clone()),
            ("USER", self.name.clone()),
            ("LOGNAME", self.name.clone()),
        ]
    }
}

/// User with that name, if any (getpwnam(3), getgrouplist(3)).
///
/// # Errors
/// The lists cannot be read.
pub fn find_user(name: &str) -> io::Result<Option<ProgramUser>> {
    let Ok(asked) = CString::new(name) else { return Ok(None) };
    let mut buffer: Vec<libc::c_char> = vec![0; 1 << 10];
    loop {
        let mut entry = std::mem::MaybeUninit::<libc::passwd>::zeroed();
        let mut found: *mut libc::passwd = ptr::null_mut();
        // SAFETY: the name ends with a zero; entry, buffer and result are locals of the given
        // sizes.
        let failed = unsafe {
            libc::getpwnam_r(
                asked.as_ptr(),
                entry.as_mut_ptr(),
                buffer.as_mut_ptr(),
                buffer.len(),
                &mut found,
            )
        };
        if failed == libc::ERANGE && buffer.len() < MAX_ENTRY {
            buffer.resize(buffer.len() * 4, 0);
            continue;
        }
        // The error numbers for a missing user differ (getpwnam_r(3)).
        if found.is_null() {
            let none = matches!(failed, 0 | libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM);
            return if none { Ok(None) } else { Err(io::Error::from_raw_os_error(failed)) };
        }
        // SAFETY: the call has filled the entry, and its texts lie in the buffer.
        let entry = unsafe { entry.assume_init() };
        let text = |at: *const libc::c_char| {
            if at.is_null() {
                OsString::new()
            } else {
                // SAFETY: it points at a text in the buffer that ends with a zero.
                OsString::from_vec(unsafe { CStr::from_ptr(at) }.to_bytes().to_vec())
            }
        };
        let groups = groups_of(&asked, entry.pw_gid)?;
        return Ok(Some(ProgramUser {
            name: text(entry.pw_name),
            home: text(entry.pw_dir),
            shell: text(entry.pw_shell),
            uid: Uid::from_raw(entry.pw_uid),
            gid: Gid::from_raw(entry.pw_gid),
            groups,
        }));
    }
}

fn groups_of(name: &CStr, own: libc::gid_t) -> io::Result<Vec<Gid>> {
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    while groups.len() <= MAX_GROUPS {
        let mut count = groups.len() as libc::c_int;
        // SAFETY: the name ends with a zero, and the list has as many entries as are given.
        let listed = unsafe { libc::getgrouplist(name.as_ptr(), own, groups.as_mut_ptr(), &mut count) };
        if listed >= 0 {
            groups.truncate(count.max(0) as usize);
            return Ok(groups.into_iter().map(Gid::from_raw).collect());
        }
        groups.resize(groups.len() * 4, 0);
    }
    Err(io::Error::from_raw_os_error(libc::E2BIG))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_number_a_home_and_its_groups() {
        let Some(root) = find_user("root").unwrap() else { return };
        assert!(root.uid.is_root() && root.groups.contains(&root.gid));
        assert_eq!(root.variables()[2], ("USER", OsString::from("root")));
        for nobody in ["", "no such user here", "a\0b"] {
            assert!(find_user(nobody).unwrap().is_none(), "{nobody}");
        }
    }
}
