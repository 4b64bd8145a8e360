//! The rules by which a command line runs without a question, and those that are proposed for one.

use super::line::{CommandLine, SimpleCommand};

/// The first words of a command, such as `cargo test`. They are compared word by word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tools) struct Rule(Vec<String>);

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
    pub(in crate::tools) fn parse(text: &str) -> Option<Self> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    /// Returns true if the rule may let the command run.
    pub(in crate::tools) fn covers(&self, words: &[String]) -> bool {
        if runs_another(words) { self.0 == words } else { words.starts_with(&self.0) }
    }

    /// Returns true if the command may be one that the rule is against: also if it is started by its path, with options
    /// before its second word, or by another program.
    pub(in crate::tools) fn touches(&self, words: &[String]) -> bool {
        let Some(program) = words.first() else { return true };
        if runs_another(words) || INTERPRETERS.contains(&base_name(program)) {
            let is_separator = |c: char| c.is_whitespace() || ";&|(){}[]'\"`,".contains(c);
            let parts: Vec<&str> = words.iter().flat_map(|word| word.split(is_separator)).collect();
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            return (0..parts.len()).any(|first| self.begins(&parts[first..]));
        }
        self.begins(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Returns true if the words begin with those of the rule. Options with a value each may stand between them, as in
    /// `git -C dir push`.
    fn begins(&self, words: &[&str]) -> bool {
        let ([program, rest @ ..], [own_program, own_rest @ ..]) = (words, &self.0[..]) else { return false };
        if base_name(program) != base_name(own_program) {
            return false;
        }
        let (mut rest, mut is_value) = (rest.iter(), false);
        own_rest.iter().all(|expected| {
            loop {
                match rest.next() {
                    None => break false,
                    Some(word) if word == expected => break true,
                    Some(word) if word.starts_with('-') => is_value = true,
                    Some(_) if is_value => is_value = false,
                    Some(_) => break false,
                }
            }
        })
    }

    /// Returns the number of words.
    pub(in crate::tools) fn length(&self) -> usize {
        self.0.len()
    }
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Returns true if every command of the line is one that only reads.
pub(super) fn only_reads(line: &CommandLine) -> bool {
    let reads = |command: &SimpleCommand| {
        let words = command.words.as_ref();
        words.is_some_and(|words| READERS.contains(&words[0].as_str()) && !runs_another(words))
    };
    line.is_plain && line.commands.iter().all(reads)
}

/// Returns the first words of a command that a rule for it would have. `None` if no rule could name them.
pub(super) fn prefix(words: &[String]) -> Option<String> {
    let prefix = words.get(..prefix_length(words))?;
    // A word with a blank in it would be two words of a rule.
    let is_word = |word: &String| !word.is_empty() && !word.contains(char::is_whitespace);
    prefix.iter().all(is_word).then(|| prefix.join(" "))
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
    let Some(name) = words.first().map(|word| base_name(word)) else { return true };
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

    fn allow(rules: &[Rule], line: &CommandLine) -> bool {
        let covers = |words: &[String]| rules.iter().any(|rule| rule.covers(words));
        line.is_plain && line.commands.iter().all(|command| command.words.as_deref().is_some_and(covers))
    }

    #[test]
    fn a_rule_against_a_command_is_also_against_its_other_spellings() {
        let push = Rule::parse("git push").unwrap();
        let touches = |line: &str| {
            let line = read(line).unwrap();
            line.commands.iter().filter_map(|one| one.words.as_deref()).any(|words| push.touches(words))
        };
        for line in [
            "git push",
            "git push --force",
            "git -C .. --no-pager push",
            "git -c a=b push origin",
            "/usr/bin/git push",
            "env git push",
            "sudo -u ada /usr/bin/git -C x push",
            "sh -c 'cd x; git push'",
            "ls | xargs git push",
            "ls && git push > log",
            "python3 -c 'run([\"git\", \"push\"])'",
        ] {
            assert!(touches(line), "{line}");
        }
        for line in ["git pull", "git log push", "git commit -m x push", "echo git push", "gitpush", "git"] {
            assert!(!touches(line), "{line}");
        }
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
            let proposed: Option<Vec<String>> =
                line.commands.iter().map(|command| prefix(command.words.as_deref()?)).collect();
            let proposed = proposed.filter(|_| line.is_plain).unwrap_or_default();
            assert_eq!(proposed, expect, "{line:?}");
            let proposed: Vec<&str> = proposed.iter().map(String::as_str).collect();
            assert!(proposed.is_empty() || allow(&rules(&proposed), &line), "{line:?}");
        }
    }
}
