//! Pages that `web_fetch` turns into text, with the real binary as the process that converts them.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::Path,
    thread,
};

use kontekst_core::{Cancel, OwnListeners, ToolOutcome};
use kontekst_store::config::{Home, ToolsConfig, WebToolsConfig};
use kontekst_tools::{Proposal, WorkDir, builtin};
use serde_json::json;

/// Fetches a page with this HTML from a server on this machine.
fn fetched(html: &str) -> ToolOutcome {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let web = WebToolsConfig { allow_private: vec![format!("127.0.0.1:{port}")], ..Default::default() };
    let config = ToolsConfig { web, ..ToolsConfig::default() };
    let launcher = Some(Path::new(env!("CARGO_BIN_EXE_kontekst")));
    let tools = builtin::all(&config, &OwnListeners::default(), launcher);
    let web_fetch = tools.iter().find(|tool| tool.def().name == "web_fetch").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let work_dir = WorkDir::new(dir.path(), &Home::find(Some(dir.path().join("home"))).unwrap()).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let head = BufReader::new(stream.try_clone().unwrap()).lines();
            head.map_while(Result::ok).take_while(|line| !line.is_empty()).for_each(drop);
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}", html.len());
            stream.write_all(format!("{head}\r\n\r\n{html}").as_bytes()).unwrap();
        });
        let args = json!({"url": format!("http://127.0.0.1:{port}/")});
        web_fetch.execute(&args, &work_dir, &Proposal::default(), &Cancel::new())
    })
}

#[test]
fn a_page_comes_as_text_and_one_that_cannot_be_converted_is_an_error() {
    let page = fetched("<html><h1>Head</h1><p>One <a href='/x'>link</a>.</html>");
    assert!(page.text().ends_with("\n\n# Head\n\nOne [link](/x)."), "{page:?}");
    let endless = fetched(&"<div>".repeat(900_000));
    assert!(endless.is_error(), "{endless:?}");
    assert!(
        endless.text().starts_with("the page cannot be turned into text: it takes "),
        "{}",
        endless.text()
    );
}
