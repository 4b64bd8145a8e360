//! The seccomp filter: system calls that no command needs and that reach other processes or more of the kernel.

use std::{collections::BTreeMap, io};

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

use crate::job::Job;

/// Calls that are always refused.
const REFUSED: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Keys.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Parts of the kernel in which most holes were found.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_lookup_dcookie,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Calls that are refused without namespaces, because Landlock does not look at them: they change files that can be read,
/// or are seen by other programs.
const REFUSED_WITHOUT_NAMESPACES: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SYS_SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// Calls that change a process, by the argument that names it. Without namespaces only the caller itself, 0, may be named.
const OF_OTHERS: &[(c_long, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];

/// The bits of a file mode that give a program the rights of its owner or group.
const SET_ID: [u64; 2] = [libc::S_ISUID as u64, libc::S_ISGID as u64];

/// Calls that set a mode, by the argument that has it.
const MODES: &[(c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (SYS_FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// The flags with which a file is made. One without a name can get a name later.
const CREATING: [u64; 2] = [libc::O_CREAT as u64, (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64];

/// Calls that can make a file, by the argument that has the flags. The next one is the mode.
const OPENS: &[(c_long, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

// The same on all architectures; libc does not have them on each.
const SYS_FCHMODAT2: c_long = 452;
const SYS_SETXATTRAT: c_long = 463;
const SYS_REMOVEXATTRAT: c_long = 466;
const SYS_OPEN_TREE_ATTR: c_long = 467;
const SYS_FILE_SETATTR: c_long = 469;

/// Flags of `clone` for new namespaces.
const NAMESPACE_FLAGS: [u64; 7] = [
    libc::CLONE_NEWNS as u64,
    libc::CLONE_NEWCGROUP as u64,
    libc::CLONE_NEWUTS as u64,
    libc::CLONE_NEWIPC as u64,
    libc::CLONE_NEWUSER as u64,
    libc::CLONE_NEWPID as u64,
    libc::CLONE_NEWNET as u64,
];

/// Terminal requests that write into the input of a terminal: `TIOCSTI` and `TIOCLINUX`, whose type is another one with
/// each C library.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

/// `personality` values that are harmless: the usual one, and the question for the present one.
const PERSONALITIES: [u64; 2] = [0, 0xffff_ffff];

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Installs the filter for this process and all that it starts. It needs no privileges, once new ones are given up.
pub(super) fn install(job: &Job) -> io::Result<()> {
    let failed = |error: seccompiler::Error| io::Error::other(format!("seccomp: {error}"));
    let refused = rules(job).map_err(|error| failed(error.into()))?;
    apply(refused, libc::EPERM).map_err(failed)?;
    // Callers then use `clone` and `openat`, whose arguments a filter can see.
    apply(
        with_variants(Rules::from([(libc::SYS_clone3, Vec::new()), (libc::SYS_openat2, Vec::new())])),
        libc::ENOSYS,
    )
    .map_err(failed)
}

fn apply(rules: Rules, error: i32) -> Result<(), seccompiler::Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let refuse = SeccompAction::Errno(error.unsigned_abs());
    let program: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()?;
    seccompiler::apply_filter(&program)
}

fn rules(job: &Job) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let flag = |flag: &u64| argument(0, Compare::MaskedEq(*flag), *flag);
    rules.insert(libc::SYS_clone, NAMESPACE_FLAGS.iter().map(flag).collect::<Result<_, _>>()?);
    let request = |request: &u64| argument(1, Compare::Eq, *request);
    rules.insert(libc::SYS_ioctl, TERMINAL_INPUT.iter().map(request).collect::<Result<_, _>>()?);
    // A program with the rights of its owner would be left behind for other users.
    for (call, index) in MODES {
        rules.insert(
            *call,
            SET_ID
                .iter()
                .map(|bit| argument(*index, Compare::MaskedEq(*bit), *bit))
                .collect::<Result<_, _>>()?,
        );
    }
    for (call, flags) in OPENS {
        let modes = SET_ID.iter().flat_map(|bit| CREATING.map(|flag| creates_with((*flags, flag), *bit)));
        rules.insert(*call, modes.collect::<Result<_, _>>()?);
    }
    rules.insert(libc::SYS_personality, vec![none_of(0, &PERSONALITIES)?]);
    // In a network namespace of its own, a command can have servers and clients of its own. Unix sockets are found by
    // their path in any network namespace, so there are only nameless pairs of them.
    let has_network = job.network || job.layers.namespaces;
    let network =
        [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(|family| family.unsigned_abs().into());
    let families: &[u64] = if has_network { &network } else { &[] };
    let mut sockets = if families.is_empty() { Vec::new() } else { vec![none_of(0, families)?] };
    if job.network {
        sockets.extend(other_protocols()?);
        rules.extend(fast_open()?);
    }
    rules.insert(libc::SYS_socket, sockets);
    rules.insert(libc::SYS_socketpair, pairs_without_connection()?);
    if !has_network {
        // The pairs are connected, so only a server or another program could be meant.
        rules.extend([libc::SYS_bind, libc::SYS_connect].map(|call| (call, Vec::new())));
    }
    if !job.layers.namespaces {
        rules.extend(REFUSED_WITHOUT_NAMESPACES.iter().map(|call| (*call, Vec::new())));
        for (call, index) in OF_OTHERS {
            rules.insert(*call, vec![argument(*index, Compare::Ne, 0)?]);
        }
    }
    Ok(with_variants(rules))
}

/// Returns rules against pairs of sockets that are not bound to each other: a message from one of them can have the address of
/// another socket, which the filter cannot see.
fn pairs_without_connection() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    // The lowest four bits are the type, and the others are flags.
    const TYPES: u64 = 0xf;
    let connected = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(|kind| u64::from(kind.unsigned_abs()));
    let refused = (0..=TYPES).filter(|kind| !connected.contains(kind));
    let mut rules: Vec<SeccompRule> =
        refused.map(|kind| argument(1, Compare::MaskedEq(TYPES), kind)).collect::<Result<_, _>>()?;
    rules.push(argument(0, Compare::Ne, libc::AF_UNIX.unsigned_abs().into())?);
    Ok(rules)
}

/// Returns rules against protocols whose connections Landlock does not look at, such as multipath TCP, and against netlink
/// sockets that reach other programs.
fn other_protocols() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let known =
        [libc::IPPROTO_IP, libc::IPPROTO_ICMP, libc::IPPROTO_TCP, libc::IPPROTO_UDP, libc::IPPROTO_ICMPV6];
    let of_family = |family: i32, known: &[i32]| {
        let own = SeccompCondition::new(0, Length::Dword, Compare::Eq, family.unsigned_abs().into());
        let others = known.iter().map(|protocol| {
            SeccompCondition::new(2, Length::Dword, Compare::Ne, protocol.unsigned_abs().into())
        });
        SeccompRule::new([own].into_iter().chain(others).collect::<Result<_, _>>()?)
    };
    Ok(vec![
        of_family(libc::AF_INET, &known)?,
        of_family(libc::AF_INET6, &known)?,
        of_family(libc::AF_NETLINK, &[libc::NETLINK_ROUTE])?,
    ])
}

/// Returns rules against connections that are made with the first message, which Landlock does not look at.
fn fast_open() -> Result<Rules, seccompiler::BackendError> {
    let flag = libc::MSG_FASTOPEN.unsigned_abs().into();
    let calls = [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)];
    calls
        .into_iter()
        .map(|(call, index)| Ok((call, vec![argument(index, Compare::MaskedEq(flag), flag)?])))
        .collect()
}

/// Adds the numbers under which an x86-64 kernel with the x32 interface knows these calls, and all that only it has.
fn with_variants(rules: Rules) -> Rules {
    if cfg!(target_arch = "x86_64") {
        const X32: c_long = 0x4000_0000;
        let mut all: Rules = rules.keys().map(|call| (call | X32, Vec::new())).collect();
        all.extend((512..548).map(|call| (call | X32, Vec::new())));
        all.extend(rules);
        return all;
    }
    rules
}

fn argument(index: u8, compare: Compare, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(index, Length::Dword, compare, value)?])
}

/// `flags` is the argument with the flags, and the one of them that is looked for. `bit` is the one of the mode.
fn creates_with((flags, flag): (u8, u64), bit: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![
        SeccompCondition::new(flags, Length::Dword, Compare::MaskedEq(flag), flag)?,
        SeccompCondition::new(flags + 1, Length::Dword, Compare::MaskedEq(bit), bit)?,
    ])
}

fn none_of(index: u8, values: &[u64]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions =
        values.iter().map(|value| SeccompCondition::new(index, Length::Dword, Compare::Ne, *value));
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}
