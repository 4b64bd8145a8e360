//! Git directories that commands make, whatever their names, and that must make git run nothing for the user.

use std::{fs, path::Path, process::Command};

use super::{Fifo, command, exists, home_with, new_names::has_sandbox, result, write};
use crate::{
    fake_llama::Reply,
    test_home::{TestHome, wait_with_output},
};

const SANDBOX: &str = "sandbox = \"auto\"\n";
const ALLOW: [&str; 5] = ["run", "--new", "--allow", "run_command", "go"];

/// The parts of a git directory whose configuration runs a program with `git status`. `$C` is the configuration.
const PARTS: [&str; 4] =
    ["mkdir -p $d/objects", "mkdir -p $d/refs", "echo 'ref: refs/heads/main' > $d/HEAD", "put $d/config"];

/// Plants of two commands each. Both run in a directory of their own in the repository of the user. `$g` is `.git`, and
/// `plant DIR` makes a whole git directory.
const PLANTS: &[(&str, &str)] = &[
    ("plant .", ""),
    ("plant a/b", ""),
    ("plant x", "mv x y"),
    ("plant x; mv x y", ""),
    ("put c", "mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; ln c config"),
    ("mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; put c; ln -s c config", ""),
    ("put config; mkdir objects refs refs/heads", "ln -s refs/heads/main HEAD"),
    ("put config; mkdir o r; ln -s o objects; ln -s r refs", "echo 'ref: refs/heads/main' > HEAD"),
    ("put config; mkdir objects refs", "printf %040d 1 > HEAD"),
    ("mkdir x; plant x/t; rm x/t/HEAD", "echo 'ref: refs/heads/main' > h; mv h x/t/HEAD"),
    ("mkdir x o r; put x/config; echo 'ref: refs/heads/main' > x/HEAD", "mv o x/objects; mv r x/refs"),
    ("mkdir -p m/objects m/refs; put m/config; echo m > commondir", "echo 'ref: refs/heads/main' > HEAD"),
    ("mkdir -p m/objects m/refs; put m/config; echo 'ref: refs/heads/main' > HEAD", "echo m > commondir"),
    ("plant x; echo 'gitdir: x' > $g", ""),
    ("plant x; rm x/HEAD", "echo 'ref: refs/heads/main' > x/HEAD; echo 'gitdir: x' > $g"),
    ("plant $g", ""),
    ("plant x; rm -r x/objects; mv x $g", "mkdir $g/objects"),
    ("plant a.git", ""),
    ("git init -q .; git config core.fsmonitor \"$F\"", ""),
    ("git init -q .", "git config core.fsmonitor \"$F\"; put $g/config"),
    ("git init -q --bare .", "git config core.fsmonitor \"$F\"; put config"),
    ("git init -q .", "mv $g x; plant $g; mv x/* .; put config"),
    ("git init -q .; printf '[include]\\n\\tpath = ../c\\n' > $g/config; put c", ""),
    (
        "git init -q .; printf '[extensions]\\n\\tworktreeConfig = true\\n' >> $g/config; put $g/config.worktree",
        "",
    ),
    ("git init -q .; mkdir -p $g/hooks; h=$g/hooks/post-index-change; echo \"$F\" > $h; chmod +x $h", ""),
    (
        "git init -q --bare x; mkdir -p x/hooks; h=x/hooks/post-index-change; echo \"$F\" > $h; chmod +x $h",
        "",
    ),
    ("plant node_modules/x", ""),
    ("plant target/debug/x", ""),
    ("plant .venv/lib; rm .venv/lib/HEAD", "echo 'ref: refs/heads/main' > .venv/lib/HEAD"),
    ("git init -q .; plant $g/modules/m; mkdir m; echo 'gitdir: ../'$g'/modules/m' > m/$g", ""),
    ("git init -q .; plant $g/objects/m", "mv $g/objects/m m"),
    ("git init -q .; plant $g/worktrees/w; echo ../.. > $g/worktrees/w/commondir; put $g/config", ""),
    ("plant x; chmod 500 x", ""),
    ("plant x; chmod 000 x", "chmod 700 x"),
    ("mkdir y; plant y/x; chmod 500 y; chmod 555 y/x", "chmod -R u+w y"),
    ("plant x; chmod 000 x/config", "chmod 600 x/config"),
    ("mkdir -p t; plant t; tar -cf t.tar t; rm -r t", "tar -xf t.tar"),
    ("plant x; rm x/HEAD", "cp -r x y; echo 'ref: refs/heads/main' | tee y/HEAD"),
];

/// Returns the lines that both commands have before their plants.
fn prelude(mark: &Path) -> String {
    let mark = mark.display();
    format!(
        "g=.g; g=${{g}}it; F='touch {mark}; false #'\n\
         put() {{ \
         printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = \"%s\"\\n' \"$F\" > $1; }}\n\
         plant() {{ mkdir -p $1/objects $1/refs; echo 'ref: refs/heads/main' > $1/HEAD; put $1/config; }}\n"
    )
}

/// Every order of the four parts, each divided between the two commands at another place.
fn orders() -> Vec<(String, String)> {
    let mut orders = Vec::new();
    for number in 0..24 {
        let (mut rest, mut parts) = (PARTS.to_vec(), Vec::new());
        for (left, divisor) in [(4, 6), (3, 2), (2, 1), (1, 1)] {
            parts.push(rest.remove(number / divisor % left));
        }
        for at in [0, 1 + number % 3] {
            let (first, second) = parts.split_at(at);
            orders.push((format!("d=.; {}", first.join("; ")), format!("d=.; {}", second.join("; "))));
        }
    }
    orders
}

fn git(dir: &Path, words: &[&str]) -> std::process::Output {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "safe.directory=*"]);
    git.args(words).current_dir(dir).output().unwrap()
}

fn repository(home: &TestHome) {
    let dir = home.work_dir();
    assert!(git(&dir, &["init", "-q", "."]).status.success());
    assert!(git(&dir, &["commit", "-qm", "first", "--allow-empty"]).status.success());
}

/// Calls `visit` with each directory but those of the user's own repository.
fn dirs(dir: &Path, visit: &mut dyn FnMut(&Path)) {
    visit(dir);
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() && entry.file_name() != ".git" {
            dirs(&entry.path(), visit);
        }
    }
}

#[test]
fn git_runs_nothing_in_what_commands_have_planted() {
    let plants = PLANTS.iter().map(|(first, second)| ((*first).to_owned(), (*second).to_owned()));
    let plants: Vec<_> = plants.chain(orders()).collect();
    assert!(plants.len() > 60);
    let mark = tempfile::tempdir().unwrap().path().join("ran");
    let line = |of: &dyn Fn(&(String, String)) -> String| {
        let lines = plants.iter().enumerate();
        let lines =
            lines.map(|(number, plant)| format!("(mkdir -p v{number}; cd v{number}; {}\n)", of(plant)));
        format!("{}{}\ntrue", prelude(&mark), lines.collect::<Vec<_>>().join("\n"))
    };
    let lines = [line(&|plant| plant.0.clone()), line(&|plant| plant.1.clone())];
    let (_model, home) =
        home_with(SANDBOX, [command("sh first.sh"), command("sh second.sh"), Reply::text("done")]);
    if !has_sandbox(&home) {
        return;
    }
    repository(&home);
    for (name, line) in ["first.sh", "second.sh"].into_iter().zip(lines) {
        fs::write(home.work_dir().join(name), line).unwrap();
    }
    home.run(&ALLOW).success();
    fs::create_dir_all(mark.parent().unwrap()).unwrap();
    let mut ran = Vec::new();
    for (number, plant) in plants.iter().enumerate() {
        dirs(&home.work_dir().join(format!("v{number}")), &mut |dir| {
            for words in [
                &["status"][..],
                &["diff"],
                &["add", "-A", "--dry-run"],
                &["commit", "-qm", "x", "--allow-empty"],
            ] {
                git(dir, words);
            }
            if fs::remove_file(&mark).is_ok() {
                ran.push(format!("{}: {plant:?}", dir.display()));
            }
        });
    }
    fs::remove_dir(mark.parent().unwrap()).unwrap();
    assert!(ran.is_empty(), "{} of {}:\n{}", ran.len(), plants.len(), ran.join("\n"));
    // The repository of the user is as it was.
    assert!(git(&home.work_dir(), &["fsck"]).status.success());
}

/// A hook of the user that is a file of the tree as well.
#[test]
fn a_hook_is_not_written_under_another_name() {
    let line = "echo evil > tools/hook; rm -f tools/hook; mv tools/hook x; ln tools/hook y; \
                echo evil > tools/other; true";
    let (model, home) = home_with(SANDBOX, [command(line), Reply::text("done")]);
    if !has_sandbox(&home) {
        return;
    }
    repository(&home);
    let dir = home.work_dir();
    fs::create_dir(dir.join("tools")).unwrap();
    for path in ["tools/hook", "tools/other"] {
        fs::write(dir.join(path), "good\n").unwrap();
    }
    fs::create_dir_all(dir.join(".git/hooks")).unwrap();
    fs::hard_link(dir.join("tools/hook"), dir.join(".git/hooks/pre-commit")).unwrap();
    home.run(&ALLOW).success();
    for (path, text) in
        [(".git/hooks/pre-commit", "good\n"), ("tools/hook", "good\n"), ("tools/other", "evil\n")]
    {
        assert_eq!(fs::read_to_string(dir.join(path)).unwrap(), text, "{path}: {}", result(&model));
    }
    assert!(!exists(&home, "y"), "{}", result(&model));
}

#[test]
fn the_head_of_a_repository_is_restored_and_nothing_takes_its_place() {
    for remove in [
        "rm $g/HEAD",
        "echo x > $g/HEAD",
        "mv $g/HEAD h",
        "rm $g/HEAD; mkdir $g/HEAD",
        "rm $g/HEAD; chmod 500 $g",
    ] {
        let mark = tempfile::tempdir().unwrap().path().join("ran");
        let (model, home) = home_with(SANDBOX, [command("sh plant.sh"), Reply::text("done")]);
        if !has_sandbox(&home) {
            return;
        }
        repository(&home);
        let script = format!("{}{remove}; plant .", prelude(&mark));
        fs::write(home.work_dir().join("plant.sh"), script).unwrap();
        let head = fs::read(home.work_dir().join(".git/HEAD")).unwrap();
        let output = home.run(&ALLOW);
        assert!(output.stderr.contains("took back"), "{remove}: {output:?}");
        assert_eq!(
            fs::read(home.work_dir().join(".git/HEAD")).unwrap(),
            head,
            "{remove}: {}",
            result(&model)
        );
        assert!(!exists(&home, "config"), "{remove}: {}", result(&model));
        assert!(git(&home.work_dir(), &["log"]).status.success(), "{remove}");
    }
}

#[test]
fn what_git_makes_by_itself_stays() {
    let line = "git init -q a; git init -q --bare b; git clone -q --bare . c; git clone -q . d; git -C b worktree list; \
                git worktree add -q t; git -C c worktree add -q ../u; git -C d checkout -q -b new; git stash list; \
                git -C d -c user.name=a -c user.email=a@b commit -qm second --allow-empty; git checkout -q -b other";
    let (model, home) = home_with(SANDBOX, [command(line), Reply::text("done")]);
    if !has_sandbox(&home) {
        return;
    }
    repository(&home);
    home.run(&ALLOW).success();
    let read = result(&model);
    assert!(!read.contains("the names are protected") && !read.contains("Restored"), "{read}");
    for (dir, words) in [
        ("a", &["status"][..]),
        ("b", &["rev-parse", "--git-dir"]),
        ("c", &["log"]),
        ("d", &["log", "new"]),
        ("t", &["status"]),
        ("u", &["status"]),
        (".", &["log", "other"]),
    ] {
        let output = git(&home.work_dir().join(dir), words);
        assert!(output.status.success(), "{dir}: {output:?}; {read}");
    }
}

/// A file that was there before its directory became a git directory may be the user's.
#[test]
fn files_of_the_user_stay_when_their_directory_becomes_a_git_directory() {
    let line =
        "mkdir p/objects p/refs; echo 'ref: refs/heads/main' > p/HEAD; n=.env; mv notes $n; mv sub moved";
    let (model, home) = home_with(SANDBOX, [command(line), Reply::text("done")]);
    if !has_sandbox(&home) {
        return;
    }
    for (path, text) in
        [("p/config", "[alias]\nx = !y\n"), ("p/hooks/useX.ts", "x\n"), ("notes", "n\n"), ("sub/a", "a\n")]
    {
        let path = home.work_dir().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    home.run(&ALLOW).success();
    let read = result(&model);
    for (path, text) in
        [("p/config", "[alias]\nx = !y\n"), ("p/hooks/useX.ts", "x\n"), ("notes", "n\n"), ("moved/a", "a\n")]
    {
        assert_eq!(fs::read_to_string(home.work_dir().join(path)).unwrap(), text, "{read}");
    }
    assert!(!exists(&home, "p/HEAD") && !exists(&home, ".env"), "{read}");
}

#[test]
fn the_steps_of_a_rebase_get_no_command() {
    let line = "g=.g; g=${g}it; mkdir -p $g/rebase-merge $g/sequencer; echo 'exec touch ran' > $g/rebase-merge/git-rebase-todo; \
                echo 'pick 1' > $g/sequencer/todo; echo ../x > $g/rebase-merge/strategy; echo x > $g/remotes; echo y > $g/new";
    let (model, home) = home_with(SANDBOX, [command(line), Reply::text("done")]);
    if !has_sandbox(&home) {
        return;
    }
    repository(&home);
    home.run(&ALLOW).success();
    for path in
        [".git/rebase-merge/git-rebase-todo", ".git/rebase-merge/strategy", ".git/remotes", ".git/new"]
    {
        assert!(!exists(&home, path), "{path}: {}", result(&model));
    }
    assert!(exists(&home, ".git/sequencer/todo"));
}

/// More than a thousand protected files do not make the others writable.
#[test]
fn every_protected_file_is_read_only_however_many_there_are() {
    let line = "e=.e; echo x >> deep/in/a/${e}nv; echo x >> .e${e#.e}nv; \
                rm -f deep/in/a/${e}nv; echo x > deep/in/a/${e}nvrc; true";
    let (model, home) = home_with(SANDBOX, [command(line), Reply::text("done")]);
    if !has_sandbox(&home) {
        return;
    }
    let put = |path: &str| {
        let path = home.work_dir().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "A=1\n").unwrap();
    };
    (0..1_100).for_each(|number| put(&format!("a{number}/.env")));
    put("deep/in/a/.env");
    put(".env");
    home.run(&ALLOW).success();
    for path in ["deep/in/a/.env", ".env"] {
        assert_eq!(fs::read_to_string(home.work_dir().join(path)).unwrap(), "A=1\n", "{}", result(&model));
    }
    assert!(!exists(&home, "deep/in/a/.envrc"));
}

/// A file that one command has made does not count as there before another one that begins meanwhile.
#[test]
fn of_two_commands_at_the_same_time_neither_keeps_what_the_other_made() {
    let first = "n=.env; echo one > ${n}rc; cat first";
    let second = "n=.env; cat second; echo two > ${n}rc";
    let (model, home) =
        home_with(SANDBOX, [command(first), command(second), Reply::text("done"), Reply::text("done")]);
    if !has_sandbox(&home) {
        return;
    }
    let (until, after) = (Fifo::new(&home, "first"), Fifo::new(&home, "second"));
    let one = home.spawn(&ALLOW);
    let writer = until.wait_for_reader();
    let other = home.spawn(&ALLOW);
    let other_writer = after.wait_for_reader();
    write(writer, "");
    wait_with_output(one).success();
    write(other_writer, "");
    wait_with_output(other).success();
    assert!(!exists(&home, ".envrc"), "{}", result(&model));
}
