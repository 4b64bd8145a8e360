//! The environment variables of commands.

use crate::core::Environment;

/// The variables that commands get from the daemon's own environment: where programs and toolchains are, the language, and
/// nothing that may be a key.
#[rustfmt::skip]
const PASSED_ON: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "CARGO_HOME", "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN", "GOPATH", "GOROOT", "GOFLAGS", "GOMODCACHE", "JAVA_HOME", "ANDROID_HOME", "MAVEN_HOME",
    "VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYTHONPATH", "NODE_PATH", "NVM_DIR", "NVM_BIN", "VOLTA_HOME",
    "RBENV_ROOT", "GEM_HOME", "GEM_PATH", "PERL5LIB", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS",
    "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH", "LD_LIBRARY_PATH", "NIX_PATH", "NIX_SSL_CERT_FILE", "SSL_CERT_FILE",
    "SSL_CERT_DIR", "DOTNET_ROOT", "XDG_DATA_DIRS",
];

/// The search path of a daemon that has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns the variables of a command. `extra` are names that the configuration adds.
pub(super) fn of_commands(environment: &Environment, extra: &[String]) -> Vec<(String, String)> {
    let is_passed_on = |name: &&str| PASSED_ON.contains(name) || name.starts_with("LC_");
    let names = environment.names().filter_map(|name| name.to_str()).filter(is_passed_on);
    let names = names.chain(extra.iter().map(String::as_str));
    let mut variables: Vec<(String, String)> =
        names.filter_map(|name| Some((name.to_owned(), environment.text(name)?))).collect();
    if !variables.iter().any(|(name, _)| name == "PATH") {
        variables.push(("PATH".to_owned(), DEFAULT_PATH.to_owned()));
    }
    // There is no terminal, and a pager would wait for one.
    for (name, value) in [("TERM", "dumb"), ("NO_COLOR", "1"), ("PAGER", "cat"), ("GIT_PAGER", "cat")] {
        variables.push((name.to_owned(), value.to_owned()));
    }
    variables.push(("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned()));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_get_no_keys() {
        let environment: Environment = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("OPENAI_API_KEY", "k"),
            ("MY_TOKEN", "t"),
            ("DATABASE", "d"),
        ]
        .into_iter()
        .collect();
        let variables = of_commands(&environment, &["DATABASE".to_owned(), "MISSING".to_owned()]);
        let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[..3], ["LC_ALL", "PATH", "DATABASE"]);
        assert!(
            !names.contains(&"OPENAI_API_KEY") && !names.contains(&"MY_TOKEN") && !names.contains(&"MISSING")
        );
        assert!(
            of_commands(&Environment::default(), &[]).contains(&("PATH".to_owned(), DEFAULT_PATH.to_owned()))
        );
    }
}
