//! Recorded answers of llama-server, sent in pieces of random sizes.

use std::{fmt::Write as _, fs, path::Path};

use expect_test::{Expect, expect};
use kontekst_core::Cancel;
use kontekst_provider::{
    Delta, Progress, Provider as _, ProviderError, Turn,
    openai::{Probe, ServerClient, probe},
};

use super::{TIMING, ask, connect, prompt, text};
use crate::fake_llama::{FakeLlama, Reply, Setup};

fn recorded(name: &str) -> Vec<u8> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/transcripts/llama-server/{name}.http"));
    fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Returns a reply that sends `bytes` in pieces whose sizes depend on `seed`.
fn cut(bytes: &[u8], mut seed: u64) -> Reply {
    let (mut reply, mut rest) = (Reply::raw([]), bytes);
    while !rest.is_empty() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let size = usize::try_from(seed >> 33).unwrap() % 97 + 1;
        let (piece, after) = rest.split_at(size.min(rest.len()));
        (reply, rest) = (reply.then_bytes(piece), after);
    }
    reply
}

/// Compares what the client understands of recordings with `expected`. It must be the same for every seed.
#[track_caller]
fn check(names: &[&str], expected: &Expect) {
    let mut all = String::new();
    for name in names {
        let bytes = recorded(name);
        let fake = FakeLlama::start((0..6).map(|seed| cut(&bytes, seed)));
        let provider = connect(&fake.url(), TIMING);
        let first = describe(&ask(&provider, &prompt("hi")));
        for seed in 1..6 {
            assert_eq!(describe(&ask(&provider, &prompt("hi"))), first, "{name}, cut {seed}");
        }
        writeln!(all, "{name}:\n{first}").unwrap();
    }
    expected.assert_eq(&all);
}

fn describe((turn, deltas): &(Result<Turn, ProviderError>, Vec<Delta>)) -> String {
    let mut description = String::new();
    for delta in deltas {
        if let Delta::Progress(Progress::Prefill { processed, total, cached }) = delta {
            writeln!(description, "read {processed} of {total}, {cached} from cache").unwrap();
        }
    }
    let turn = match turn {
        Ok(turn) => turn,
        Err(ProviderError::Unreachable { started, source, .. }) => {
            writeln!(
                description,
                "unreachable, started: {started}, {source}; got {} bytes",
                text(deltas).len()
            )
            .unwrap();
            return description;
        }
        Err(error) => {
            writeln!(description, "{error}; got {} bytes", text(deltas).len()).unwrap();
            return description;
        }
    };
    assert_eq!(text(deltas), turn.content);
    if !turn.reasoning.is_empty() {
        writeln!(description, "thought {:?}", turn.reasoning).unwrap();
    }
    if !turn.content.is_empty() {
        writeln!(description, "said {:?}", turn.content).unwrap();
    }
    for call in &turn.calls {
        writeln!(description, "called {} {} as {}", call.name, call.arguments, call.id).unwrap();
    }
    let usage = turn.usage.map(|usage| (usage.prompt, usage.completion, usage.cached));
    writeln!(description, "{:?} {usage:?}", turn.finish_reason).unwrap();
    description
}

#[test]
fn texts() {
    let names = ["text", "text_with_progress", "text_from_cache", "reasoning", "plain_template_with_tools"];
    check(
        &names,
        &expect![[r#"
        text:
        said "The daemon starts the agent reads a file."
        Stop Some((13, 10, 1))

        text_with_progress:
        read 4 of 6014, 4 from cache
        read 2052 of 6014, 4 from cache
        read 4100 of 6014, 4 from cache
        read 6014 of 6014, 4 from cache
        said "The daemon starts the"
        Length Some((6014, 4, 4))

        text_from_cache:
        read 6013 of 6014, 6013 from cache
        read 6014 of 6014, 6013 from cache
        said "The daemon starts the"
        Length Some((6014, 4, 6013))

        reasoning:
        thought "I should think about this step by step before I answer."
        said "The daemon starts the agent reads a file."
        Stop Some((22, 15, 3))

        plain_template_with_tools:
        said "{\"path\": \"README.md\"}"
        Stop Some((12, 8, 0))

    "#]],
    );
}

#[test]
fn calls() {
    let names = ["tool_call", "tool_call_required", "two_tool_calls", "whole_answer"];
    check(
        &names,
        &expect![[r#"
        tool_call:
        called read_file {"path": "README.md"} as EYpv5vRmM2CZyhyfkaHd5OsYwhtWx8Kh
        Stop Some((390, 24, 389))

        tool_call_required:
        called read_file {"path": "README.md"} as KbMJgCuEfRMfiPupMitaJzGCt6Bxffwh
        Stop Some((390, 24, 389))

        two_tool_calls:
        called read_file {"path": "README.md"} as UGS1RuirTiAPtoQXcPYRWVgnkPPaYp38
        called read_file {"path": "README.md"} as jEJJ060PaIjp34orP8L2FhDBXXYanfVX
        Length Some((390, 50, 372))

        whole_answer:
        called read_file {"path": "README.md"} as IT2uXy2TQXcdAvhFbODGicQ0WV9tmLYz
        Stop Some((390, 24, 389))

    "#]],
    );
}

#[test]
fn cut_answers() {
    check(
        &["tool_call_cut", "window_full"],
        &expect![[r#"
        tool_call_cut:
        Length Some((390, 14, 389))

        window_full:
        said "Once upon a time and then it went on and then it went on and then it went on and then it went on and then it went on and then it went on and then it went on and then it went on and then it went on and then it went on and then it went on and then it went on and then it went on and then it went on and then it went on and then it went on and then it went on"
        Length Some((8157, 35, 3))

    "#]],
    );
}

#[test]
fn refusals() {
    let names =
        ["overflow", "bad_request", "not_found", "broken_history", "no_key", "broken_model", "unknown_model"];
    check(
        &names,
        &expect![[r#"
        overflow:
        the prompt takes 60013 tokens and the window has 8192; got 0 bytes

        bad_request:
        the model server answered 400: [json.exception.parse_error.101] parse error at line 1, column 15: syntax error while parsing value - unexpected end of input; expected '[', '{', or a literal; got 0 bytes

        not_found:
        the model server answered 404: File Not Found; got 0 bytes

        broken_history:
        the model server answered 500: Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing value - invalid literal; last read: 'no'; got 0 bytes

        no_key:
        the model server answered 401: Invalid API Key; got 0 bytes

        broken_model:
        the model server answered 500: model name=broken failed to load; got 0 bytes

        unknown_model:
        the model server answered 400: model 'nope' not found; got 0 bytes

    "#]],
    );
}

#[test]
fn broken_streams() {
    check(
        &["error_in_stream", "terminated", "killed", "prefill_then_gone"],
        &expect![[r#"
        error_in_stream:
        the model server answered 500: Context size has been exceeded.; got 2065 bytes

        terminated:
        unreachable, started: true, Peer disconnected; got 85 bytes

        killed:
        unreachable, started: true, Peer disconnected; got 336 bytes

        prefill_then_gone:
        read 0 of 3632, 0 from cache
        unreachable, started: false, Peer disconnected; got 0 bytes

    "#]],
    );
}

/// Probes a server that answers each path with a recording.
fn probed(answers: &'static [(&'static str, &'static str)]) -> Result<Probe, ProviderError> {
    let fake = FakeLlama::with(Setup::default(), []).replay(move |request| {
        let path = format!("{} {}", request.method, request.path);
        let (_, name) = answers.iter().find(|(known, _)| *known == path)?;
        Some(Reply::raw(recorded(name)))
    });
    let link = ServerClient::new(&fake.url(), None, TIMING.connect);
    probe(&link, "alpha", &Cancel::new(), TIMING.probe)
}

#[test]
fn probes_of_recorded_servers() {
    let expected = expect![[r#"
        [
            Ready(
                ServerCapabilities {
                    is_llama_cpp: true,
                    server_kind: LlamaCpp,
                    model: None,
                    window: Some(
                        8192,
                    ),
                    is_unloaded: false,
                    slots: 1,
                    model_path: Some(
                        "/home/me/gguf/tiny.gguf",
                    ),
                    only_model: [
                        "tiny.gguf",
                        "tiny",
                    ],
                    supports_tools: true,
                    supports_system_role: true,
                },
            ),
            Ready(
                ServerCapabilities {
                    is_llama_cpp: false,
                    server_kind: Other,
                    model: None,
                    window: None,
                    is_unloaded: false,
                    slots: 256,
                    model_path: None,
                    only_model: [],
                    supports_tools: true,
                    supports_system_role: true,
                },
            ),
            Ready(
                ServerCapabilities {
                    is_llama_cpp: true,
                    server_kind: LlamaCpp,
                    model: None,
                    window: Some(
                        8192,
                    ),
                    is_unloaded: false,
                    slots: 1,
                    model_path: Some(
                        "/home/me/gguf/models/alpha.gguf",
                    ),
                    only_model: [],
                    supports_tools: true,
                    supports_system_role: true,
                },
            ),
            Loading,
        ]
    "#]];
    let found: [&[_]; 4] = [
        &[("GET /props", "props")],
        &[("GET /props", "not_found"), ("GET /v1/models", "models")],
        &[("GET /props", "router_props"), ("GET /props?model=alpha&autoload=false", "router_props_of_model")],
        &[("GET /props", "loading")],
    ];
    expected.assert_debug_eq(&found.map(|answers| probed(answers).unwrap()));
    let unknown: &[_] =
        &[("GET /props", "router_props"), ("GET /props?model=alpha&autoload=false", "unknown_model")];
    let error = probed(unknown).unwrap_err();
    assert_eq!(error.to_string(), "the model server answered 400: model 'nope' not found");
}

#[test]
fn a_batch_is_counted_exactly() {
    let fake = FakeLlama::start([])
        .replay(|request| (request.path == "/tokenize").then(|| Reply::raw(recorded("tokenize"))));
    let provider = connect(&fake.url(), TIMING);
    let counts = provider.count_tokens(&["Hello", "wörld", "日本語"], &Cancel::new());
    assert_eq!(counts, [4, 6, 9]);
}
