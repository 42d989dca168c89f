//! Looks up the ids of users and groups by name, wherever the system keeps them.

#![expect(unsafe_code, reason = "the system's lists have no safe form")]

use std::ffi::CString;
use std::mem::MaybeUninit;

use super::sys;

/// Room for one entry of the system's list of groups, bytes; groups of many members are long.
const MAX_ENTRY_BYTES: usize = 1024 * 1024;

/// The user whose rights this process has.
#[must_use]
pub fn effective_user() -> u32 {
    sys::effective_user()
}

/// Looks up the number of a user.
#[must_use]
pub fn user_id(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let mut entry = MaybeUninit::<libc::passwd>::zeroed();
    let mut found = std::ptr::null_mut();
    let mut buffer = vec![0 as libc::c_char; 64 * 1024];
    // SAFETY: as in `group_id`.
    unsafe {
        let result = libc::getpwnam_r(
            name.as_ptr(),
            entry.as_mut_ptr(),
            buffer.as_mut_ptr(),
            buffer.len(),
            &raw mut found,
        );
        (result == 0 && !found.is_null()).then(|| (*found).pw_uid)
    }
}

/// Looks up the number of a group.
#[must_use]
pub fn group_id(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let mut entry = MaybeUninit::<libc::group>::zeroed();
    let mut found = std::ptr::null_mut();
    let mut buffer = vec![0 as libc::c_char; MAX_ENTRY_BYTES];
    // SAFETY: all pointers are valid for the call, the buffer has the length passed; the entry is read
    // only if the call says that it found one.
    unsafe {
        let result = libc::getgrnam_r(
            name.as_ptr(),
            entry.as_mut_ptr(),
            buffer.as_mut_ptr(),
            buffer.len(),
            &raw mut found,
        );
        (result == 0 && !found.is_null()).then(|| (*found).gr_gid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_are_found_by_name() {
        assert_eq!(user_id("root"), Some(0));
        assert_eq!(user_id("no such user"), None);
        assert_eq!(user_id("a\0b"), None);
        assert_eq!(group_id("root"), Some(0));
        assert_eq!(group_id("no such group"), None);
        assert_eq!(group_id("a\0b"), None);
    }
}
