//! The targets of the commands of the table, all of them made for one test, and the signs that something happened to
//! them.

use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    net::{TcpListener, UdpSocket},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        linux::net::SocketAddrExt as _,
        unix::{
            fs::{MetadataExt as _, PermissionsExt as _, chown, symlink},
            net::{SocketAddr, UnixDatagram, UnixListener},
            process::CommandExt as _,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use kontekst_sandbox::WritableDir;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;

/// A text that no command may read.
pub(super) const CANARY: &str = "CANARY-5f1e";

/// The effect that a command notices itself.
const EFFECT: &str = "EFFECT";

pub(super) struct Targets {
    /// The parent of the working directory, of `$OUT` and of what is hidden.
    root: TempDir,
    temporary: TempDir,
    process: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    streams: Vec<UnixListener>,
    /// The second one is not known by its absolute path, so only the filters hold commands back from it.
    datagrams: [UnixDatagram; 2],
    terminal: OwnedFd,
    variables: Vec<(String, String)>,
    mark: String,
    before: BTreeMap<String, String>,
}

impl Targets {
    /// Makes everything for a user, who can be another one if this is root.
    pub(super) fn new(user: Option<u32>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let mark = format!("{}{:05}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let root = TempDir::with_prefix_in("escapes-", base(user)).unwrap();
        let temporary = TempDir::with_prefix_in("escapes-", "/tmp").unwrap();
        let at = |path: &str| root.path().join(path);
        make_files(root.path(), temporary.path());
        let streams = [at("out/sock"), at("work/sock"), temporary.path().join("sock")];
        let mut streams: Vec<_> = streams.iter().map(|path| UnixListener::bind(path).unwrap()).collect();
        let name = SocketAddr::from_abstract_name(format!("kontekst-{mark}")).unwrap();
        streams.push(UnixListener::bind_addr(&name).unwrap());
        let out = fs::File::open(at("out")).unwrap();
        let relative = PathBuf::from(format!("/proc/self/fd/{}/relative", out.as_raw_fd()));
        let datagrams = [at("out/datagram"), relative].map(|path| UnixDatagram::bind(path).unwrap());
        let tcp = TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0")).unwrap();
        let udp = UdpSocket::bind("0.0.0.0:0").unwrap();
        streams.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        datagrams.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        let (terminal, tty) = terminal();
        give_to(user, root.path());
        give_to(user, temporary.path());
        user.inspect(|user| chown(&tty, Some(*user), None).unwrap());
        let other = if user.is_some() { 0 } else { 65534 };
        set_user_id(&at("out/set-user-id"), other);
        let process = process(&at("out"), &mark, &tty, user);
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let user_id = user.unwrap_or_else(|| rustix::process::getuid().as_raw());
        let variables = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".to_owned()),
            ("OUT", text(at("out"))),
            ("HOME", text(at("out/home"))),
            ("TEMP", text(temporary.path().to_owned())),
            ("HIDDEN", text(at("hidden"))),
            ("HIDDEN_FILE", text(at("hidden-file"))),
            ("ROOT_ONLY", text(at("hidden/key"))),
            ("REPO", text(at("repo/.git"))),
            ("TREE", text(at("repo/.git/worktrees/linked"))),
            ("SOCK", text(at("out/sock"))),
            ("WORK_SOCK", text(at("work/sock"))),
            ("TEMP_SOCK", text(temporary.path().join("sock"))),
            ("DATAGRAM", text(at("out/datagram"))),
            ("RELATIVE", text(at("out/relative"))),
            ("ABSTRACT", format!("kontekst-{mark}")),
            ("PORT", tcp.local_addr().unwrap().port().to_string()),
            ("UDP", udp.local_addr().unwrap().port().to_string()),
            ("ADDRESS", "127.1.2.3".to_owned()),
            ("NETLINK", std::process::id().to_string()),
            ("TTY", tty),
            ("PID", process.id().to_string()),
            ("MARK", mark.clone()),
            ("USER_ID", user_id.to_string()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value)).into();
        let mut targets = Self {
            root,
            temporary,
            process,
            tcp,
            udp,
            streams,
            datagrams,
            terminal,
            variables,
            mark,
            before: BTreeMap::new(),
        };
        targets.before = targets.state();
        targets
    }

    pub(super) fn work_dir(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub(super) fn variables(&self) -> Vec<(String, String)> {
        self.variables.clone()
    }

    pub(super) fn hidden(&self) -> Vec<PathBuf> {
        ["hidden", "hidden-file"].map(|name| self.root.path().join(name)).into()
    }

    /// The paths in the working directory that commands may not change.
    pub(super) fn read_only() -> Vec<PathBuf> {
        PROTECTED.iter().map(PathBuf::from).collect()
    }

    /// The directories of a repository in which commands in a working tree of it may write.
    pub(super) fn writable(&self) -> Vec<WritableDir> {
        let git = self.root.path().join("repo/.git");
        let steers = TREE_STEERS.iter().map(PathBuf::from).collect();
        let shared = WRITTEN.iter().map(|name| WritableDir { path: git.join(name), read_only: Vec::new() });
        shared.chain([WritableDir { path: git.join("worktrees/linked"), read_only: steers }]).collect()
    }

    /// Returns what happened to the targets since they were made, and what the output of a command gives away.
    pub(super) fn effects(&self, output: &str, protects: bool) -> Vec<String> {
        let now = self.state();
        let names = self.before.keys().chain(now.keys().filter(|name| !self.before.contains_key(*name)));
        let unchecked = if protects { "written/" } else { "work/" };
        let is_checked = |name: &&String| !name.starts_with(unchecked);
        let changed = names.filter(is_checked).filter(|name| self.before.get(*name) != now.get(*name));
        let changed =
            changed.map(|name| format!("{name}: {:?} became {:?}", self.before.get(name), now.get(name)));
        let mut effects: Vec<String> = changed.collect();
        effects.extend(output.contains(CANARY).then(|| "a secret was read".to_owned()));
        effects.extend(output.contains(EFFECT).then(|| format!("it says {EFFECT}")));
        effects.extend(self.reached());
        effects.extend(self.survivors());
        effects
    }

    /// Everything outside and every protected file, with its metadata and content, and the state of the process.
    fn state(&self) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        for name in ["out", "hidden", "hidden-file"] {
            add_files(&self.root.path().join(name), name, &mut state);
        }
        add_files(self.temporary.path(), "temporary", &mut state);
        for path in PROTECTED {
            add_files(&self.work_dir().join(path), &format!("work/{path}"), &mut state);
        }
        add_repository(&self.root.path().join("repo/.git"), &mut state);
        for left in self.left_files() {
            state.insert(left, "exists".to_owned());
        }
        let process = PathBuf::from(format!("/proc/{}", self.process.id()));
        for name in ["comm", "oom_score_adj", "limits", "timerslack_ns", "coredump_filter", "cgroup"] {
            state.insert(
                format!("process/{name}"),
                fs::read_to_string(process.join(name)).unwrap_or_default(),
            );
        }
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        let lines = status.lines().filter(|line| {
            ["State", "Cpus_allowed", "TracerPid", "NSpid", "SigPnd", "ShdPnd"]
                .iter()
                .any(|key| line.starts_with(key))
        });
        state.insert("process/status".to_owned(), lines.collect::<Vec<_>>().join(", "));
        let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.split_whitespace().collect();
        // Priority and nice value, real-time priority and policy.
        let of_schedule = [17, 18, 39, 40].map(|at| fields.get(at).copied().unwrap_or_default());
        state.insert("process/schedule".to_owned(), of_schedule.join(" "));
        state
    }

    /// Files of commands in directories of the system.
    fn left_files(&self) -> Vec<String> {
        let paths =
            ["/tmp", "/var/tmp", "/dev/shm", "/run", ""].map(|dir| format!("{dir}/left-{}", self.mark));
        paths.into_iter().filter(|path| fs::symlink_metadata(path).is_ok()).collect()
    }

    /// Connections and messages that arrived, and text on the terminal.
    fn reached(&self) -> Vec<String> {
        let mut reached = Vec::new();
        let mut note = |what: &str, result: std::io::Result<()>| match result {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            result => reached.push(format!("{what} was reached: {result:?}")),
        };
        note("TCP", self.tcp.accept().map(drop));
        note("UDP", self.udp.recv(&mut [0; 8]).map(drop));
        for (name, stream) in
            ["out/sock", "work/sock", "temporary/sock", "abstract"].iter().zip(&self.streams)
        {
            note(name, stream.accept().map(drop));
        }
        for datagram in &self.datagrams {
            note("a datagram socket", datagram.recv(&mut [0; 8]).map(drop));
        }
        let mut text = [0; 64];
        note("the terminal", rustix::io::read(&self.terminal, &mut text).map(drop).map_err(Into::into));
        reached
    }

    /// Processes with the mark of the test that are not the target.
    fn survivors(&self) -> Vec<String> {
        let mut survivors = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let is_target = entry.file_name() == self.process.id().to_string().as_str();
            if line.contains(&self.mark) && !is_target {
                survivors.push(format!("still runs: {line}"));
            }
        }
        survivors
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
        // Removes what commands could make because a layer failed or there was none.
        for path in self.left_files() {
            fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).ok();
        }
    }
}

/// The protected files of the working directory.
const PROTECTED: &[&str] = &[".git/hooks", ".git/config", ".github/workflows", "AGENTS.md", "sub/AGENTS.md"];

/// The directories of a repository in which git writes for all working trees.
const WRITTEN: &[&str] = &["objects", "refs", "logs"];
/// The names that steer git in the git directory of a working tree.
const TREE_STEERS: &[&str] = &["commondir", "gitdir", "config.worktree", "modules"];

/// Adds what commands may not change of a repository. Where namespaces are missing, that is all of it.
fn add_repository(git: &Path, state: &mut BTreeMap<String, String>) {
    let names = |dir: &Path| {
        let names = fs::read_dir(dir).into_iter().flatten().flatten();
        let mut names: Vec<String> = names.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    for name in names(git) {
        let prefix = if WRITTEN.contains(&&*name) { "written" } else { "repository" };
        if name != "worktrees" {
            add_files(&git.join(&name), &format!("{prefix}/{name}"), state);
        }
    }
    state.insert("repository".to_owned(), format!("{:?} {:?}", names(git), names(&git.join("worktrees"))));
    for name in TREE_STEERS {
        add_files(&git.join("worktrees/linked").join(name), &format!("repository/linked/{name}"), state);
    }
    add_files(&git.join("worktrees/other"), "repository/other", state);
    add_files(&git.join("worktrees/linked"), "written/linked", state);
}

fn make_files(root: &Path, temporary: &Path) {
    let write = |path: PathBuf, text: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for path in ["out/file", "out/dir/inner", "out/home/.profile", "out/home/.bashrc"] {
        write(root.join(path), "old\n");
    }
    write(root.join("out/secret"), CANARY);
    write(root.join("hidden/key"), CANARY);
    write(root.join("hidden-file"), CANARY);
    fs::create_dir(root.join("out/empty")).unwrap();
    for path in [
        "HEAD",
        "config",
        "index",
        "packed-refs",
        "hooks/pre-commit",
        "info/exclude",
        "objects/x",
        "refs/x",
        "logs/x",
    ] {
        write(root.join("repo/.git").join(path), "old\n");
    }
    for path in [
        "other/HEAD",
        "linked/HEAD",
        "linked/index",
        "linked/commondir",
        "linked/gitdir",
        "linked/config.worktree",
    ] {
        write(root.join("repo/.git/worktrees").join(path), "old\n");
    }
    fs::create_dir(root.join("repo/.git/worktrees/linked/modules")).unwrap();
    symlink("file", root.join("out/link")).unwrap();
    write(temporary.join("file"), "old\n");
    for path in ["mine", "mine2", "mine3", "other/x", ".git/HEAD", ".git/objects/x", ".git/refs/x"] {
        write(root.join("work").join(path), "mine\n");
    }
    write(root.join("work/.git/HEAD"), "ref: refs/heads/main\n");
    for path in PROTECTED {
        let name = if *path == ".git/hooks" { "pre-commit.sample" } else { "ci.yml" };
        let path = root.join("work").join(path);
        let is_dir = path.extension().is_none() && path.file_name() != Some("config".as_ref());
        write(if is_dir { path.join(name) } else { path }, "[core]\n");
    }
    fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(temporary, fs::Permissions::from_mode(0o755)).unwrap();
}

fn give_to(user: Option<u32>, dir: &Path) {
    let Some(user) = user else { return };
    std::os::unix::fs::lchown(dir, Some(user), Some(user)).unwrap();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            give_to(Some(user), &entry.path());
        } else {
            std::os::unix::fs::lchown(entry.path(), Some(user), Some(user)).unwrap();
        }
    }
}

/// Returns a directory that the user can reach, and that is not one of those for temporary files, which the sandbox hides.
/// The build folder of root may be below its home, which nobody else enters.
pub(super) fn base(user: Option<u32>) -> &'static Path {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let is_open = |dir: &Path| fs::metadata(dir).is_ok_and(|meta| meta.mode() & 0o001 != 0);
    if user.is_none() || built.ancestors().all(is_open) { built } else { Path::new("/var/lib") }
}

/// A shell that runs with the rights of another user, if this is root.
fn set_user_id(path: &Path, owner: u32) {
    fs::copy("/bin/sh", path).unwrap();
    chown(path, Some(owner), None).ok();
    fs::set_permissions(path, fs::Permissions::from_mode(0o4755)).unwrap();
}

/// Returns the end of a new terminal that shows what is written on it, and the path of the terminal.
fn terminal() -> (OwnedFd, String) {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
    rustix::io::ioctl_fionbio(&screen, true).unwrap();
    (screen, name)
}

/// A process of the same user that sleeps, with a secret in its environment.
fn process(dir: &Path, mark: &str, tty: &str, user: Option<u32>) -> Child {
    use std::os::unix::fs::OpenOptionsExt as _;
    let no_control = rustix::fs::OFlags::NOCTTY.bits().cast_signed();
    let stdin = fs::OpenOptions::new().read(true).write(true).custom_flags(no_control).open(tty).unwrap();
    let mut command = Command::new("/bin/sleep");
    command.arg(format!("1000.{mark}")).env_clear().env("SECRET", CANARY).current_dir(dir);
    command.stdin(Stdio::from(stdin)).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let process = command.spawn().unwrap();
    let stat = format!("/proc/{}/stat", process.id());
    crate::wait::wait_until("the process sleeps", || {
        fs::read_to_string(&stat).is_ok_and(|stat| stat.contains("(sleep) S"))
    });
    process
}

fn add_files(path: &Path, name: &str, state: &mut BTreeMap<String, String>) {
    let Ok(metadata) = path.symlink_metadata() else { return };
    let mut text = format!(
        "mode {:o} of {}:{}, {} bytes, {} links, changed {}.{}",
        metadata.mode(),
        metadata.uid(),
        metadata.gid(),
        if metadata.is_dir() { 0 } else { metadata.size() },
        metadata.nlink(),
        metadata.mtime(),
        metadata.mtime_nsec()
    );
    if metadata.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let inner = entry.file_name();
            add_files(&entry.path(), &format!("{name}/{}", inner.to_string_lossy()), state);
        }
    } else if metadata.is_symlink() {
        text += &format!(" to {:?}", fs::read_link(path));
    } else if metadata.is_file() && metadata.size() < 10_000 {
        text += &format!(": {:?}", String::from_utf8_lossy(&fs::read(path).unwrap_or_default()));
    }
    state.insert(name.to_owned(), text);
}
