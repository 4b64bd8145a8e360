//! Tests of files that run code, steer later runs or hold secrets.

use super::*;
use crate::{hostile_input::rounds, protected::tests::sample_paths, workspace::tests::while_swapping};

/// Files that run code, steer agents or hold secrets, by what uses them. The table must cover each of them.
#[rustfmt::skip]
const PROTECTED: &[&str] = &[
    // continuous integration
    ".github/workflows/ci.yml", ".github/actions/a/action.yml", ".github/dependabot.yml", ".gitlab-ci.yml",
    ".circleci/config.yml", ".travis.yml", ".forgejo/workflows/ci.yml", ".gitea/workflows/ci.yml",
    ".woodpecker.yml", ".woodpecker/a.yml", ".drone.yml", "Jenkinsfile", "azure-pipelines.yml",
    "bitbucket-pipelines.yml", ".buildkite/pipeline.yml", "appveyor.yml", ".cirrus.yml", "cloudbuild.yaml",
    "buildspec.yml", ".builds/a.yml", ".teamcity/settings.kts", ".tekton/run.yaml", "renovate.json",
    // version control
    ".git/hooks/pre-commit", ".git/config", "sub/.git/config", "repo.git/hooks/post-receive", ".githooks/pre-push",
    ".husky/pre-commit", ".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook.yml", ".lefthook.yaml",
    "lefthook-local.yml", ".gitconfig", ".gitmodules", ".gitattributes", ".config/git/hooks/x", ".hgrc",
    ".hg/hgrc", ".svn/hooks/x", ".jj/repo/config.toml",
    // agents
    "AGENTS.md", "docs/agents.md", "CLAUDE.md", "GEMINI.md", "skills/x/SKILL.md", "CLAUDE.local.md",
    "AGENTS.override.md", ".github/copilot-instructions.md", ".github/prompts/a.md", ".cursorrules",
    ".cursor/rules/a.mdc", ".windsurfrules", ".windsurf/rules/a.md", ".clinerules", ".clinerules/a.md",
    ".agents/skills/x/notes.md", ".aider.conf.yml", ".roo/rules/a.md", ".roomodes", ".opencode/agent/a.md",
    "opencode.json", ".continue/config.yaml", ".claude/settings.json", ".codex/config.toml", ".gemini/settings.json",
    ".junie/guidelines.md", ".kiro/steering/a.md", ".goosehints", ".augment-guidelines", ".mcp.json", ".rules",
    // kontekst
    ".kontekst/config.toml", ".kontekst/agents/default/agent.md", ".kontekst/skills/x.md",
    // shells
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".bash_completion",
    ".bashrc.d/x.sh", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc",
    ".tcshrc", ".login", ".inputrc", ".config/fish/config.fish", ".config/nushell/config.nu", ".envrc",
    ".mise.toml", "mise.toml", ".tool-versions", ".tmux.conf", ".config/tmux/tmux.conf", ".screenrc",
    ".local/bin/ls",
    // login and desktop
    ".xinitrc", ".xsession", ".xsessionrc", ".xprofile", ".pam_environment", ".config/environment.d/a.conf",
    ".config/autostart/x.desktop", ".config/systemd/user/x.service", ".local/share/systemd/user/x.service",
    ".local/share/applications/x.desktop", ".config/sway/config", ".config/i3/config", ".config/kitty/kitty.conf",
    ".config/hypr/hyprland.conf", ".wezterm.lua", ".forward", ".config/plasma-workspace/env/x.sh",
    // editors and debuggers
    ".vscode/tasks.json", "a.code-workspace", ".idea/workspace.xml", ".zed/tasks.json", ".vimrc", ".vim/vimrc",
    ".exrc", ".nvim.lua", ".config/nvim/init.lua", ".emacs", ".emacs.d/init.el", ".dir-locals.el",
    ".config/helix/config.toml", ".devcontainer.json", ".devcontainer/devcontainer.json", ".gdbinit", ".lldbinit",
    ".pdbrc", ".irbrc", ".Rprofile", ".ipython/profile_default/startup/x.py",
    // tools
    ".cargo/config.toml", ".npmrc", ".yarnrc.yml", ".yarn/releases/yarn.cjs", ".config/pip/pip.conf",
    ".mvn/extensions.xml", ".gradle/init.gradle", ".curlrc", ".muttrc",
    // secrets
    ".env", ".env.local", ".netrc", ".git-credentials", ".pgpass", ".pypirc", ".ssh/authorized_keys", ".ssh/rc",
    ".rhosts", ".gnupg/gpg.conf", ".aws/credentials", ".kube/config", ".docker/config.json", ".vault-token",
    "server.pem", "tls/private.key", "id_ed25519", "credentials.json", "secrets.yaml",
];

/// Each name, as a path below the working directory, with the directory that it is in as the working
/// directory, in other letters, and through a link.
#[test]
fn every_protected_name_has_a_caution_however_it_is_reached() {
    let paths: Vec<String> = PROTECTED.iter().map(|&path| path.to_owned()).chain(sample_paths()).collect();
    let home = Home::find(Some("/nonexistent".into())).unwrap();
    for path in &paths {
        let mut test = TestWorkDir::new();
        assert!(test.write_caution(path).is_some(), "{path}");
        assert!(test.write_caution(&path.to_uppercase()).is_some(), "{path} in upper case");
        let (dir, file) = path.rsplit_once('/').unwrap_or((".", path));
        fs::create_dir_all(test.file(dir)).unwrap();
        let (target, through) =
            if dir == "." { (file, "link".to_owned()) } else { (dir, format!("link/{file}")) };
        symlink(target, test.file("link")).unwrap();
        assert!(test.write_caution(&through).is_some(), "{path} through a link");
        test.enter(dir, &home);
        assert!(test.write_caution(file).is_some(), "{file} with the working directory {dir}");
    }
    assert!(paths.len() > 400, "{}", paths.len());
}

#[test]
fn ordinary_files_have_no_caution() {
    let test = TestWorkDir::new();
    for path in
        ["Makefile", "package.json", "build.rs", "conftest.py", "src/main.rs", ".gitignore", "README.md"]
    {
        assert_eq!(test.write_caution(path), None, "{path}");
        test.put("plain", "x");
        assert_eq!(test.read_caution("plain"), None);
    }
}

#[test]
fn whatever_makes_a_directory_a_git_directory_has_a_caution_and_so_has_what_is_in_it() {
    let parts = [
        ["HEAD", "objects/x", "refs/x"],
        ["objects/x", "refs/a/b", "HEAD"],
        ["refs/x", "HEAD", "objects/a/x"],
    ];
    for dir in ["", "a/b/", "node_modules/x/"] {
        for [first, second, last] in parts {
            let test = TestWorkDir::new();
            let path = |name: &str| format!("{dir}{name}");
            let put = |name: &str| {
                fs::create_dir_all(test.file(&path(name)).parent().unwrap()).unwrap();
                test.put(&path(name), "x");
            };
            for part in [first, second] {
                assert_eq!(test.write_caution(&path(part)), None, "{part}");
                put(part);
            }
            assert_eq!(test.write_caution(&path("config")), None);
            assert!(
                test.write_caution(&path(last)).is_some_and(|why| why.contains("git directory")),
                "{last}"
            );
            put(last);
            for part in
                [first, last, "config", "hooks/pre-commit", "worktrees/w/config.worktree", "commondir"]
            {
                assert!(test.write_caution(&path(part)).is_some(), "{dir} {part}");
            }
            symlink(if dir.is_empty() { "." } else { dir }, test.file("link")).unwrap();
            assert!(test.write_caution("link/config").is_some());
            assert_eq!(test.write_caution("beside").is_some(), dir.is_empty());
        }
    }
    let test = TestWorkDir::new();
    test.put("commondir", "evil");
    assert!(test.write_caution("HEAD").is_some() && test.write_caution("config").is_none());
}

/// Returns a test whose data directory is `kdata`, next to the directory `work`.
fn with_data_dir() -> (TestWorkDir, Home) {
    let mut test = TestWorkDir::new();
    let home = Home::find(Some(test.file("kdata"))).unwrap();
    home.create().unwrap();
    fs::write(home.config(), "").unwrap();
    fs::write(home.token(), "secret").unwrap();
    test.enter("", &home);
    (test, home)
}

#[test]
fn the_data_directory_is_protected_under_any_name() {
    let (mut test, home) = with_data_dir();
    let inside = ["config.toml", "agents/default/agent.md", "skills/evil.md", "sessions/x.jsonl", "new/x"];
    fs::create_dir(test.file("work")).unwrap();
    symlink("kdata", test.file("link")).unwrap();
    symlink("../kdata/agents", test.file("work/agents")).unwrap();
    for path in inside {
        for dir in ["kdata", "link", "work/../kdata", "kdata/agents/.."] {
            let caution = test.write_caution(&format!("{dir}/{path}"));
            assert!(caution.is_some_and(|why| why.contains("data directory")), "{dir}/{path}");
        }
    }
    assert!(test.write_caution("work/agents/x").is_some());
    assert_eq!(test.write_caution("work/x"), None);
    assert_eq!(test.write_caution("kdata2/x"), None);
    // The working directory is the data directory itself, or is in it.
    test.enter("link", &home);
    assert!(inside.iter().all(|path| test.write_caution(path).is_some()));
    test.enter("kdata/agents", &home);
    assert!(test.write_caution("default/agent.md").is_some());
}

#[test]
fn parts_of_the_data_directory_that_are_elsewhere_are_protected() {
    let (mut test, home) = with_data_dir();
    fs::create_dir_all(test.file("dotfiles/agents")).unwrap();
    fs::remove_dir(home.agents()).unwrap();
    symlink("../dotfiles/agents", home.agents()).unwrap();
    test.enter("dotfiles", &home);
    assert!(test.write_caution("agents/default/agent.md").is_some());
    assert_eq!(test.write_caution("other"), None);
    fs::hard_link(home.token(), test.file("dotfiles/name")).unwrap();
    assert!(test.read_caution("name").is_some());
}

#[test]
fn secrets_are_read_only_with_an_approval() {
    let (test, home) = with_data_dir();
    test.put(".env", "PASSWORD=x");
    test.put("plain", "x");
    for path in ["kdata/run/token", "kdata/config.toml", ".env"] {
        assert!(test.read_caution(path).is_some(), "{path}");
        let args = json!({ "path": path });
        let without_caution = test.execute("read_file", &args, &Proposal::default()).unwrap_err();
        assert!(without_caution.contains("nothing was read"), "{without_caution}");
    }
    assert_eq!(test.read(&json!({"path": "kdata/run/token"})), Ok("1: secret".into()));
    // The approval was for a plain file, which is a link to a secret now.
    let args = json!({"path": "plain"});
    let approved = test.propose("read_file", &args);
    fs::remove_file(test.file("plain")).unwrap();
    symlink("kdata/run/token", test.file("plain")).unwrap();
    assert!(test.execute("read_file", &args, &approved).is_err());
    drop(home);
}

#[test]
fn a_directory_that_moves_into_a_protected_one_is_noticed() {
    let mut test = TestWorkDir::new();
    fs::create_dir_all(test.file("project")).unwrap();
    let home = Home::find(Some("/nonexistent".into())).unwrap();
    test.enter("project", &home);
    let args = json!({"path": "new/x", "content": "x"});
    let approved = test.propose("write_file", &args);
    assert_eq!(approved.caution, None);
    fs::rename(test.file("project"), test.file(".husky")).unwrap();
    assert!(test.execute("write_file", &args, &approved).is_err());
    assert_eq!(fs::read_dir(test.file(".husky")).unwrap().count(), 0);
}

/// A directory is swapped with a link to a protected one between the approval and the write.
#[test]
fn a_raced_write_never_makes_a_file_in_a_protected_directory() {
    let test = TestWorkDir::new();
    fs::create_dir_all(test.file(".git/hooks")).unwrap();
    fs::create_dir(test.file("dir")).unwrap();
    symlink(".git/hooks", test.file("link")).unwrap();
    let (mut written, mut asked, mut refused) = (0, 0, 0);
    while_swapping(test.dir.path(), "dir", "link", || {
        for round in 0..rounds(3000, 60_250) {
            let path =
                if round % 2 == 0 { format!("dir/n{round}/x") } else { format!("dir/n{round}/deep/er/x") };
            let args = json!({"path": path, "content": "x"});
            let proposal = test.propose("write_file", &args);
            if proposal.caution.is_some() {
                asked += 1; // nobody approves it
                continue;
            }
            match test.execute("write_file", &args, &proposal) {
                Ok(_) => written += 1,
                Err(_) => refused += 1,
            }
        }
    });
    assert!(written > 0 && asked > 0 && refused > 0, "the race was not run: {written} {asked} {refused}");
    assert_eq!(fs::read_dir(test.file(".git/hooks")).unwrap().count(), 0);
}
