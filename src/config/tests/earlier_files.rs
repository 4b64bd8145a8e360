//! Tests of files that an earlier version wrote.

use super::*;

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
