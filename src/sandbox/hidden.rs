//! The files of a user that no command reads: keys, passwords, and what other programs remember.

use std::{
    fs,
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, open};

/// Names below the home directory.
#[rustfmt::skip]
const HIDDEN: &[&str] = &[
    // Keys and the programs that hold them.
    ".ssh", ".gnupg", ".pki", ".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".kde/share/apps/kwallet",
    ".config/op", ".config/1Password", ".config/Bitwarden", ".config/keepassxc", ".1password", ".vault-token", ".age",
    ".config/age", ".config/sops", ".config/rclone", ".putty",
    // Clouds and services.
    ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/hub", ".config/glab-cli", ".kube", ".docker",
    ".config/containers", ".terraform.d", ".terraformrc", ".config/doctl", ".config/heroku", ".fly", ".config/netlify",
    ".config/configstore", ".wrangler", ".config/.wrangler", ".oci", ".bluemix", ".databrickscfg", ".snowflake",
    ".kaggle", ".cache/huggingface/token", ".huggingface",
    // Passwords in files.
    ".netrc", "_netrc", ".authinfo", ".authinfo.gpg", ".git-credentials", ".config/git/credentials", ".pgpass", ".my.cnf",
    ".mylogin.cnf", ".pypirc", ".npmrc", ".yarnrc.yml", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
    ".m2/settings.xml", ".gradle/gradle.properties", ".composer/auth.json", ".config/pip/pip.conf", ".rhosts", ".shosts",
    // Browsers and mail.
    ".mozilla", ".thunderbird", ".config/google-chrome", ".config/google-chrome-beta", ".config/chromium",
    ".config/BraveSoftware", ".config/microsoft-edge", ".config/opera", ".config/vivaldi", ".librewolf", ".zen",
    ".local/share/evolution", ".config/evolution", ".var/app", "snap/firefox", "snap/chromium", ".config/Signal",
    ".config/discord", ".config/Slack", ".local/share/TelegramDesktop", ".purple", ".weechat", ".config/weechat",
    // Wallets.
    ".bitcoin", ".ethereum", ".electrum", ".config/solana", ".monero",
    // Histories of what was typed and copied.
    ".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history",
    ".sqlite_history", ".lesshst", ".viminfo", ".local/share/fish/fish_history", ".local/share/klipper", ".Xauthority",
    ".ICEauthority", ".config/pulse/cookie",
    // Other agents, with their tokens and conversations.
    ".claude", ".claude.json", ".codex", ".gemini", ".config/github-copilot", ".local/share/opencode", ".aider.conf.yml",
    ".continue", ".kontekst",
];

/// Opens a file without reading it, so that a named pipe is not waited for.
#[cfg(target_os = "linux")]
const HANDLE: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const HANDLE: OFlags = OFlags::NONBLOCK;

/// Returns those of the paths that exist, as they are without links.
pub(super) fn existing(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = paths.iter().filter_map(|path| real_path(path)).collect();
    found.sort();
    found.dedup();
    found
}

fn real_path(path: &Path) -> Option<PathBuf> {
    let flags = OFlags::CLOEXEC | HANDLE;
    let handle = open(path, flags, Mode::empty()).ok()?;
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    Some(fs::read_link(link).unwrap_or_else(|_| path.to_owned()))
}

/// Returns the paths that are hidden for a user with this home directory. Most of them do not exist.
pub fn hidden_in_home(home: &Path) -> Vec<PathBuf> {
    HIDDEN.iter().map(|name| home.join(name)).collect()
}
