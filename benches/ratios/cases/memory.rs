//! The memory of the daemon after heavy loads. Each load has a daemon of its own. Its resident memory is read when it is
//! fresh, at the end of the load, and after a minute without any.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use super::{Case, idle::resident};
use crate::{
    Failure,
    fixture::{Fixture, Options},
    process,
    table::Row,
};

pub(crate) const ALL: &[Case] = &[
    Case { name: "three prompts", run: |options| measure(options, &LARGE_PROMPTS) },
    Case { name: "starter runs", run: |options| measure(options, &STARTER_RUNS) },
    Case { name: "clients that do not read", run: |options| measure(options, &SILENT_CLIENTS) },
    Case { name: "short runs", run: |options| measure(options, &SHORT_RUNS) },
    Case { name: "web pages", run: |options| measure(options, &WEB_PAGES) },
];

/// The time between the end of a load and the last figure.
const REST: Duration = Duration::from_secs(60);

/// The goal: the memory of the daemon after [`REST`], as a multiple of what it took when it was fresh.
const GOAL: f64 = 2.0;

/// A context window, in tokens, that holds a prompt of 30 MB.
const WINDOW: u32 = 16_000_000;

/// A model whose answer does not end while anybody measures.
const ENDLESS: &str = "t1000000000d0";

const LARGE_PROMPTS: Load =
    Load { row: "after three prompts of 30 MB", provider: "endpoint", run: send_large_prompts };
const STARTER_RUNS: Load =
    Load { row: "after 200 runs of the starter model", provider: "builtin", run: run_starter };
const SILENT_CLIENTS: Load =
    Load { row: "after 50 clients that do not read", provider: "endpoint", run: keep_silent };
const SHORT_RUNS: Load = Load { row: "after 256 runs at once", provider: "endpoint", run: run_at_once };
const WEB_PAGES: Load = Load { row: "after 16 pages of 2 MB", provider: "builtin", run: fetch_pages };

struct Load {
    row: &'static str,
    /// The `provider` of config.toml.
    provider: &'static str,
    run: fn(&Daemon) -> Result<(), Failure>,
}

struct Daemon {
    fixture: Fixture,
    /// The address of HTTP, as `IP:PORT`.
    http: String,
}

fn measure(options: &Options, load: &Load) -> Result<Vec<Row>, Failure> {
    let daemon = Daemon::start(options, load.provider)?;
    let pid = daemon.fixture.home.daemon().ok_or("no daemon")?;
    let fresh = resident(pid)?;
    (load.run)(&daemon)?;
    let after = resident(pid)?;
    thread::sleep(REST);
    let rested = resident(pid)?;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let from = format!("{:.1} MB, then {:.1}, {:.1}", megabytes(fresh), megabytes(after), megabytes(rested));
    Ok(vec![Row::share(load.row, from, rested as f64 / fresh as f64, GOAL, "x fresh")])
}

impl Daemon {
    fn start(options: &Options, provider: &str) -> Result<Self, Failure> {
        let fixture = Fixture::new(options, WINDOW)?;
        let endpoint = match provider {
            "endpoint" => format!("endpoint = \"{}\"\ncontext_size = {WINDOW}\n", fixture.server.url()),
            _ => String::new(),
        };
        let config = format!(
            "provider = \"{provider}\"\n{endpoint}bind = \"off\"\n[http]\nlisten = \"127.0.0.1:0\"\n\
             [tools.web]\nallow_private = [\"127.0.0.1\"]\n"
        );
        fs::write(fixture.home.data_dir.join("config.toml"), config)?;
        fixture.home.agent("endless", &format!("model = \"{ENDLESS}\"\n[rails]\nrepeats = false\n"))?;
        let page = process::run(fixture.home.kontekst(&["web", "--no-open"]))?.stdout;
        let page = String::from_utf8(page)?;
        let http =
            page.strip_prefix("http://").and_then(|page| page.split('/').next()).ok_or("no address")?;
        Ok(Self { http: http.to_owned(), fixture })
    }

    /// Sends a request and returns its connection, from which nothing was read.
    fn post(&self, path: &str, body: &str) -> Result<TcpStream, Failure> {
        let mut stream = TcpStream::connect(&self.http)?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            self.http,
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        Ok(stream)
    }

    /// Runs commands to their end, `together` at a time.
    fn run_all(&self, count: usize, together: usize, words: &[&str]) -> Result<(), Failure> {
        for _ in 0..count / together {
            let started: Vec<_> = (0..together)
                .map(|_| process::start(self.fixture.home.kontekst(words)))
                .collect::<Result<_, _>>()?;
            started.into_iter().try_for_each(|process| process.finish().map(drop))?;
        }
        Ok(())
    }
}

fn send_large_prompts(daemon: &Daemon) -> Result<(), Failure> {
    for _ in 0..3 {
        let body = format!("{{\"input\":\"{}\"}}", "lorem ".repeat(5_000_000));
        let mut answer = String::new();
        daemon.post("/v1/generate", &body)?.read_to_string(&mut answer)?;
        if !answer.starts_with("HTTP/1.1 200") {
            return Err(answer.into());
        }
    }
    Ok(())
}

fn run_starter(daemon: &Daemon) -> Result<(), Failure> {
    daemon.run_all(200, 8, &["run", "--new", "list the files"])
}

fn run_at_once(daemon: &Daemon) -> Result<(), Failure> {
    daemon.run_all(256, 256, &["run", "--new", "--agent", "t1d0", "say hello"])
}

fn fetch_pages(daemon: &Daemon) -> Result<(), Failure> {
    let prompt = format!("read the page {}/page", daemon.fixture.server.url());
    daemon.run_all(16, 4, &["run", "--new", "--allow", "web_fetch", &prompt])
}

/// Half of the clients use HTTP and half gRPC. All of them are there for ten seconds.
fn keep_silent(daemon: &Daemon) -> Result<(), Failure> {
    let body = r#"{"model":"endless","stream":true,"messages":[{"role":"user","content":"go"}]}"#;
    let connections: Vec<_> =
        (0..25).map(|_| daemon.post("/v1/chat/completions", body)).collect::<Result<_, _>>()?;
    let silent = |mut command: Command| command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut processes = Vec::new();
    for _ in 0..25 {
        processes.push(silent(daemon.fixture.home.kontekst(&["run", "--new", "--agent", "endless", "go"]))?);
    }
    thread::sleep(Duration::from_secs(10));
    for process in &mut processes {
        process.kill()?;
        process.wait()?;
    }
    drop(connections);
    Ok(())
}
