//! Tests of first use, of incomplete and invalid files, and of file modes.

use std::{fs, os::unix::fs::PermissionsExt};

use expect_test::{Expect, expect};

use super::*;

fn home() -> (tempfile::TempDir, Home) {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::find(Some(dir.path().join("data"))).unwrap();
    (dir, home)
}

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn load(text: &str) -> Result<Config, ConfigError> {
    let (_dir, home) = home();
    home.create().unwrap();
    fs::write(home.config(), text).unwrap();
    let result = Config::load(&home);
    assert_eq!(fs::read_to_string(home.config()).unwrap(), text, "the file is left alone");
    result
}

#[track_caller]
fn refused(text: &str, expect: &Expect) {
    let error = load(text).unwrap_err().to_string();
    let file = error.find("config.toml").expect("the file is named");
    expect.assert_eq(&error[file..]);
}

#[test]
fn first_use_writes_a_file_with_the_defaults() {
    let (_dir, home) = home();
    let config = Config::load(&home).unwrap();
    let expected = Config { model_dir: home.expand("~/models".as_ref()), ..Config::default() };
    assert_eq!(config, expected);
    assert!(config.model_dir.is_absolute());
    assert_eq!(mode(&home.config()), 0o600);
    for dir in [home.root().to_owned(), home.run(), home.agents(), home.skills(), home.sessions()] {
        assert_eq!(mode(&dir), 0o700, "{}", dir.display());
    }
    assert_eq!(Config::load(&home).unwrap(), config, "loading again gives the same values");
}

#[test]
fn an_endpoint_is_an_address_or_a_table_with_a_key() {
    let read = |text: &str| toml::from_str::<Config>(text).map(|config| config.endpoints);
    let endpoints = read(r#"endpoints = ["http://a/", { url = "https://b", api_key_env = "B" }]"#).unwrap();
    let endpoint = |url: &str, name: Option<&str>| EndpointConfig {
        url: url.to_owned(),
        api_key_env: name.map(str::to_owned),
    };
    assert_eq!(endpoints, [endpoint("http://a", None), endpoint("https://b", Some("B"))]);
    for bad in ["endpoints = [\"ftp://a\"]", "endpoints = [1]", "endpoints = [{ api_key_env = \"B\" }]"] {
        let error = read(bad).unwrap_err().to_string();
        assert!(error.contains("an http:// or https:// address"), "{bad}: {error}");
    }
}

#[test]
fn the_template_and_the_known_keys_are_all_fields() {
    let provider = KaiakProvider { endpoint: "http://x".into(), model: None, api_key_env: None };
    let every = Config {
        endpoint: Some("http://x".into()),
        context_size: Some(4096),
        gpu_layers: Some(0),
        provider: Some(ProviderKind::Endpoint),
        llama_server: Some("x".into()),
        llama_args: vec!["x".into()],
        endpoints: vec![EndpointConfig { url: "http://x".into(), api_key_env: None }],
        api_key_env: Some("X".into()),
        allow_remote: true,
        tools: ToolsConfig {
            web: WebToolsConfig { allow_private: vec!["x".into()], ..Default::default() },
            ..Default::default()
        },
        commands: CommandsConfig {
            allow: vec!["x".into()],
            environment: vec!["X".into()],
            hidden: vec!["x".into()],
            ..Default::default()
        },
        http: HttpConfig { origins: vec!["x".into()], hosts: vec!["x".into()], ..Default::default() },
        kaiak: KaiakConfig { providers: [("openai".to_owned(), provider)].into(), ..Default::default() },
        dir: [("/x".to_owned().try_into().unwrap(), DirConfig::default())].into(),
        ..Config::default()
    };
    let mut keys = Vec::new();
    fn walk(table: &toml::Table, prefix: &str, keys: &mut Vec<String>) {
        for (key, value) in table {
            match value {
                toml::Value::Table(inner) if !["providers", "dir"].contains(&key.as_str()) => {
                    walk(inner, &format!("{prefix}{key}."), keys);
                }
                _ => keys.push(format!("{prefix}{key}")),
            }
        }
    }
    walk(&toml::Table::try_from(&every).unwrap(), "", &mut keys);
    keys.sort();
    let mut known = template::KEYS.to_vec();
    known.sort_unstable();
    assert_eq!(keys, known);
    for key in known {
        let leaf = key.rsplit('.').next().unwrap();
        let documented = |line: &str| line.trim_start_matches("# ").starts_with(&format!("{leaf} = "));
        assert!(template::CONFIG.lines().any(documented), "{key} is in the template");
    }
}

#[test]
fn the_manual_page_names_every_key() {
    let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/man/kontekst-config.5"));
    for key in template::KEYS.iter().chain(agents::KEYS) {
        assert!(
            page.lines().any(|line| line.strip_prefix(".B ") == Some(*key)),
            "kontekst-config(5) has no `{key}`"
        );
    }
}

/// Returns a file with the keys that are in its comments.
fn uncommented(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("# ") {
        Some(rest) if rest.split(' ').nth(1) == Some("=") => format!("{rest}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// The `config.toml` of the default agent that the first version wrote.
const FIRST_AGENT: &str = r#"name = "Default Assistant"
model = "gpt-oss-20b-Q4_K_M.gguf"   # a file in `model_dir`
# tool_role = "auto"                # true: tool results have a role of their own; false: they are user text

[sampling]
temperature = 0.7
top_p = 0.9
top_k = 40
repeat_penalty = 1.1
max_tokens = 4096
"#;

/// The `config.toml` that the first version wrote.
const FIRST_CONFIG: &str = r##"# kontekst configuration. Keys left out keep the defaults shown here.

bind = ":50051"                      # gRPC on TCP; `:PORT` is this machine only, "off" leaves the unix socket
endpoint = "http://127.0.0.1:8080"   # model server; used as it is when something healthy answers there
model_dir = "~/models"               # where GGUF files are
context_size = 4096                  # tokens the model can see
# gpu_layers = 0                     # layers on the GPU; llama-server decides when absent
# provider = "endpoint"              # "endpoint" or "llama-server" pins one; tried in order when absent
# llama_server = "/usr/bin/llama-server"   # the binary; looked for when absent
# llama_args = []                    # added at the end of its command line
# api_key_env = "OPENAI_API_KEY"     # environment variable of the daemon with the endpoint's key
# allow_remote = false               # lets `bind` be an address that other machines reach; needs a token
max_turns = 50                       # model calls in one run before it fails

[tools]
working_dir = ""                     # used when a client names no working directory
timeout_seconds = 120                # for one tool call

[tools.file]
max_size_bytes = 10485760            # largest file that is read or written

[tools.web]
timeout_seconds = 30                 # for one fetch
max_response_bytes = 5242880         # a longer body is cut, and the cut is marked
# allow_private = []                 # hosts that may be fetched although their address is private
"##;

#[test]
fn a_configuration_that_an_earlier_version_wrote_is_replaced() {
    let (_dir, home) = home();
    let fresh = Config::load(&home).unwrap();
    fs::write(home.config(), FIRST_CONFIG).unwrap();
    assert_eq!(Config::load(&home).unwrap(), Config { was_replaced: true, ..fresh.clone() });
    assert_eq!(fs::read_to_string(home.config()).unwrap(), template::CONFIG);
    assert_eq!(Config::load(&home).unwrap(), fresh, "it is replaced once");

    let touched = FIRST_CONFIG.replace("4096", "8192");
    fs::write(home.config(), &touched).unwrap();
    assert_eq!(Config::load(&home).unwrap().context_size, Some(8192));
    assert_eq!(fs::read_to_string(home.config()).unwrap(), touched);
}

#[test]
fn a_file_that_an_earlier_version_wrote_is_replaced_and_any_other_is_left_alone() {
    let (_dir, home) = home();
    home.create().unwrap();
    agents::create_default(&home).unwrap();
    let file = home.agents().join("default/config.toml");
    let present = fs::read_to_string(&file).unwrap();
    fs::write(&file, FIRST_AGENT).unwrap();
    assert!(!agents::create_default(&home).unwrap());
    assert_eq!(fs::read_to_string(&file).unwrap(), present);

    for touched in [FIRST_AGENT.replace("0.7", "0.5"), format!("{FIRST_AGENT}\n"), "".to_owned()] {
        fs::write(&file, &touched).unwrap();
        agents::create_default(&home).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), touched);
    }
    let elsewhere = home.root().join("mine.toml");
    fs::write(&elsewhere, FIRST_AGENT).unwrap();
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    agents::create_default(&home).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), FIRST_AGENT, "a link is the user's own arrangement");
}

#[test]
fn a_text_that_was_ever_written_is_known() {
    for (written, present) in
        [(template::WRITTEN, template::CONFIG), (agents::WRITTEN_CONFIG, agents::DEFAULT_CONFIG)]
    {
        assert_eq!(
            written.last(),
            Some(&&*earlier_text::sha256(present)),
            "add the SHA-256 of the new text to the list, and keep the others"
        );
    }
}

#[test]
fn the_commented_keys_of_the_template_are_valid_too() {
    let config = load(&uncommented(template::CONFIG)).unwrap();
    assert_eq!(config.gpu_layers, Some(0));
    assert_eq!(config.endpoint.as_deref(), Some(FALLBACK_ENDPOINT));
    assert_eq!(config.context_size, Some(FALLBACK_CONTEXT_SIZE));
    assert_eq!(config.unknown_keys, Vec::<String>::new());
}

#[test]
fn a_partial_file_keeps_the_other_defaults_and_unknown_keys_are_reported() {
    let config = load(
        "context_size = 8192\ndata_dir = 'x'\n[tools.web]\ntimeout_seconds = 5\nx = 1\n[debug]\nlog = true\n",
    );
    let config = config.unwrap();
    assert_eq!((config.context_size, config.tools.web.timeout_seconds), (Some(8192), 5));
    assert_eq!(config.tools.web.max_response_bytes, 5_242_880);
    assert_eq!(config.gpu_layers, None);
    let mut unknown = config.unknown_keys;
    unknown.sort();
    assert_eq!(unknown, ["data_dir", "debug", "tools.web.x"]);
    assert_eq!(load("").unwrap().bind, Bind::default());
    assert_eq!(load("bind = ''").unwrap().bind, Bind::default());
    assert_eq!(load("bind = 'off'").unwrap().bind, Bind::Off);
    assert_eq!(load("endpoint = 'http://h:1/'").unwrap().endpoint.as_deref(), Some("http://h:1"));
}

#[test]
fn a_mistake_is_reported_with_its_line() {
    refused(
        "bind = ':1'\ncontext_size =\n",
        &expect![
            "config.toml, line 2, column 15: `context_size`: string values must be quoted, expected literal string"
        ],
    );
    refused(
        "\ncontext_size = 'big'\n",
        &expect![[
            r#"config.toml, line 2, column 16: `context_size`: invalid type: string "big", expected i64"#
        ]],
    );
    refused(
        "context_size = 255\n",
        &expect!["config.toml, line 1, column 16: `context_size`: must be from 256 to 2147483647, not 255"],
    );
    refused(
        "context_size = -1\n",
        &expect!["config.toml, line 1, column 16: `context_size`: must be from 256 to 2147483647, not -1"],
    );
    refused(
        "max_turns = 0\n",
        &expect!["config.toml, line 1, column 13: `max_turns`: must be from 1 to 100000, not 0"],
    );
    refused("endpoint = '  '\n", &expect!["config.toml, line 1, column 12: `endpoint`: must not be blank"]);
    refused(
        "endpoint = 'ftp://x'\n",
        &expect![
            "config.toml, line 1, column 12: `endpoint`: `ftp://x` is not an http:// or https:// address"
        ],
    );
    refused(
        "endpoint = 'localhost:8080'\n",
        &expect![
            "config.toml, line 1, column 12: `endpoint`: `localhost:8080` is not an http:// or https:// address"
        ],
    );
    refused(
        "bind = '50051'\n",
        &expect![
            "config.toml, line 1, column 8: `bind`: `50051` is not an address: use `:PORT` for this machine only, `IP:PORT`, or `off`"
        ],
    );
    refused(
        "provider = 'cloud'\n",
        &expect![
            "config.toml, line 1, column 12: `provider`: unknown variant `cloud`, expected one of `endpoint`, `llama-server`, `builtin`"
        ],
    );
    refused(
        "[tools.file]\nmax_size_bytes = 0\n",
        &expect!["config.toml, line 2, column 18: `max_size_bytes`: must be from 1 to 1073741824, not 0"],
    );
    refused(
        "[tools]\nfile = 3\n",
        &expect![
            "config.toml, line 2, column 8: `file`: invalid type: integer `3`, expected struct FileToolsConfig"
        ],
    );
    refused(
        "bind = '0.0.0.0:1'\n",
        &expect![
            "config.toml: `bind` is 0.0.0.0:1, which other machines can reach, and `allow_remote` is not true"
        ],
    );
}

#[test]
fn a_remote_address_needs_allow_remote() {
    assert!(load("bind = '0.0.0.0:1'\nallow_remote = true\n").unwrap().bind.is_remote());
}

#[test]
fn loose_modes_are_repaired() {
    let (_dir, home) = home();
    fs::create_dir_all(home.sessions()).unwrap();
    for dir in [home.root().to_owned(), home.sessions()] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    }
    home.create().unwrap();
    assert_eq!((mode(home.root()), mode(&home.sessions())), (0o700, 0o700));
}

#[test]
fn a_directory_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return; // only root can make one
    }
    let (_dir, home) = home();
    fs::create_dir(home.root()).unwrap();
    std::os::unix::fs::chown(home.root(), Some(65534), None).unwrap();
    let error = home.create().unwrap_err();
    assert!(matches!(error, HomeError::WrongOwner { owner: 65534, .. }), "{error}");
    assert!(!home.sessions().exists());
}

#[test]
fn a_file_where_the_directory_should_be_is_an_error() {
    let (_dir, home) = home();
    fs::write(home.root(), "x").unwrap();
    assert!(matches!(home.create(), Err(HomeError::Path(_))));
}

fn agent(files: &[(&str, &str)]) -> Result<AgentConfig, AgentError> {
    let (_dir, home) = home();
    home.create().unwrap();
    let dir = home.agents().join("x");
    fs::create_dir(&dir).unwrap();
    for (name, text) in files {
        fs::write(dir.join(name), text).unwrap();
    }
    AgentConfig::load(&home, &"x".parse().unwrap())
}

#[test]
fn the_default_agent_leaves_the_choice_to_the_model_and_shows_the_values_of_the_seed() {
    let (_dir, home) = home();
    home.create().unwrap();
    assert!(agents::create_default(&home).unwrap());
    assert!(!agents::create_default(&home).unwrap());
    let agent = AgentConfig::load(&home, &agents::DEFAULT.parse().unwrap()).unwrap();
    assert_eq!((agent.display_name.as_str(), agent.model.as_str()), ("Default Assistant", ""));
    assert_eq!(agent.sampling, crate::core::Sampling::default());
    assert!((100..=700).contains(&agent.prompt.len()), "{}", agent.prompt.len());
    assert_eq!(agent.unknown_keys, Vec::<String>::new());
    assert_eq!(
        (mode(&home.agents().join("default")), mode(&home.agents().join("default/agent.md"))),
        (0o700, 0o600)
    );

    let file = home.agents().join("default/config.toml");
    let with_comments = fs::read_to_string(&file).unwrap();
    fs::write(&file, uncommented(&with_comments)).unwrap();
    let agent = AgentConfig::load(&home, &agents::DEFAULT.parse().unwrap()).unwrap();
    assert_eq!(agent.model, "gpt-oss-20b-Q4_K_M.gguf");
    let sampling = crate::core::Sampling {
        temperature: Some(0.7),
        top_p: Some(0.9),
        top_k: Some(40),
        repeat_penalty: Some(1.1),
        max_tokens: Some(4096),
    };
    assert_eq!(agent.sampling, sampling);

    fs::remove_file(home.agents().join("default/config.toml")).unwrap();
    assert!(!agents::create_default(&home).unwrap(), "what a person changed stays changed");
}

#[test]
fn one_of_the_two_files_makes_an_agent() {
    let only_prompt = agent(&[("agent.md", "\nBe kind.\n\n")]).unwrap();
    assert_eq!((only_prompt.prompt.as_str(), only_prompt.display_name.as_str()), ("Be kind.", "x"));
    assert!(only_prompt.has_prompt && !only_prompt.has_config);
    let only_config = agent(&[("config.toml", "model = 'm.gguf'\nextra = 1")]).unwrap();
    assert!(only_config.has_config && !only_config.has_prompt);
    assert_eq!((only_config.model.as_str(), only_config.unknown_keys), ("m.gguf", vec!["extra".to_owned()]));
    for (text, role) in [
        ("tool_role = true", ToolRole::Native),
        ("tool_role = false", ToolRole::Text),
        ("tool_role = 'auto'", ToolRole::Auto),
        ("tool_role = 'steps'", ToolRole::Steps),
        ("tool_role = 'text'", ToolRole::Prompted),
        ("", ToolRole::Auto),
    ] {
        assert_eq!(agent(&[("config.toml", text)]).unwrap().tool_role, role, "{text}");
    }
}

#[test]
fn rails_are_on_unless_a_key_says_otherwise() {
    assert_eq!(agent(&[("config.toml", "")]).unwrap().rails, RailsConfig::default());
    let text = "[rails]\nrepeats = false\nthinking_budget = 500\nguard_rail = true\n";
    let some = agent(&[("config.toml", text)]).unwrap();
    let expected = RailsConfig { repeats: false, thinking_budget: Some(500), ..RailsConfig::default() };
    assert_eq!((some.rails, some.unknown_keys), (expected, vec!["rails.guard_rail".to_owned()]));
}

#[test]
fn a_mistake_in_an_agent_file_is_reported_with_its_line() {
    #[track_caller]
    fn refused(text: &str, expect: &Expect) {
        let error = agent(&[("config.toml", text)]).unwrap_err().to_string();
        expect.assert_eq(&error[error.find("agents/").expect("the file is named")..]);
    }
    refused(
        "model = 3",
        &expect![
            "agents/x/config.toml, line 1, column 9: `model`: invalid type: integer `3`, expected a string"
        ],
    );
    refused(
        "[rails]\nopening = 1",
        &expect![
            "agents/x/config.toml, line 2, column 11: `opening`: invalid type: integer `1`, expected a boolean"
        ],
    );
    refused(
        "tool_role = 'maybe'",
        &expect![[
            r#"agents/x/config.toml, line 1, column 13: `tool_role`: invalid value: string "maybe", expected true, false, "text", "steps" or "auto""#
        ]],
    );
    refused(
        "[sampling]\ntemperature = 2.5",
        &expect!["agents/x/config.toml, line 2, column 15: `temperature`: must be from 0 to 2, not 2.5"],
    );
    refused(
        "[sampling]\ntemperature = nan",
        &expect!["agents/x/config.toml, line 2, column 15: `temperature`: must be from 0 to 2, not NaN"],
    );
    refused(
        "[sampling]\ntop_p = -0.1",
        &expect!["agents/x/config.toml, line 2, column 9: `top_p`: must be from 0 to 1, not -0.1"],
    );
    refused(
        "[sampling]\ntop_k = -1",
        &expect!["agents/x/config.toml, line 2, column 9: `top_k`: must be from 0 to 2147483647, not -1"],
    );
    refused(
        "[sampling]\nrepeat_penalty = 3",
        &expect!["agents/x/config.toml, line 2, column 18: `repeat_penalty`: must be from 0 to 2, not 3"],
    );
    refused(
        "[sampling]\nmax_tokens = 0",
        &expect![
            "agents/x/config.toml, line 2, column 14: `max_tokens`: must be from 1 to 2147483647, not 0"
        ],
    );
    refused(
        "[sampling]\ntop_q = 1",
        &expect![
            "agents/x/config.toml, line 2, column 1: unknown field `top_q`, expected one of `temperature`, `top_p`, `top_k`, `repeat_penalty`, `max_tokens`"
        ],
    );
    refused(
        "endpoint = ''",
        &expect!["agents/x/config.toml, line 1, column 12: `endpoint`: must not be blank"],
    );
    refused(
        "context_size = 1",
        &expect![
            "agents/x/config.toml, line 1, column 16: `context_size`: must be from 256 to 2147483647, not 1"
        ],
    );
    assert!(agent(&[("config.toml", "[sampling]\ntemperature = 1")]).is_ok(), "whole numbers are fine");
}

#[test]
fn an_unknown_agent_names_the_others() {
    let (_dir, home) = home();
    home.create().unwrap();
    let load = || AgentConfig::load(&home, &"x".parse().unwrap()).unwrap_err().to_string();
    assert_eq!(load(), "no agent `x`; there are: none");
    agents::create_default(&home).unwrap();
    for dir in ["b", "empty", ".hidden", "with space"] {
        fs::create_dir(home.agents().join(dir)).unwrap();
    }
    fs::write(home.agents().join("b/agent.md"), "x").unwrap();
    fs::write(home.agents().join(".hidden/agent.md"), "x").unwrap();
    assert_eq!(load(), "no agent `x`; there are: b, default");
    fs::write(home.agents().join("b/config.toml"), "x").unwrap();
    let listed: Vec<bool> = AgentConfig::list(&home).iter().map(Result::is_ok).collect();
    assert_eq!(listed, [false, true], "a broken agent is listed as such");
}
