//! A model server that is found on this machine, where the configuration names none.

use std::{net::TcpListener, sync::Arc};

use kontekst_core::Cancel;
use kontekst_provider::{
    ModelSelector, Models as _, Provider, ProviderError,
    router::{ProcessEnv, Router},
};
use kontekst_store::config::{Config, ProviderKind};
use serde_json::json;

use super::{TIMING, prompt};
use crate::fake_llama::{FakeLlama, Reply, Setup};

/// Returns a router that looks for a server on these ports.
fn router_on(ports: &[u16]) -> Router {
    let config = Config { provider: Some(ProviderKind::Endpoint), ..Config::default() };
    Router::with_timing(&config, ProcessEnv { ports: ports.to_vec(), ..ProcessEnv::default() }, TIMING)
}

fn open(router: &Router, model: &str) -> Result<Arc<dyn Provider>, ProviderError> {
    router.open(ModelSelector { model, endpoint: None, is_required: false }, &Cancel::new(), &mut |_| {})
}

#[track_caller]
fn answer(router: &Router) -> String {
    open(router, "").unwrap().generate(&prompt("hi"), &Cancel::new(), &mut |_| {}).unwrap().content
}

fn saying(text: &'static str) -> FakeLlama {
    FakeLlama::start([]).always(move |_| Reply::text(text))
}

fn port(fake: &FakeLlama) -> u16 {
    fake.address().port()
}

/// Returns a port on which nobody listens.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns a server whose `/v1/models` has this answer.
fn listing(status: u16, body: &'static str) -> FakeLlama {
    FakeLlama::with(Setup { llama: false, ..Setup::default() }, [])
        .replay(move |_| Some(Reply::json(status, &serde_json::from_str(body).unwrap())))
}

#[test]
fn the_first_port_with_a_model_server_answers_and_is_remembered() {
    let (first, second) = (saying("first"), saying("second"));
    let router = router_on(&[closed_port(), port(&first), port(&second)]);
    assert_eq!(answer(&router), "first");
    let asked =
        |fake: &FakeLlama| fake.requests().iter().filter(|request| request.path == "/v1/models").count();
    let before = asked(&first);
    assert_eq!((answer(&router), asked(&first)), ("first".to_owned(), before), "it is not looked for again");
    let status = router.status();
    assert_eq!((status.endpoint, status.healthy, status.running), (first.url(), true, false));
    assert_eq!(status.model, "fake.gguf");
}

#[test]
fn a_server_that_is_gone_is_looked_for_again() {
    let (first, second) = (saying("first"), saying("second"));
    let router = router_on(&[port(&first), port(&second)]);
    let provider = open(&router, "").unwrap();
    drop(first);
    provider.generate(&prompt("hi"), &Cancel::new(), &mut |_| {}).unwrap_err();
    assert_eq!(answer(&router), "second");
    assert_eq!(router.status().endpoint, second.url());
}

#[test]
fn a_server_that_is_started_later_is_found() {
    let port = closed_port();
    let router = router_on(&[port]);
    let Err(ProviderError::NoServer(missing)) = open(&router, "") else { panic!() };
    assert_eq!(missing.fact, format!("no model server answers on this machine, on the ports {port}"));
    assert!(!router.status().healthy);
    let address = ([127, 0, 0, 1], port).into();
    let _fake = FakeLlama::with(Setup { address, ..Setup::default() }, []).always(|_| Reply::text("late"));
    assert_eq!(answer(&router), "late");
}

#[test]
fn what_is_no_usable_model_server_is_passed_over() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let others = [
        listing(200, r#"{"data":[]}"#),
        listing(200, r#"{"hello":"world"}"#),
        listing(200, r#"[]"#),
        listing(401, r#"{"error":"a key is missing"}"#),
        listing(404, r#"{}"#),
        listing(200, r#"{"data":[{"id":"default","owned_by":"kontekst"}]}"#),
    ];
    let real = saying("real");
    let mut ports = vec![silent.local_addr().unwrap().port()];
    ports.extend(others.iter().map(port));
    ports.push(port(&real));
    assert_eq!(answer(&router_on(&ports)), "real");
}

#[test]
fn a_server_that_is_loading_its_model_counts() {
    let loading =
        FakeLlama::with(Setup { loading: true, ..Setup::default() }, []).always(|_| Reply::text("ready"));
    let later = saying("later");
    let router = router_on(&[port(&loading), port(&later)]);
    assert_eq!(router.status().endpoint, loading.url());
    loading.finish_loading();
    assert_eq!(answer(&router), "ready");
}

#[test]
fn a_file_that_an_agent_names_is_not_replaced_by_a_server_with_other_models() {
    let models = tempfile::tempdir().unwrap();
    std::fs::write(models.path().join("mine.gguf"), "").unwrap();
    let fake = FakeLlama::start([]).always(|_| Reply::text("served")).replay(|request| {
        let listed = json!({"data": [{"id": "/elsewhere/served.gguf"}]});
        (request.path == "/v1/models").then(|| Reply::json(200, &listed))
    });
    let config = Config { model_dir: models.path().to_owned(), ..Config::default() };
    let environment = [("PATH", "/nonexistent")].into_iter().collect();
    let process = ProcessEnv { ports: vec![port(&fake)], environment, ..ProcessEnv::default() };
    let router = Router::with_timing(&config, process, TIMING);
    let error = open(&router, "mine.gguf").err().unwrap();
    assert!(error.to_string().contains("mine.gguf"), "the file itself is loaded, and is no model: {error}");
    for served in ["", "served", "served.gguf", "neither-here-nor-there"] {
        assert_eq!(open(&router, served).unwrap().capabilities().window, Some(16_384), "{served}");
    }
}

#[test]
fn a_key_goes_to_no_server_that_was_merely_found() {
    let fake = saying("found");
    let config = Config { api_key_env: Some("KEY".to_owned()), ..Config::default() };
    assert_eq!(config.named_endpoint(), Some("http://127.0.0.1:8080"), "the key has an address");
    router_on(&[port(&fake)]).open(ModelSelector::default(), &Cancel::new(), &mut |_| {}).unwrap();
    assert!(fake.requests().iter().all(|request| request.header("authorization").is_none()));
}
