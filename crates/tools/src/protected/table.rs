//! The names of protected files, by the reason for which they are protected.
//!
//! A pattern is one or more names, in lower case, that follow each other anywhere in a path. With a `/` at its
//! end it covers that directory and everything in it, and without one it covers only a file at the end of the
//! path. One `*` in a name stands for any characters.
//!
//! What other programs obey and an agent may nevertheless write is in the table, too, with the reason.
//! `docs/protected-files.md` is this table. What makes a git directory is known by its contents: see `git_files`.

/// Files that are protected for the same reason.
pub(super) struct Class {
    /// The rest of a sentence that begins with the path.
    pub(crate) reason: &'static str,
    pub(crate) guards: Guards,
    pub(crate) names: &'static [&'static str],
}

/// The accesses for which a person must be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guards {
    ReadsAndWrites,
    Writes,
    /// Only that a file is read without any approval, automatic ones included. Such a name may as well be harmless.
    UnapprovedReads,
    /// Written freely, although other programs obey it.
    Nothing,
}

/// All protected names. The first class that fits gives the reason.
pub(super) const CLASSES: &[Class] = &[
    Class {
        reason: "holds keys or passwords, or decides who may log in",
        guards: Guards::ReadsAndWrites,
        names: SECRETS,
    },
    Class { reason: "steers later runs of kontekst", guards: Guards::Writes, names: &[".kontekst/"] },
    Class { reason: "tells agents what to do", guards: Guards::Writes, names: AGENTS },
    Class {
        reason: "configures version control or runs with it",
        guards: Guards::Writes,
        names: VERSION_CONTROL,
    },
    Class { reason: "runs in continuous integration", guards: Guards::Writes, names: CONTINUOUS_INTEGRATION },
    Class { reason: "runs when a shell starts or enters a directory", guards: Guards::Writes, names: SHELLS },
    Class { reason: "runs at login or on the desktop", guards: Guards::Writes, names: SESSIONS },
    Class { reason: "runs when an editor or a debugger is opened", guards: Guards::Writes, names: EDITORS },
    Class { reason: "configures a tool that runs commands", guards: Guards::Writes, names: TOOLS },
    Class { reason: "may hold keys or passwords", guards: Guards::UnapprovedReads, names: POSSIBLE_SECRETS },
    Class {
        reason: "runs when you build, test or start the project, and is the work that an agent is asked to do: the diff shows it",
        guards: Guards::Nothing,
        names: PROJECT,
    },
    Class {
        reason: "names versions, formats or files, and runs nothing",
        guards: Guards::Nothing,
        names: PLAIN,
    },
];

#[rustfmt::skip]
const PROJECT: &[&str] = &[
    "makefile", "gnumakefile", "*.mk", "cmakelists.txt", "meson.build", "configure", "build.bazel", "package.json", "cargo.toml",
    "build.rs", "setup.py", "setup.cfg", "pyproject.toml", "conftest.py", "noxfile.py", "tox.ini", ".flake8", "pyvenv.cfg",
    "rakefile", "gemfile", "*.gemspec", "justfile", "build.gradle*", "settings.gradle*", "pom.xml", "*.csproj",
    "directory.build.props", "gulpfile.*", "webpack.config.*", "vite.config.*", "jest.config.*", ".eslintrc*",
    "eslint.config.*", ".prettierrc*", ".babelrc*", "babel.config.*", "dockerfile", "docker-compose*.yml", "compose.yaml",
    "vagrantfile", "flake.nix", "shell.nix", "devbox.json", "ansible.cfg",
];

#[rustfmt::skip]
const PLAIN: &[&str] = &[
    ".editorconfig", ".gitignore", ".gitkeep", ".dockerignore", ".npmignore", ".prettierignore", ".eslintignore", ".nvmrc",
    ".node-version", ".python-version", ".ruby-version", ".clang-format", "rustfmt.toml", ".rustfmt.toml",
    "compile_commands.json",
];

#[rustfmt::skip]
const SECRETS: &[&str] = &[
    ".env*", ".netrc", "_netrc", ".git-credentials", ".git/config", ".pgpass", ".my.cnf", ".pypirc", ".npmrc",
    ".ssh/", ".gnupg/", ".aws/", ".azure/", ".kube/", ".docker/", ".password-store/", ".vault-token",
    ".terraform.d/", ".terraformrc", ".config/gcloud/", ".config/gh/", ".config/hub", ".config/op/",
    ".cargo/credentials*", ".gem/credentials", ".local/share/keyrings/", ".rhosts", ".shosts", ".htpasswd",
    "credentials", "credentials.json", ".credentials*", "secrets.json", "secrets.toml", "secrets.yaml",
    "secrets.yml", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p12", "*.pfx", "*.ppk",
    "*.jks", "*.keystore", "*.kdbx",
];

#[rustfmt::skip]
const AGENTS: &[&str] = &[
    "agents.md", "agents.override.md", "agents.local.md", "agent.md", "claude.md", "claude.local.md",
    "gemini.md", "skill.md", "qwen.md", "warp.md", "crush.md", ".agents/", ".agent/", ".claude/", ".claude.json",
    ".codex/", ".gemini/", ".qwen/", ".cursor/", ".cursorrules", ".windsurf/", ".windsurfrules", ".codeium/",
    ".clinerules/", ".cline/", ".roo/", ".roorules*", ".roomodes", ".kilocode/", ".kilocodemodes", ".opencode/",
    "opencode.json", "opencode.jsonc", ".config/opencode/", ".continue/", ".continuerules", ".continuerc.json",
    ".aider*", ".goose/", ".goosehints", ".config/goose/", ".augment/", ".augment-guidelines", ".junie/",
    ".kiro/", ".amazonq/", ".trae/", ".tabnine/", ".openhands/", ".crush.json", "crush.json", ".rules",
    ".sourcegraph/", ".factory/", ".grok/", ".config/amp/", ".github/copilot-instructions.md",
    ".github/instructions/", ".github/prompts/", ".github/agents/", ".github/chatmodes/", ".github/skills/",
    ".github/hooks/", ".github/copilot/", ".copilot/", ".config/github-copilot/", ".mcp.json", "mcp.json", ".mcp/",
];

#[rustfmt::skip]
const VERSION_CONTROL: &[&str] = &[
    ".git/", "*.git/hooks/", "*.git/config", "*.git/info/", ".gitconfig", ".gitmodules", ".gitattributes",
    ".config/git/", ".githooks/", ".husky/", ".pre-commit-config.yaml", ".pre-commit-config.yml",
    ".pre-commit-hooks.yaml", "lefthook*.yml", "lefthook*.yaml", "lefthook*.toml", "lefthook*.json",
    ".lefthook*", ".overcommit.yml", ".lintstagedrc*", ".hg/", ".hgrc", ".config/hg/", ".svn/", ".bzr/", ".jj/",
    ".jjconfig.toml", ".config/jj/",
];

#[rustfmt::skip]
const CONTINUOUS_INTEGRATION: &[&str] = &[
    ".github/workflows/", ".github/actions/", ".github/dependabot.yml", ".github/dependabot.yaml",
    ".gitlab-ci.yml", ".gitlab-ci.yaml", ".gitlab/", ".circleci/", ".travis.yml", ".travis.yaml", ".forgejo/",
    ".gitea/", ".woodpecker.yml", ".woodpecker.yaml", ".woodpecker/", ".drone.yml", ".drone.yaml", ".drone.star",
    ".drone.jsonnet", "jenkinsfile", "jenkinsfile.*", "*.jenkinsfile", "azure-pipelines*.yml",
    "azure-pipelines*.yaml", ".azure-pipelines/", ".azuredevops/", "bitbucket-pipelines.yml", ".buildkite/",
    "appveyor.yml", ".appveyor.yml", ".cirrus.yml", ".cirrus.star", ".semaphore/", "codefresh.yml", "wercker.yml",
    "cloudbuild.yaml", "cloudbuild.yml", "buildspec.yml", "buildspec.yaml", ".build.yml", ".builds/",
    "codemagic.yaml", "bitrise.yml", ".teamcity/", ".tekton/", ".harness/", ".onedev-buildspec.yml",
    "renovate.json", "renovate.json5", ".renovaterc*", ".mergify.yml", ".mergify/",
];

#[rustfmt::skip]
const SHELLS: &[&str] = &[
    ".bashrc", ".bashrc.d/", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".bash_functions",
    ".bash_completion", ".bash_completion.d/", ".local/share/bash-completion/", ".config/bash/", ".profile",
    ".zshrc", ".zshrc.d/", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".zsh/", ".oh-my-zsh/", ".config/zsh/",
    ".kshrc", ".mkshrc", ".shrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc", ".xonshrc",
    ".config/xonsh/", ".config/fish/", ".config/nushell/", ".config/elvish/", ".config/powershell/",
    ".config/starship.toml", ".direnv/", ".config/direnv/", ".autoenv.zsh", ".mise.toml", ".mise.*.toml",
    "mise.toml", "mise.*.toml", "mise/config.toml", ".mise/", ".config/mise/", ".config/mise.toml", ".rtx.toml",
    ".tool-versions", ".asdfrc", ".rvmrc", ".tmux.conf", ".tmux/", ".config/tmux/", ".screenrc",
    ".config/zellij/", ".local/bin/",
];

#[rustfmt::skip]
const SESSIONS: &[&str] = &[
    ".xinitrc", ".xserverrc", ".xsession", ".xsessionrc", ".xprofile", ".xbindkeysrc", ".pam_environment",
    ".config/environment.d/", ".config/autostart/", ".config/autostart-scripts/", ".config/plasma-workspace/",
    ".config/systemd/", ".local/share/systemd/", ".local/share/applications/", ".local/share/dbus-1/",
    ".local/share/kio/", ".local/share/nautilus/", ".local/share/nemo/", ".config/mimeapps.list", ".mailcap",
    ".forward", ".procmailrc", ".config/sway/", ".config/i3/", ".config/i3status/", ".i3/", ".config/hypr/",
    ".config/bspwm/", ".config/sxhkd/", ".config/awesome/", ".config/openbox/", ".config/qtile/",
    ".config/river/", ".config/niri/", ".config/labwc/", ".config/waybar/", ".config/polybar/", ".xmonad/",
    ".config/xmonad/", ".fluxbox/", ".config/kitty/", ".config/alacritty/", ".alacritty.toml",
    ".config/wezterm/", ".wezterm.lua", ".config/ghostty/", ".config/foot/", "library/launchagents/",
    "library/launchdaemons/",
];

#[rustfmt::skip]
const EDITORS: &[&str] = &[
    ".vscode/", ".vscode-server/", ".config/code/", "*.code-workspace", ".idea/", ".fleet/", ".zed/",
    ".config/zed/", ".vim/", ".vimrc", ".gvimrc", ".lvimrc", ".local.vimrc", ".exrc", ".nvimrc", ".nvim.lua",
    ".config/nvim/", ".config/vim/", ".local/share/nvim/", ".emacs", ".emacs.el", ".emacs.d/", ".config/emacs/",
    ".doom.d/", ".config/doom/", ".spacemacs", ".spacemacs.d/", ".dir-locals.el", ".dir-locals-2.el", ".helix/",
    ".config/helix/", ".kakrc", ".config/kak/", ".config/micro/", "*.sublime-project", ".devcontainer/",
    ".devcontainer.json", ".gitpod.yml", ".replit", ".idx/", ".gdbinit", ".gdbearlyinit", ".config/gdb/",
    ".lldbinit", ".pdbrc", ".pdbrc.py", ".ipython/", ".jupyter/", ".pythonrc", ".pythonrc.py", ".irbrc",
    ".pryrc", ".rprofile", ".renviron", ".ghci", ".sqliterc", ".psqlrc", ".octaverc", ".julia/config/",
    ".config/ranger/", ".config/lf/", ".vs/", ".settings/", ".externaltoolbuilders/", ".luarc.json", ".luarc.jsonc", ".ocamlinit",
    ".iex.exs",
];

#[rustfmt::skip]
const TOOLS: &[&str] = &[
    ".cargo/", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".config/pip/", ".pip/", ".condarc", ".gemrc",
    ".bundle/", ".m2/", ".mvn/", ".sbt/",
    // Programs that Yarn and editors run. The cache, the state of an installation and patches are made by each installation.
    ".yarn/releases/", ".yarn/plugins/", ".yarn/sdks/", ".yarn/bin/", ".yarn/switch/",
    // Scripts that run with each build, settings, and the Gradle and the Java that run. The state of a build and its caches
    // are beside them.
    ".gradle/init.d/", ".gradle/init.gradle*", ".gradle/gradle.properties", ".gradle/config.properties",
    ".gradle/wrapper/", ".gradle/jdks/", ".config/containers/", ".ansible.cfg", ".curlrc",
    ".wgetrc", ".config/lazygit/", ".tigrc", ".muttrc", ".mutt/", ".config/mutt/", ".pnpmfile.mjs", ".bazelrc",
    ".bazeliskrc", ".buckconfig", ".prototools", "rust-toolchain", "rust-toolchain.toml", ".pylintrc", "pylintrc",
    // Python runs them whenever it starts with their directory in its path.
    "sitecustomize.py", "usercustomize.py",
];

#[rustfmt::skip]
const POSSIBLE_SECRETS: &[&str] = &[
    ".pass", ".passwd", ".password", "credentials.*", "kubeconfig", "kubeconfig.*", "passwd", "passwd.*",
    "password", "password.*", "passwords", "passwords.*", "secret", "secret.*", "secrets", "secrets.*", "shadow",
    "shadow.*", "token", "token.*", "tokens", "tokens.*", "*.asc", "*.env", "*.gpg", "*.tfstate", "*.tfvars",
];
