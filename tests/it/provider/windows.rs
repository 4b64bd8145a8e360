//! The context window and the model that each kind of server has, in the words of its own API.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use kontekst_core::{Cancel, Environment};
use kontekst_provider::{
    ModelSelector, Models as _, Provider,
    router::{ProcessEnv, Router},
};
use kontekst_store::config::{Config, ProviderKind};
use serde_json::{Value, json};

use super::{TIMING, prompt};
use crate::fake_llama::{FakeLlama, Reply, Request, Setup};

/// Returns a router whose only server is this one.
fn router_for(fake: &FakeLlama) -> Router {
    router_with(fake, None)
}

/// Returns the same with a configured `context_size`.
fn router_with(fake: &FakeLlama, context_size: Option<u32>) -> Router {
    let config = Config {
        context_size,
        provider: Some(ProviderKind::Endpoint),
        endpoint: Some(fake.url()),
        api_key_env: Some("KEY".to_owned()),
        ..Config::default()
    };
    let environment: Environment = [("KEY", "secret")].into_iter().collect();
    Router::with_timing(&config, ProcessEnv { environment, ..ProcessEnv::default() }, TIMING)
}

/// Returns a server that answers with what `answer` returns, and otherwise as [`Setup`] says.
fn server(setup: Setup, mut answer: impl FnMut(&Request) -> Option<Value> + Send + 'static) -> FakeLlama {
    let is_llama = setup.llama;
    FakeLlama::with(setup, []).always(|_| Reply::text("ok")).replay(move |request| {
        if request.is_chat() && request.body["stream"] == true {
            return None;
        }
        match answer(request) {
            Some(body) => Some(Reply::json(200, &body)),
            None if is_llama => None,
            None => Some(Reply::error(404, "not here")),
        }
    })
}

/// Returns a server that is no llama.cpp, with one page for each path.
fn other(pages: &'static [(&'static str, &'static str)]) -> FakeLlama {
    server(Setup { llama: false, ..Setup::default() }, move |request| {
        let page = pages.iter().find(|(path, _)| *path == request.path)?;
        Some(serde_json::from_str(page.1).unwrap())
    })
}

/// Checks the window of the model that is asked for, and the name that requests carry.
#[track_caller]
fn check(fake: &FakeLlama, asked: &str, window: Option<u32>, sent: &str) -> Arc<dyn Provider> {
    let wanted = ModelSelector { model: asked, endpoint: None, is_required: false };
    let provider = router_for(fake).open(wanted, &Cancel::new(), &mut |_| {}).unwrap();
    assert_eq!(provider.capabilities().window, window);
    provider.generate(&prompt("hi"), &Cancel::new(), &mut |_| {}).unwrap();
    assert_eq!(fake.chats().last().unwrap()["model"], sent);
    provider
}

#[test]
fn llama_server() {
    check(&server(Setup { window: 32_768, ..Setup::default() }, |_| None), "", Some(32_768), "default");
}

#[test]
fn llama_server_with_several_slots_reports_the_window_of_one() {
    let fake = server(Setup { window: 8192, slots: 4, ..Setup::default() }, |_| None);
    assert_eq!(check(&fake, "m.gguf", Some(8192), "m").capabilities().slots, 4);
}

#[test]
fn llama_server_as_a_router_has_the_window_of_the_loaded_model() {
    let fake = server(Setup::default(), |request| match request.path.as_str() {
        "/props" => Some(json!({"role": "router", "default_generation_settings": {"n_ctx": 0}})),
        "/models" => Some(json!({"data": [
            {"id": "small", "status": {"value": "unloaded"}}, {"id": "large", "status": {"value": "loaded"}},
        ]})),
        "/props?model=large&autoload=false" => {
            Some(json!({"default_generation_settings": {"n_ctx": 16_384}}))
        }
        _ => None,
    });
    check(&fake, "", Some(16_384), "large");
    check(&fake, "large", Some(16_384), "large");
}

#[test]
fn llama_server_that_is_loading_is_waited_for() {
    let setup = Setup { window: 12_288, ..Setup::default() };
    let asked = AtomicUsize::new(0);
    let fake = FakeLlama::with(setup, []).always(|_| Reply::text("ok")).replay(move |request| {
        (request.path == "/props" && asked.fetch_add(1, SeqCst) < 3).then(Reply::loading)
    });
    check(&fake, "", Some(12_288), "default");
}

/// Returns an Ollama whose models have the window of their definition, or 4096 tokens, once they are loaded.
fn ollama(definition: &'static str) -> FakeLlama {
    let mut is_loaded = false;
    server(Setup { llama: false, ..Setup::default() }, move |request| match request.path.as_str() {
        "/api/version" => Some(json!({"version": "0.12"})),
        "/v1/models" => Some(json!({"data": [{"id": "nomic-embed-text:latest"}, {"id": "qwen3:8b"}]})),
        "/api/ps" if is_loaded => Some(json!({"models": [
            {"name": "qwen3:8b", "model": "qwen3:8b", "context_length": 4096},
        ]})),
        "/api/ps" => Some(json!({"models": []})),
        "/api/show" => Some(json!({
            "parameters": definition, "model_info": {"qwen3.context_length": 40_960},
        })),
        "/api/generate" if request.body == json!({"model": "qwen3:8b", "stream": false}) => {
            is_loaded = true;
            Some(json!({"done": true, "done_reason": "load"}))
        }
        _ => None,
    })
}

#[test]
fn ollama_loads_the_model_and_tells_the_window_that_it_has_then() {
    check(&ollama("stop \"x\""), "", Some(4096), "qwen3:8b");
    check(&ollama(""), "qwen3:8b", Some(4096), "qwen3:8b");
}

#[test]
fn ollama_with_a_window_in_the_definition_of_the_model() {
    let fake = ollama("num_ctx                        32768\ntemperature 1");
    check(&fake, "", Some(32_768), "qwen3:8b");
    assert!(
        fake.requests().iter().all(|request| request.path != "/api/generate"),
        "nothing has to be loaded"
    );
}

#[test]
fn lm_studio_with_a_loaded_model() {
    let fake = other(&[
        ("/v1/models", r#"{"data":[{"id":"a"},{"id":"b"}]}"#),
        (
            "/api/v0/models",
            r#"{"data":[{"id":"text-embedding-x","type":"embeddings","state":"loaded","max_context_length":2048},
                {"id":"a","type":"llm","state":"not-loaded","max_context_length":131072},
                {"id":"b","type":"llm","state":"loaded","max_context_length":131072,"loaded_context_length":24000}]}"#,
        ),
    ]);
    check(&fake, "", Some(24_000), "b");
}

/// Returns an LM Studio with an unloaded model, which is loaded by a request to `load_path`.
fn lm_studio(load_path: &'static str) -> FakeLlama {
    let mut is_loaded = false;
    server(Setup { llama: false, ..Setup::default() }, move |request| match request.path.as_str() {
        "/v1/models" => Some(json!({"data": [{"id": "a"}]})),
        "/api/v0/models" if is_loaded => Some(json!({"data": [
            {"id": "a", "type": "llm", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": 10_000},
        ]})),
        "/api/v0/models" => Some(json!({"data": [
            {"id": "a", "type": "llm", "state": "not-loaded", "max_context_length": 131_072},
        ]})),
        path if path == load_path && request.body["model"] == "a" => {
            is_loaded = true;
            Some(json!({"status": "loaded"}))
        }
        _ => None,
    })
}

#[test]
fn lm_studio_without_a_loaded_model_loads_it_and_tells_the_window_that_it_has_then() {
    check(&lm_studio("/api/v1/models/load"), "", Some(10_000), "a");
    check(&lm_studio("/v1/chat/completions"), "a", Some(10_000), "a"); // before version 0.4
    check(&lm_studio("/never"), "a", Some(4096), "a"); // the usual window, and not the largest possible
}

#[test]
fn lm_studio_loads_a_model_with_the_configured_window() {
    let fake = |most: u64| {
        let mut window = None;
        server(Setup { llama: false, ..Setup::default() }, move |request| match request.path.as_str() {
            "/v1/models" => Some(json!({"data": [{"id": "a"}]})),
            "/api/v0/models" => Some(json!({"data": [match window {
                None => json!({"id": "a", "type": "llm", "state": "not-loaded"}),
                Some(_) => json!({"id": "a", "type": "llm", "state": "loaded", "loaded_context_length": window}),
            }]})),
            "/api/v1/models/load" => {
                let wanted = request.body["context_length"].as_u64().unwrap_or(4096);
                window = Some(wanted).filter(|&wanted| wanted <= most);
                window.map(|_| json!({"status": "loaded"}))
            }
            _ => None,
        })
    };
    let warning = |router: &Router| router.status().warnings;
    let open = |router: &Router| {
        let wanted = ModelSelector { model: "a", endpoint: None, is_required: false };
        let provider = router.open(wanted, &Cancel::new(), &mut |_| {}).unwrap();
        (provider.capabilities().window, provider.capabilities().window_warning)
    };
    let server = fake(20_000);
    let router = router_with(&server, Some(16_384));
    assert_eq!(open(&router), (Some(16_384), None));
    assert_eq!(warning(&router), [""; 0]);

    // The memory is too small for it.
    let server = fake(10_000);
    let router = router_with(&server, Some(16_384));
    let text = "`context_size` is 16384 tokens, but the server has a window of 4096; unload the model there, and the \
        next run loads it with that window";
    assert_eq!(open(&router), (Some(4096), Some(text.to_owned())));
    assert_eq!(warning(&router), [text]);
}

#[test]
fn a_configured_window_that_ollama_does_not_have_is_reported() {
    let fake = ollama("");
    let router = router_with(&fake, Some(16_384));
    let wanted = ModelSelector { model: "qwen3:8b", endpoint: None, is_required: false };
    let provider = router.open(wanted, &Cancel::new(), &mut |_| {}).unwrap();
    let text = "`context_size` is 16384 tokens, but the server has a window of 4096; start Ollama with \
        OLLAMA_CONTEXT_LENGTH=16384, because its API for chats cannot change it";
    assert_eq!(
        (provider.capabilities().window, provider.capabilities().window_warning.as_deref()),
        (Some(4096), Some(text))
    );
    assert_eq!(router.status().warnings, [text]);

    let router = router_with(&fake, Some(2048));
    let provider = router.open(wanted, &Cancel::new(), &mut |_| {}).unwrap();
    assert_eq!(provider.capabilities().window_warning, None);
}

#[test]
fn vllm() {
    let fake = other(&[(
        "/v1/models",
        r#"{"data":[{"id":"Qwen/Qwen3-8B","owned_by":"vllm","max_model_len":40960}]}"#,
    )]);
    check(&fake, "", Some(40_960), "Qwen/Qwen3-8B");
    check(&fake, "lora", Some(40_960), "lora");
}

#[test]
fn a_server_that_says_nothing_has_no_known_window() {
    let fake = other(&[("/v1/models", r#"{"object":"list","data":[{"id":"some-embedding"},{"id":"m"}]}"#)]);
    check(&fake, "", None, "m");
}

#[test]
fn tabby_api_tells_of_the_loaded_model() {
    let fake = other(&[
        ("/v1/models", r#"{"data":[{"id":"on-disk"},{"id":"loaded"}]}"#),
        (
            "/v1/model",
            r#"{"id":"loaded","object":"model","parameters":{"max_seq_len":20480,"cache_size":20480}}"#,
        ),
    ]);
    check(&fake, "", Some(20_480), "loaded");
}

#[test]
fn a_server_with_a_key() {
    let setup = Setup { window: 6144, key: Some("secret".to_owned()), ..Setup::default() };
    check(&server(setup, |_| None), "", Some(6144), "default");
}

#[test]
fn llama_swap_tells_of_the_server_that_it_has_started() {
    let fake = other(&[
        ("/v1/models", r#"{"data":[{"id":"m"}]}"#),
        ("/running", r#"{"running":[{"model":"m","state":"ready"}]}"#),
        ("/upstream/m/props", r#"{"default_generation_settings":{"n_ctx":1024},"total_slots":2}"#),
    ]);
    assert_eq!(check(&fake, "m", Some(1024), "m").capabilities().slots, 2);
    assert_eq!(fake.chats()[0]["cache_prompt"], true, "it is asked as llama.cpp is");
}

#[test]
fn ollama_that_says_nothing_of_its_models_has_no_known_window() {
    let fake = other(&[("/v1/models", r#"{"data":[{"id":"m"}]}"#), ("/api/version", r#"{"version":"0.9"}"#)]);
    check(&fake, "m", None, "m");
}
