//! Rules about commands: real shells run random lines that rules allow, and nothing but the programs that the rules name may
//! run or write then.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::hostile_input::{Random, rounds};

use super::TestPolicy;

/// Rules about programs that can run others or write files.
#[rustfmt::skip]
const RULES_OF_MANY: &[&str] = &[
    "git", "git grep", "git archive", "git format-patch", "git clone", "git bisect", "git submodule",
    "git log", "git diff", "git fetch", "git rebase", "fd", "tar", "rsync", "go test", "go vet", "sort",
    "man", "split", "ssh-keygen", "zip", "find", "rg", "uniq", "cargo test", "cargo", "make test", "pytest",
    "npm test", "uv run", "less", "xargs", "env", "diff", "python3", "python3 -m pytest", "python3 x.py",
    "perl", "node", "awk", "sed",
];

/// Lines that none of these rules covers.
#[rustfmt::skip]
const NOT_COVERED: &[&str] = &[
    "git grep -O./evil x", "git grep -O ./evil x", "git grep -nO./evil x",
    "git grep --open-files-in-pager=./evil x", "git grep --open-files=./evil x", "git grep -e -- -O./evil",
    "git archive -o pwn HEAD", "git format-patch -o pwn HEAD~1", "git clone -u ./evil . x",
    "git clone -c core.sshCommand=./evil x", "git bisect run ./evil", "git submodule foreach ./evil",
    "git log --output=pwn", "git diff --outp pwn", "git log --ext-diff", "git -c alias.x=!./evil x",
    "git -calias.x=!./evil x", "git --exec-path=. log", "git -C x log", "git --git-dir=x log",
    "git --config-env=a=b log", "git fetch --upload-pack ./evil .", "git fetch --upload=./evil .",
    "git rebase -x ./evil", "git rebase --exec ./evil", "git difftool -x ./evil", "git reflog expire --all",
    "git help -w log", "git diff --no-index a b", "fd -x rm", "fd -xrm", "fd -HIx rm", "fd -HIxrm",
    "fd --exec rm", "fd --exec=rm", "tar -I./evil -xf a", "tar -xIf ./evil a", "tar xIf ./evil a",
    "tar -F./evil -xf a", "tar --info-script=./evil xf a", "tar --new-volume-script ./evil xf a",
    "tar --rsh-command=./evil xf a", "tar --rmt-command=./evil xf a", "tar --to-c=./evil xf a",
    "tar --use=./evil xf a", "tar tf ./evil:a", "rsync -e./evil a b:", "rsync -ave ./evil a b:",
    "rsync --rsh=./evil a b:", "go test -exec ./evil", "go test --exec ./evil", "go test -exec=./evil",
    "go vet -vettool=./evil", "go vet --vettool ./evil", "go test -toolexec ./evil", "sort -o pwn x",
    "sort -opwn x", "sort -uo pwn x", "sort --output=pwn x", "sort --outp pwn x",
    "sort --compress-program=./evil x", "sort --compress-prog ./evil x", "man -P./evil ls",
    "man -P ./evil ls", "man -H./evil ls", "split --filter=./evil x", "split --filt ./evil x", "split x",
    "ssh-keygen -D ./evil.so", "ssh-keygen -D./evil.so", "zip -TT ./evil a b",
    "zip -T --unzip-command ./evil a b", "find . -exec ./evil ;", "find . -execdir ./evil {} +",
    "find . -delete", "find . -fprintf pwn x", "find . -ok ./evil", "rg --pre=./evil x", "rg --pre ./evil x",
    "rg --hostname-bin=./evil x", "uniq a pwn", "uniq -c a pwn", "cargo test --config build.rustc=./evil",
    "cargo --config build.rustc=./evil test", "cargo test --conf build.rustc=./evil",
    "cargo test --manifest-path x/Cargo.toml", "cargo clippy --fix", "cargo install x", "make test deploy",
    "make test SHELL=./evil", "make test -f evil.mk", "make test -fevil.mk", "make test -jf evil.mk",
    "make test --eval=x", "make -C evil test", "pytest -p evil", "pytest -pevil", "pytest -c evil.ini",
    "pytest -qc evil.ini", "pytest --override-ini=x=y", "pytest @evil", "npm test --script-shell=./evil",
    "npm --script-shell=./evil test", "uv run ./evil", "uv run pytest -p evil", "less +!./evil x",
    "xargs ./evil", "env ./evil", "env X=1 git log", "diff --to-file=x y", "GIT_PAGER=./evil git log",
    "PAGER=./evil git log", "python3 ./evil", "python3 -c x", "python3 -m x",
    "python3 -m pytest -p evil", "perl ./evil", "perl -e x", "node ./evil", "awk x a", "sed -i x a",
    "sed 1e./evil a", "printf -v x y", "read x", "test -v 'a[$(./evil)]'",
];

/// Lines that one of these rules covers.
#[rustfmt::skip]
const COVERED: &[&str] = &[
    "git log -3 --oneline", "git log -n 3 -p -- src", "git diff --stat HEAD~1", "git status -sb",
    "git show HEAD:a", "git grep -n x", "git grep -e x -- src", "git branch -a", "git branch new",
    "git commit -m x", "git commit -am x", "git add -A", "git push -u origin main", "git checkout -b x",
    "git stash", "git fetch --all --prune", "cargo test", "cargo test -q --lib x",
    "cargo test -p x -- --nocapture -Z unstable", "cargo test --features=a,b -j4",
    "cargo clippy --all-targets -- -D warnings", "go test ./... -run X -v", "sort -u x", "sort -t: -k2,2n x",
    "sort -nrk 2 x", "find . -name x -type f", "rg -n x src", "rg -tA x -tpy", "uniq -c", "uniq -c x",
    "make test", "make test -j4", "pytest -q -k x tests", "pytest -xvs", "npm test", "npm test -- --watch",
    "diff -u a b", "python3 x.py --all", "python3 -m pytest -q tests",
];

/// Returns a policy that allows the commands.
fn allowing(rules: &[&str]) -> TestPolicy {
    let rules: Vec<String> = rules.iter().map(|rule| format!("'run_command({rule})'")).collect();
    TestPolicy::new(&format!("allow = [{}]", rules.join(", ")))
}

#[test]
fn a_rule_does_not_cover_an_option_that_runs_a_program_or_writes_a_file() {
    let policy = allowing(RULES_OF_MANY);
    for line in NOT_COVERED {
        assert_eq!(policy.decide(&format!("run_command({line})")), "-", "{line}");
    }
    for line in COVERED {
        assert_eq!(policy.decide(&format!("run_command({line})")), "allow", "{line}");
    }
}

#[test]
fn a_rule_says_itself_how_exact_it_is() {
    let policy = allowing(&[
        "=rm -rf build",
        "cargo xtask *",
        "serve",
        "./check.sh",
        "uv run pytest",
        "git log --output=x",
        "python3 x.py",
    ]);
    for line in [
        "rm -rf build",
        "cargo xtask",
        "cargo xtask ci --config x",
        "serve --port 1 -x",
        "./check.sh --fast",
        "uv run pytest -q",
        "git log --output=x",
        "python3 x.py --all",
    ] {
        assert_eq!(policy.decide(&format!("run_command({line})")), "allow", "{line}");
    }
    for line in [
        "rm -rf build src",
        "rm -rf",
        "cargo build",
        "uv run pytest -p x",
        "uv run x",
        "git log --output=x --output=y",
    ] {
        assert_eq!(policy.decide(&format!("run_command({line})")), "-", "{line}");
    }
    let denying = TestPolicy::new("deny = [\"run_command(git push *)\", \"run_command(=npm publish)\"]");
    for line in ["git push", "git -C x push -f", "npm publish", "npm publish --tag x"] {
        assert_eq!(denying.decide(&format!("run_command({line})")), "deny", "{line}");
    }
}

#[test]
fn the_answer_always_writes_no_rule_that_covers_something_else() {
    let without_rules = TestPolicy::new("");
    let others = ["tar tf a", "zip -T a", "touch x", "rm -rf build", "fd x", "serve", "env", "bash x"];
    let rules: Vec<String> =
        COVERED.iter().chain(&others).flat_map(|line| without_rules.rules_of_always(line)).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let policy = allowing(&rules);
    for line in COVERED.iter().chain(&others) {
        assert_eq!(policy.decide(&format!("run_command({line})")), "allow", "{line}");
    }
    for line in
        NOT_COVERED.iter().chain(&["rm -rf build /", "serve --exec ./evil", "bash x ./evil", "env ./evil"])
    {
        assert_eq!(policy.decide(&format!("run_command({line})")), "-", "{line}");
    }
}

/// A directory in which lines are run.
struct Scratch {
    dir: tempfile::TempDir,
}

impl Scratch {
    /// Makes a directory with a program `evil`, a repository, and programs of these names that only note that they ran.
    fn new(stubs: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Self { dir };
        for name in ["work", "bin"] {
            fs::create_dir(scratch.path(name)).unwrap();
        }
        let note = "#!/bin/sh\nprintf '%s\\n' \"${0##*/}\" >> \"$RAN\"\n";
        for name in stubs {
            scratch.program(&format!("bin/{name}"), note);
        }
        scratch.program("work/evil", note);
        fs::write(scratch.path("work/a"), "x\ny\nx\n").unwrap();
        fs::write(scratch.path("work/b"), "./evil\n").unwrap();
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn program(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs a line and returns the names of the programs that have noted that they ran.
    fn run(&self, shell: &[&str], path: &str, line: &str) -> Vec<String> {
        let ran = self.path("ran");
        fs::write(&ran, "").unwrap();
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).arg(line).current_dir(self.path("work")).env_clear();
        command.env("PATH", path).env("HOME", self.path("work")).env("RAN", &ran);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_AUTHOR_NAME", "a").env("GIT_AUTHOR_EMAIL", "a@b");
        command.env("GIT_COMMITTER_NAME", "a").env("GIT_COMMITTER_EMAIL", "a@b");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().unwrap();
        fs::read_to_string(&ran).unwrap().lines().map(str::to_owned).collect()
    }

    /// Returns the paths and contents of the working directory.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        let mut open = vec![self.path("work")];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap().is_dir() {
                    true => open.push(entry.path()),
                    // Git may note in its index when it has looked at a file.
                    false if entry.path().ends_with(".git/index") => {}
                    false => files.push((entry.path(), fs::read(entry.path()).unwrap())),
                }
            }
        }
        files.sort();
        files
    }
}

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from[random.below(from.len())]
}

/// The shells of this machine that lines are given to.
fn shells() -> Vec<Vec<&'static str>> {
    let all: [&[&str]; 3] = [&["/bin/dash", "-c"], &["/bin/bash", "--posix", "-c"], &["/bin/bash", "-c"]];
    all.into_iter().filter(|shell| Path::new(shell[0]).exists()).map(<[_]>::to_vec).collect()
}

#[test]
fn shells_start_only_what_the_rules_name() {
    const RULES: &[&str] = &["one", "two", "cat", "echo", "cargo test", "git log", "printf", "test"];
    const OTHERS: &[&str] = &["three", "rm", "touch", "make"];
    #[rustfmt::skip]
    const PIECES: &[&str] = &[
        "one", "two", "cat", "echo", "cargo test", "git log", "three", "rm", "touch", "make", "a", "b", "-n",
        "-v", "-x", "--y=z", "'a b'", "\"a b\"", "'$(three)'", "\"$(three)\"", "$(three)", "`three`",
        "'a[$(three)]'", "$X", "${X:-$(three)}", "\\\n", "\\", "&&", "||", ";", "|", "&", "\n", "\r", "#",
        "# three\n", "'", "\"", "(", ")", "{", "}", "!", "if", "then", "fi", "for", "do", "done", "in",
        "case", "esac", "<", ">", ">>", "2>&1", ">/dev/null", "<a", "<<E\nthree\nE\n", "<<<", ">&", "|&",
        "&>", "X=1", "PATH=.", "printf", "printf -v", "test -v", "test", "[", "[[", "]]", "((", "))", "let",
        "declare -i", "read", "unset", "wait -p", "eval", "exec", "command", "trap three EXIT;",
        "alias one=three;", "f()", "one()", "coproc", "time", "~", "*", "?", "{a,b}", "=", "\u{a0}",
        "\u{2028}", "\t", "$'\\x3b'", "-eq", "0", "-c", "--",
    ];
    let policy = allowing(RULES);
    let scratch = Scratch::new(&[&["one", "two", "cat", "cargo", "git"], OTHERS].concat());
    let bin = scratch.path("bin");
    let (path, before) = (bin.to_str().unwrap(), scratch.files());
    let mut random = Random::new(0x6c69_6e65);
    let lines: Vec<String> = (0..rounds(4_000, 100_000))
        .map(|_| {
            let count = 1 + random.below(7);
            // Lines that begin with something that is allowed are more often allowed.
            let first = pick(&mut random, RULES);
            let rest: Vec<&str> = (0..count).map(|_| pick(&mut random, PIECES)).collect();
            format!("{first} {}", rest.join(pick(&mut random, &[" ", " ", " ", ""])))
        })
        .collect();
    let calls: Vec<String> = lines.iter().map(|line| format!("run_command({line})")).collect();
    let mut allowed = 0;
    for (line, decision) in lines.iter().zip(policy.decide_all(&calls)) {
        if decision != "allow" {
            continue;
        }
        allowed += 1;
        for shell in shells() {
            let ran = scratch.run(&shell, path, line);
            let other = ran.iter().find(|name| OTHERS.contains(&name.as_str()) || *name == "evil");
            assert_eq!(other, None, "{shell:?} {line:?}");
        }
    }
    assert!(allowed > lines.len() / 50, "{allowed} of {} lines were allowed", lines.len());
    assert!(scratch.files() == before, "a file was changed");
}

#[test]
fn programs_run_and_write_nothing_by_options_that_a_rule_covers() {
    #[rustfmt::skip]
    const RULES: &[&str] = &[
        "git grep", "git log", "git diff", "git show", "git blame", "git bisect", "git submodule",
        "git archive", "git status", "git ls-files", "git rev-list", "git shortlog", "git", "tar", "find",
        "sort", "uniq", "diff", "split", "zip", "man", "tree", "date", "xargs", "env", "fd", "rg", "rsync",
        "ssh-keygen", "grep", "cat", "ls", "head", "wc", "du", "cut", "tr", "nl", "od", "comm", "cmp", "less",
    ];
    #[rustfmt::skip]
    const WORDS: &[&str] = &[
        "a", "b", ".", "x", "HEAD", "HEAD~1", "pwn", "./evil", "run", "foreach", "+", ";", "{}", "1", "--",
        "-", "a", ".", "x", "cf", "xf", "xIf", "-O", "-O./evil", "-nO./evil", "-o", "-opwn", "-uo",
        "-I./evil", "-xIf", "-x", "-x./evil", "-HIx", "-e", "-e./evil", "-ave", "-P", "-P./evil", "-F./evil",
        "-D", "-D./evil", "-T", "-TT", "-c", "-u", "-n", "-p", "-r", "-R", "-l", "-i", "-v", "-w", "-z", "-s",
        "-S", "-k", "-t", "-H", "-n1", "-3", "-exec", "-execdir", "-ok", "-delete", "-name", "-type", "f",
        "-fprint", "-fprintf", "-fls", "-print", "-newer", "-calias.x=!./evil",
        "--open-files-in-pager=./evil", "--open-files", "--output=pwn", "--output", "--outp",
        "--filter=./evil", "--compress-program=./evil", "--to-command=./evil",
        "--use-compress-program=./evil", "--checkpoint-action=exec=./evil", "--checkpoint=1", "--rsh=./evil",
        "--exec=./evil", "--exec", "--pre=./evil", "--ext-diff", "--textconv", "--upload-pack=./evil",
        "--no-index", "--cached", "--stat", "--oneline", "--files0-from=b", "--exec-path=.", "--pager=./evil",
        "--html=./evil", "--to-file=a", "--patch", "--name-only", "--color", "--reverse", "--count",
        "--unified", "--all",
    ];
    let policy = allowing(RULES);
    let scratch = Scratch::new(&[]);
    // A program of a real name that git would start by itself.
    let path = format!("/usr/local/bin:/usr/bin:/bin:{}", scratch.path("bin").display());
    scratch.run(
        &["/bin/sh", "-c"],
        &path,
        "git init -q . && git add a b && git commit -qm x && git commit -qm y --allow-empty",
    );
    let before = scratch.files();
    let mut random = Random::new(0x6f70_7469);
    let lines: Vec<String> = (0..rounds(4_000, 100_000))
        .map(|_| {
            let words: Vec<&str> = (0..1 + random.below(5)).map(|_| pick(&mut random, WORDS)).collect();
            let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            format!("{} {}", pick(&mut random, RULES), quoted.join(" "))
        })
        .collect();
    let calls: Vec<String> = lines.iter().map(|line| format!("run_command({line})")).collect();
    let mut allowed = 0;
    for (line, decision) in lines.iter().zip(policy.decide_all(&calls)) {
        if decision != "allow" {
            continue;
        }
        allowed += 1;
        assert_eq!(scratch.run(&["timeout", "5", "sh", "-c"], &path, line), [""; 0], "{line}");
        assert!(scratch.files() == before, "{line} has written a file");
    }
    assert!(allowed > lines.len() / 50, "{allowed} of {} lines were allowed", lines.len());
}
