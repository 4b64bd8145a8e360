//! Checks what is installed beside the program: the unit of systemd, the completion of the shell, and the manual.

use std::{
    fs,
    path::{Path, PathBuf},
};

use kontekst_core::Environment;

use super::{Checked, finding::Finding};

/// The longest start-up file of a shell that is read, in bytes.
const MAX_STARTUP_FILE: u64 = 1 << 20;

pub(super) fn check(checked: &Checked<'_>) -> Vec<Finding> {
    let places = Places::new(checked);
    let mut found = Vec::new();
    if cfg!(target_os = "linux") {
        found.push(unit(&places));
    }
    found.extend(completion(&places, checked.environment));
    found.push(manual(&places));
    found
}

/// The directories below which programs of this user and of all users are installed.
struct Places {
    user_home: PathBuf,
    /// `~/.config`, or what replaces it.
    config: PathBuf,
    /// `~/.local/share`, or what replaces it, then those of all users.
    data: Vec<PathBuf>,
}

impl Places {
    fn new(checked: &Checked<'_>) -> Self {
        let user_home = checked.home.user_home().unwrap_or(Path::new("/")).to_owned();
        let dir = |name: &str| checked.environment.non_empty(name).map(PathBuf::from);
        let own = dir("XDG_DATA_HOME").unwrap_or_else(|| user_home.join(".local/share"));
        let config = dir("XDG_CONFIG_HOME").unwrap_or_else(|| user_home.join(".config"));
        let data = vec![own, "/usr/local/share".into(), "/usr/share".into()];
        Self { user_home, config, data }
    }

    /// Returns the first of the files that exists below one of the data directories.
    fn in_data(&self, files: &[&str]) -> Option<PathBuf> {
        let paths = self.data.iter().flat_map(|dir| files.iter().map(move |file| dir.join(file)));
        paths.into_iter().find(|path| path.exists())
    }
}

/// Looks for the unit of systemd, which nobody has to have.
fn unit(places: &Places) -> Finding {
    const SUBJECT: &str = "systemd unit";
    let own = places.config.join("systemd/user");
    let dirs = [own.clone(), "/etc/systemd/user".into(), "/usr/lib/systemd/user".into()];
    let Some(unit) = dirs.iter().map(|dir| dir.join("kontekst.service")).find(|unit| unit.exists()) else {
        return Finding::ok(SUBJECT, "none, and none is needed: a command starts the daemon");
    };
    if let Some(program) = program_of(&unit).filter(|program| !program.exists()) {
        let message = format!("{} starts {}, which is not there", unit.display(), program.display());
        return Finding::problem(SUBJECT, message).remedy("kontekst daemon install");
    }
    let is_wanted = |wants: &str, unit: &str| fs::symlink_metadata(own.join(wants).join(unit)).is_ok();
    let is_enabled = is_wanted("default.target.wants", "kontekst.service")
        || is_wanted("sockets.target.wants", "kontekst.socket");
    if is_enabled {
        return Finding::ok(SUBJECT, format!("{}, enabled", unit.display()));
    }
    let name = if unit.with_extension("socket").exists() { "kontekst.socket" } else { "kontekst.service" };
    Finding::warning(SUBJECT, format!("{} is there and not enabled", unit.display()))
        .remedy(format!("systemctl --user enable --now {name}"))
}

/// Returns the program that a unit starts, if its path is written in full.
fn program_of(unit: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(unit).ok()?;
    let start = text.lines().find_map(|line| line.trim().strip_prefix("ExecStart="))?;
    let program = start.split_whitespace().next()?.trim_matches('"');
    program.starts_with('/').then(|| program.into())
}

/// Looks for the completion of the user's shell. Returns `None` for a shell for which there is none.
fn completion(places: &Places, environment: &Environment) -> Option<Finding> {
    const SUBJECT: &str = "completion";
    let shell = environment.text("SHELL")?;
    let shell = shell.rsplit('/').next()?.to_owned();
    let (file, startup, remedy) = match &*shell {
        "bash" => (
            places.in_data(&["bash-completion/completions/kontekst"]),
            vec![".bashrc", ".bash_profile", ".bash_completion"],
            "echo 'eval \"$(kontekst completions bash)\"' >> ~/.bashrc",
        ),
        "zsh" => (
            places.in_data(&["zsh/site-functions/_kontekst", "zsh/vendor-completions/_kontekst"]),
            vec![".zshrc", ".zfunc/_kontekst"],
            "mkdir -p ~/.zfunc && kontekst completions zsh > ~/.zfunc/_kontekst   # a directory in $fpath",
        ),
        "fish" => (
            Some(places.config.join("fish/completions/kontekst.fish"))
                .filter(|path| path.exists())
                .or_else(|| places.in_data(&["fish/vendor_completions.d/kontekst.fish"])),
            Vec::new(),
            "kontekst completions fish > ~/.config/fish/completions/kontekst.fish",
        ),
        _ => return None,
    };
    let startup = startup.iter().map(|name| places.user_home.join(name));
    let named = startup.into_iter().find(|path| names_completion(path));
    Some(match file.or(named) {
        Some(file) => Finding::ok(SUBJECT, format!("{shell}: {}", file.display())),
        None => Finding::warning(SUBJECT, format!("{shell} does not complete the words of kontekst"))
            .remedy(remedy),
    })
}

/// Returns true if a start-up file of a shell loads the completion, or is the completion.
fn names_completion(path: &Path) -> bool {
    let text = kontekst_store::config::file::read_text(path, MAX_STARTUP_FILE).unwrap_or_default();
    text.contains("kontekst completions") || text.contains("#compdef kontekst")
}

fn manual(places: &Places) -> Finding {
    const SUBJECT: &str = "manual";
    match places.in_data(&["man/man1/kontekst.1", "man/man1/kontekst.1.gz"]) {
        Some(page) => Finding::ok(SUBJECT, page.display().to_string()),
        None => Finding::warning(SUBJECT, "`man kontekst` finds nothing")
            .remedy("kontekst man --install ~/.local/share/man"),
    }
}
