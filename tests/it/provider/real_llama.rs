//! Tests with the real llama-server. They run only if `KONTEKST_LLAMA_SERVER` names one and `KONTEKST_TEST_MODEL` a
//! small GGUF file.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use kontekst_core::{Cancel, Message, Role, ToolDef, ToolResult};
use kontekst_provider::{
    ChatRequest, Delta, FinishReason, ModelSelector, Models as _, Provider, ProviderError, ToolRole, Turn,
    router::{ProcessEnv, Router},
};
use kontekst_store::config::{Config, Home, ProviderKind};

use serde_json::{Value, json};

use super::{TIMING, read_file};
use crate::wait::wait_until;

/// Returns a request at temperature 0, so that the answer is always the same.
fn prompt(text: &str) -> ChatRequest {
    let mut request = super::prompt(text);
    request.sampling.temperature = Some(0.0);
    request
}

struct RealServer {
    router: Router,
    model: String,
}

fn real() -> Option<RealServer> {
    real_with(Config::default(), None)
}

fn real_with(config: Config, home: Option<Home>) -> Option<RealServer> {
    let (binary, model) =
        (std::env::var_os("KONTEKST_LLAMA_SERVER")?, std::env::var_os("KONTEKST_TEST_MODEL")?);
    let (binary, model) = (PathBuf::from(binary), PathBuf::from(model));
    let config = Config {
        model_dir: model.parent().unwrap().to_owned(),
        endpoint: Some("http://127.0.0.1:0".to_owned()),
        context_size: Some(4096),
        ..config
    };
    let environment = [("KONTEKST_LLAMA_SERVER", binary)].into_iter().collect();
    let router =
        Router::with_timing(&config, ProcessEnv { environment, home, ..ProcessEnv::default() }, TIMING);
    Some(RealServer { router, model: model.file_name().unwrap().to_str().unwrap().to_owned() })
}

impl RealServer {
    fn open(&self) -> Arc<dyn Provider> {
        let wanted = ModelSelector { model: &self.model, endpoint: None, is_required: false };
        self.router.open(wanted, &Cancel::new(), &mut |_| {}).unwrap()
    }
}

fn ask(provider: &dyn Provider, request: &kontekst_provider::ChatRequest) -> Result<Turn, ProviderError> {
    let mut streamed = String::new();
    let turn = provider.generate(request, &Cancel::new(), &mut |delta| {
        if let Delta::Text(text) = delta {
            streamed.push_str(&text);
        }
    })?;
    assert_eq!(streamed, turn.content);
    Ok(turn)
}

#[test]
fn a_whole_agent_loop() {
    let Some(real) = real() else { return };
    let provider = real.open();
    assert_eq!(provider.window(), Some(4096));
    for tool_role in [ToolRole::Native, ToolRole::Text] {
        let mut request = prompt("please !tool now");
        request.tool_role = tool_role;
        request.tools = [read_file()].into();
        let turn = ask(&*provider, &request).unwrap();
        assert_eq!(turn.calls.len(), 1, "{turn:?}");
        assert_eq!(turn.calls[0].name, "read_file");
        let call = turn.calls[0].clone();
        let mut assistant = Message::text(Role::Assistant, &*turn.content);
        assistant.tool_calls.push(call.clone());
        assistant.reasoning = turn.reasoning;
        let result =
            ToolResult { call_id: call.id, name: call.name, output: "# Title".to_owned(), is_error: false };
        request.messages.extend([assistant, Message::result(result)]);
        request.max_tokens = 16;
        let next = ask(&*provider, &request).unwrap();
        let (before, after) = (turn.usage.unwrap(), next.usage.unwrap());
        assert!(after.prompt > before.prompt);
        // The prompt only grew at its end, so the cached part is not processed again.
        assert!(after.cached + 8 >= before.prompt, "{before:?} {after:?}");
    }
}

#[test]
fn a_forced_call_is_made_whatever_the_prompt_says_and_the_cache_holds() {
    let Some(real) = real() else { return };
    let provider = real.open();
    assert!(provider.can_force_tool());
    let mut bound = read_file();
    bound.parameters = json!({"type": "object", "required": ["path"],
        "properties": {"path": {"type": "string", "enum": ["README.md"]}}});
    let other = ToolDef { name: "other".to_owned(), ..read_file() };
    for role in [ToolRole::Auto, ToolRole::Text] {
        let mut request = prompt("hello there");
        (request.tools, request.tool_role) = ([other.clone(), bound.clone()].into(), role);
        ask(&*provider, &request).unwrap();
        request.force_tool = Some("read_file".to_owned());
        let turn = provider.generate(&request, &Cancel::new(), &mut |_| {}).unwrap();
        let arguments: Value = serde_json::from_str(&turn.calls[0].arguments).unwrap();
        assert_eq!((turn.calls[0].name.as_str(), arguments), ("read_file", json!({"path": "README.md"})));
        let usage = turn.usage.unwrap();
        assert!(usage.cached + 8 >= usage.prompt, "{usage:?}");
    }
}

#[test]
fn reasoning_limits_counts_and_overflow() {
    let Some(real) = real() else { return };
    let provider = real.open();
    let turn = ask(&*provider, &prompt("please !think")).unwrap();
    assert!(!turn.reasoning.is_empty() && turn.finish_reason == FinishReason::Stop, "{turn:?}");
    let turn = ask(&*provider, &prompt("!long")).unwrap();
    assert_eq!((turn.finish_reason, turn.usage.unwrap().completion), (FinishReason::Length, 64));
    let cancel = Cancel::new();
    let long = "word ".repeat(1000);
    let counts = provider.count_tokens(&["Hello", "", "<|im_end|>", &long], &cancel);
    assert_eq!(counts[1], 0);
    assert!(counts[0] > 0 && counts[2] > 1, "{counts:?}"); // a control token in a text is tokenized as text
    let mut request = prompt(&long.repeat(5));
    request.max_tokens = 4;
    let error = ask(&*provider, &request).unwrap_err();
    let ProviderError::Overflow { prompt_tokens, window: 4096 } = error else { panic!("{error:?}") };
    assert!(prompt_tokens > 4096);
}

#[test]
fn a_cancel_frees_the_slot() {
    let Some(real) = real() else { return };
    let provider = real.open();
    let cancel = Cancel::new();
    let mut request = prompt("!long");
    request.max_tokens = 3000;
    let result = provider.generate(&request, &cancel, &mut |delta| {
        if let Delta::Text(_) = delta {
            cancel.cancel();
        }
    });
    assert!(matches!(result, Err(ProviderError::Cancelled)), "{result:?}");
    ask(&*provider, &prompt("hi")).unwrap();
    real.router.stop();
    assert!(!real.router.status().running);
}

/// The KV cache of a conversation is stored on disk when its server is stopped, and restored with the next one.
#[test]
fn the_kv_cache_survives_a_server_restart() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::find(Some(dir.path().join("home"))).unwrap();
    home.create().unwrap();
    let config = Config { keep_warm_minutes: 0.005, ..Config::default() };
    let Some(real) = real_with(config.clone(), Some(home.clone())) else { return };
    let mut request = prompt(&"the quick brown fox jumps over the lazy dog ".repeat(60));
    request.session = Some("a-session".parse().unwrap());
    request.max_tokens = 4;
    let first = ask(&*real.open(), &request).unwrap();
    let read = first.usage.unwrap().prompt;
    wait_until("the idle server is stopped", || !real.router.status().running);
    let cache_files: Vec<_> =
        std::fs::read_dir(home.kv()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(cache_files.len(), 1, "{cache_files:?}");
    assert!(cache_files[0].file_name().unwrap().to_str().unwrap().starts_with("a-session@"));

    // Another conversation begins without a cache, and does not overwrite the first one's.
    let mut other = request.clone();
    other.session = Some("another".parse().unwrap());
    let usage = ask(&*real.open(), &other).unwrap().usage.unwrap();
    assert_eq!(usage.cached, 0, "{usage:?}");
    request
        .messages
        .extend([Message::text(Role::Assistant, &*first.content), Message::text(Role::User, "and?")]);
    let usage = ask(&*real.open(), &request).unwrap().usage.unwrap();
    assert!(usage.cached >= read && usage.prompt > read, "{usage:?} {read}");

    // The end of the daemon keeps the cache as well.
    real.router.stop();
    let Some(real) = real_with(config, Some(home)) else { return };
    let usage = ask(&*real.open(), &request).unwrap().usage.unwrap();
    assert!(usage.cached >= read, "{usage:?} {read}");
}

/// Opens a model file in llama.cpp and in the built-in engine.
#[cfg(feature = "builtin")]
fn both_engines(file: &Path) -> Option<[RealServer; 2]> {
    let on = |provider| {
        let config =
            Config { provider: Some(provider), model_dir: file.parent()?.to_owned(), ..Config::default() };
        let mut real = real_with(config.clone(), None)?;
        let binary = std::env::var_os("KONTEKST_LLAMA_SERVER")?;
        let environment = [("KONTEKST_LLAMA_SERVER", binary)].into_iter().collect();
        let launcher = Some(env!("CARGO_BIN_EXE_kontekst").into());
        let process = ProcessEnv { environment, launcher, ..ProcessEnv::default() };
        real.router = Router::with_timing(&config, process, TIMING);
        real.model = file.file_name()?.to_str()?.to_owned();
        Some(real)
    };
    Some([on(ProviderKind::LlamaServer)?, on(ProviderKind::Builtin)?])
}

/// Both engines give the same calls and the same number of prompt tokens for one model file.
#[cfg(feature = "builtin")]
#[test]
fn the_builtin_engine_agrees_with_llama_cpp() {
    let Some(tiny) = std::env::var_os("KONTEKST_TEST_MODEL").map(PathBuf::from) else { return };
    let Some([server, engine]) = both_engines(&tiny) else { return };
    let texts =
        ["hello there", "please !tool now", "please !think", "!long", "äöü 日本 🙂\r\n\t x  it's 12345 =="];
    for text in texts {
        let mut request = prompt(text);
        request.max_tokens = 200;
        request.tools = [read_file()].into();
        request.tool_role = ToolRole::Native;
        // The texts are not compared: the tiny model has several words of the same probability.
        let [theirs, ours] = [&server, &engine].map(|real| {
            let turn = ask(&*real.open(), &request).unwrap();
            let calls = turn.calls.iter();
            let parsed = |json: &str| serde_json::from_str::<Value>(json).unwrap();
            let calls: Vec<_> = calls.map(|call| (call.name.clone(), parsed(&call.arguments))).collect();
            (calls, turn.usage.unwrap().prompt)
        });
        assert_eq!(ours, theirs, "{text}");
    }
    server.router.stop();
}

/// Both engines give the same answers with the starter model, where its rules leave the answer to it.
#[cfg(feature = "builtin")]
#[test]
fn the_starter_model_says_the_same_in_llama_cpp() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/starter/kontekst.gguf");
    let Some([server, engine]) = both_engines(&own) else { return };
    let tools = kontekst_tools::builtin::all(
        &kontekst_store::config::ToolsConfig::default(),
        &kontekst_core::OwnListeners::default(),
        None,
    );
    for (text, calls) in [
        ("read README.md", true),
        ("show me lines 3 to 9 of src/kernel.txt", true),
        ("list the files in docs", true),
        ("a.txt\nb.txt\n\nthe second one", true),
        ("what can you do?", false),
        ("write me a poem about the sea", false),
    ] {
        let mut request = prompt(text);
        request.max_tokens = 200;
        // Its template has no place for a system prompt and tools, and llama.cpp would put them elsewhere.
        request.system = "".into();
        let theirs = ask(&*server.open(), &request).unwrap();
        request.tools = tools.iter().map(|tool| tool.def()).collect();
        let ours = match ask(&*engine.open(), &request) {
            // A refusal is an error with the words of the model.
            Err(ProviderError::Engine(declined)) => {
                assert_eq!(declined, theirs.content, "{text}");
                continue;
            }
            ours => ours.unwrap(),
        };
        let said = ours.calls.first().map_or(ours.content, |call| {
            let (name, arguments) = (&call.name, &call.arguments);
            format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>")
        });
        assert_eq!((ours.calls.len(), said), (usize::from(calls), theirs.content), "{text}");
        assert_eq!(ours.usage.unwrap().prompt, theirs.usage.unwrap().prompt, "{text}");
    }
    server.router.stop();
}
