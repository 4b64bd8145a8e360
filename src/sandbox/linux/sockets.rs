//! The loopback device of a command, and the unix sockets of other programs.

use std::{ffi::OsString, fs, io, os::unix::ffi::OsStringExt as _, path::PathBuf};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, send, socket};

/// Returns the paths of the unix sockets in this network namespace that are bound to an absolute path.
///
/// A program can have bound its socket by a relative path, in another network namespace, or after this.
pub(super) fn bound() -> Vec<PathBuf> {
    let table = fs::read("/proc/net/unix").unwrap_or_default();
    let paths = table.split(|&byte| byte == b'\n').filter_map(|line| {
        // `Num RefCount Protocol Flags Type St Inode Path`, where numbers are padded with spaces.
        let start = line.iter().position(|&byte| byte == b'/')?;
        Some(PathBuf::from(OsString::from_vec(line[start..].to_vec())))
    });
    paths.collect()
}

/// Starts the loopback device of a new network namespace, with a message to the kernel.
pub(super) fn start_loopback() -> io::Result<()> {
    const RTM_NEWLINK: u16 = 16;
    const NLM_F_REQUEST_ACK: u16 = 1 | 4;
    const IFF_UP: u32 = 1;
    const LOOPBACK_INDEX: i32 = 1;
    let mut message = Vec::with_capacity(32);
    message.extend(32u32.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(NLM_F_REQUEST_ACK.to_ne_bytes());
    message.extend([0; 8]); // sequence and port
    message.extend([0; 4]); // family and type of the device
    message.extend(LOOPBACK_INDEX.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes()); // the flags that change
    let socket = socket(AddressFamily::NETLINK, SocketType::RAW, None)?; // 0, for routes
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 64];
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    // After the header of 16 bytes comes the error, negated.
    let error = answer[..length].get(16..20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match error {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::Error::other("the kernel sent no answer")),
    }
}
