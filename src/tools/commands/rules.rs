//! The rules by which a command line runs without a question, and those that are proposed for one.

use super::line::{CommandLine, SimpleCommand};

/// The first words of a command, such as `cargo test`. They are compared word by word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule(Vec<String>);

/// Programs that run another program, or text as a program, so that their own name says nothing. A rule covers only
/// exactly the same words.
#[rustfmt::skip]
const WRAPPERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "toybox", "eval", "exec", "command", "builtin", ".", "source",
    "trap", "alias", "env", "xargs", "parallel", "sudo", "doas", "su", "pkexec", "runuser", "chroot", "unshare",
    "nsenter", "setpriv", "nice", "ionice", "chrt", "taskset", "nohup", "setsid", "stdbuf", "timeout", "time", "watch",
    "script", "expect", "flock", "strace", "ltrace", "gdb", "ssh", "entr", "systemd-run", "at", "batch", "crontab",
];

/// Interpreters, whose first argument can be text that is a program.
#[rustfmt::skip]
const INTERPRETERS: &[&str] = &[
    "python", "python3", "perl", "ruby", "node", "deno", "bun", "php", "lua", "awk", "gawk", "mawk", "sed", "ed", "vi",
    "vim", "emacs", "tclsh", "Rscript", "julia", "osascript",
];

/// Arguments with which some programs run others, or write files. A long one may be cut, as many programs allow.
const RUNNING_ARGUMENTS: &[(&str, &[&str])] = &[
    ("find", &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"]),
    ("fd", &["-x", "--exec", "-X", "--exec-batch"]),
    (
        "git",
        &[
            "-c",
            "--config-env",
            "--exec-path",
            "--ext-diff",
            "--upload-pack",
            "--receive-pack",
            "-O",
            "--output",
        ],
    ),
    ("tar", &["--to-command", "--checkpoint-action", "--use-compress-program", "-I"]),
    ("sort", &["--compress-program"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("rsync", &["-e", "--rsh"]),
    ("go", &["-exec", "-toolexec"]),
];

/// Programs whose second word says what they do.
#[rustfmt::skip]
const WITH_SUBCOMMANDS: &[&str] = &[
    "cargo", "git", "go", "npm", "pnpm", "yarn", "bun", "deno", "pip", "pip3", "uv", "poetry", "docker", "podman",
    "kubectl", "dotnet", "mvn", "gradle", "./gradlew", "./mvnw", "make", "just", "rustup", "bundle", "rake", "mix",
    "swift", "zig", "meson", "stack", "cabal", "terraform", "systemctl", "gh",
];

/// Programs that build or test, or that only read, so that their arguments matter little.
#[rustfmt::skip]
const ALONE: &[&str] = &[
    "pytest", "tox", "ruff", "mypy", "black", "eslint", "tsc", "jest", "vitest", "ninja", "ctest", "rspec", "phpunit",
];

/// Programs that only read files and write to their output, whatever their arguments.
#[rustfmt::skip]
pub(super) const READERS: &[&str] = &[
    "ls", "cat", "grep", "egrep", "fgrep", "rg", "wc", "head", "tail", "pwd", "echo", "printf", "diff", "cmp", "stat",
    "du", "df", "which", "true", "false", "test", "date", "basename", "dirname", "realpath", "readlink", "cut", "tr",
    "uname", "whoami", "id", "nl", "od", "md5sum", "sha256sum", "cd",
];

impl Rule {
    /// Reads a rule: words with blanks between them. Returns `None` if there is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    fn covers(&self, words: &[String]) -> bool {
        if runs_another(words) { self.0 == words } else { words.starts_with(&self.0) }
    }
}

/// Returns true if every command of the line is covered by one of the rules.
pub(super) fn allow(rules: &[Rule], line: &CommandLine) -> bool {
    let is_covered = |command: &SimpleCommand| {
        command.words.as_ref().is_some_and(|words| rules.iter().any(|rule| rule.covers(words)))
    };
    line.is_plain && line.commands.iter().all(is_covered)
}

/// Returns true if every command of the line is one that only reads.
pub(super) fn only_reads(line: &CommandLine) -> bool {
    let reads = |command: &SimpleCommand| {
        let words = command.words.as_ref();
        words.is_some_and(|words| READERS.contains(&words[0].as_str()) && !runs_another(words))
    };
    line.is_plain && line.commands.iter().all(reads)
}

/// Returns the first words of each command that a rule for this line would have, without those that `rules` cover.
/// Empty if no rules could cover the line.
pub(super) fn prefixes(rules: &[Rule], line: &CommandLine) -> Vec<String> {
    let mut prefixes = Vec::new();
    if !line.is_plain {
        return prefixes;
    }
    for words in line.commands.iter().filter_map(|command| command.words.as_ref()) {
        if rules.iter().any(|rule| rule.covers(words)) {
            continue;
        }
        let prefix = &words[..prefix_length(words)];
        // A word with a blank in it would be two words of a rule.
        if prefix.iter().any(|word| word.is_empty() || word.contains(char::is_whitespace)) {
            return Vec::new();
        }
        let prefix = prefix.join(" ");
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    prefixes
}

fn prefix_length(words: &[String]) -> usize {
    let name = words[0].as_str();
    let is_plain =
        |word: &String| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_:".contains(&byte));
    if runs_another(words) || INTERPRETERS.contains(&name) {
        return words.len();
    }
    match words.get(1) {
        Some(second) if WITH_SUBCOMMANDS.contains(&name) && !second.starts_with('-') && is_plain(second) => 2,
        _ if ALONE.contains(&name) || READERS.contains(&name) => 1,
        _ => words.len(),
    }
}

fn runs_another(words: &[String]) -> bool {
    let Some(name) = words.first().and_then(|word| word.rsplit('/').next()) else { return true };
    let has = |arguments: &&[&str]| {
        words[1..].iter().any(|word| {
            let option = word.split('=').next().unwrap_or_default();
            let is_part =
                |argument: &str| option.len() > 2 && option.starts_with("--") && argument.starts_with(option);
            arguments.contains(&option)
                || arguments.iter().any(|argument| is_part(argument))
                || (option.starts_with("-c") && arguments.contains(&"-c") && name == "git")
        })
    };
    WRAPPERS.contains(&name)
        || RUNNING_ARGUMENTS.iter().any(|(program, found)| *program == name && has(found))
}

#[cfg(test)]
mod tests {
    use super::{super::line::read, *};

    fn rules(rules: &[&str]) -> Vec<Rule> {
        rules.iter().filter_map(|rule| Rule::parse(rule)).collect()
    }

    #[test]
    fn a_rule_covers_commands_by_their_first_words() {
        let rules =
            rules(&["cargo test", "git diff", "ls", "sh", "env", "xargs", "find", "sudo", "timeout 9 ls"]);
        for line in [
            "cargo test",
            "cargo test -q --lib x",
            "cargo test && git diff --stat",
            "git diff | ls",
            "'cargo' \"test\"",
            "find . -name x",
            "timeout 9 ls",
            "cargo test 2>&1",
        ] {
            assert!(allow(&rules, &read(line).unwrap()), "{line}");
        }
        for line in [
            "cargo",
            "cargo build",
            "cargo testx",
            "cargo -q test",
            "./cargo test",
            "/usr/bin/cargo test",
            "cargo test && rm x",
            "cargo test; rm x",
            "rm x | cargo test",
            "cargo test\nrm x",
            "cargo test > x",
            "cargo test $(rm x)",
            "LD_PRELOAD=x ls",
            "sh -c 'rm x'",
            "env rm x",
            "env X=1 rm x",
            "ls | xargs rm",
            "find . -exec rm {} +",
            "find . -delete",
            "sudo ls",
            "timeout 9 ls x",
            "eval ls",
            "exec ls",
            "git -c x.y=z diff",
        ] {
            assert!(!allow(&rules, &read(line).unwrap()), "{line}");
        }
        assert!(!allow(&[], &read("ls").unwrap()));
        let git = super::tests::rules(&["git"]);
        assert!(allow(&git, &read("git log").unwrap()));
        assert!(!allow(&git, &read("git -c core.pager=x log").unwrap()));
        for line in ["git -ccore.pager=x log", "git diff --output=x", "git diff --outp x", "git grep -O x"] {
            assert!(!allow(&git, &read(line).unwrap()), "{line}");
        }
    }

    #[test]
    fn the_proposed_rules_are_the_narrowest_that_make_sense_and_cover_the_line() {
        for (line, expect) in [
            ("cargo test -q", &["cargo test"][..]),
            ("git diff --stat; git log -3", &["git diff", "git log"]),
            ("cargo -q test", &["cargo -q test"]),
            ("pytest -q tests", &["pytest"]),
            ("grep -rn 'a b' src", &["grep"]),
            ("python3 -c 'print(1)'", &["python3 -c print(1)"]),
            ("python3 -c 'print(1, 2)'", &[]),
            ("rm -rf build", &["rm -rf build"]),
            ("sh -c ls", &["sh -c ls"]),
            ("ls | xargs rm", &["ls", "xargs rm"]),
            ("ls > x", &[]),
            ("ls $X", &[]),
        ] {
            let line = read(line).unwrap();
            let proposed = prefixes(&[], &line);
            assert_eq!(proposed, expect, "{line:?}");
            let proposed: Vec<&str> = proposed.iter().map(String::as_str).collect();
            assert!(proposed.is_empty() || allow(&rules(&proposed), &line), "{line:?}");
        }
        assert_eq!(prefixes(&rules(&["ls"]), &read("ls; cargo test").unwrap()), ["cargo test"]);
    }
}
