//! Against servers on this machine: what is fetched, and above all what is not.

use std::{
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use ureq::{
    config::Config,
    http::Uri,
    unversioned::{resolver::ResolvedSocketAddrs, transport::NextTimeout},
};

use super::*;
use crate::tools::workspace::tests::returns;

/// A server that gives each request head to `answer` and writes what comes back. Counts connections.
struct Server {
    port: u16,
    connects: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (connects, heads) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<Vec<String>>>::default());
        let stop = Arc::<AtomicBool>::default();
        let (count, log, stopped) = (Arc::clone(&connects), Arc::clone(&heads), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let mut stream = stream.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                log.lock().unwrap().push(head.clone());
                answer(&head, &mut stream);
            }
        });
        Self { port, connects, heads, stop, thread: Some(thread) }
    }

    /// Answers every request with the same bytes.
    fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |_, stream| {
            stream.write_all(&answer).ok();
        })
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn connects(&self) -> usize {
        self.connects.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        TcpStream::connect(("127.0.0.1", self.port)).ok();
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Answers every name with these addresses, at the port asked for.
#[derive(Debug)]
struct Names(Vec<IpAddr>);

impl Resolver for Names {
    fn resolve(&self, uri: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut found = self.empty();
        for &ip in &self.0 {
            found.push(SocketAddr::new(ip, uri.port_u16().unwrap_or(80)));
        }
        Ok(found)
    }
}

/// A tool that may talk to the servers of this test.
fn fetcher(seconds: u64, bytes: u64, servers: &[&Server]) -> WebFetch {
    let config = WebToolsConfig {
        timeout_seconds: seconds,
        max_response_bytes: bytes,
        allow_private: servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect(),
    };
    WebFetch::new(&config, OwnListeners::default())
}

fn get(tool: &WebFetch, args: &Value) -> Result<String, String> {
    tool.run(DefaultResolver::default(), args, &Cancel::new()).map_err(|failure| failure.message)
}

#[test]
fn a_door_of_our_own_is_shut_even_when_it_is_listed() {
    let door = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = door.local_addr().unwrap();
    let own_listeners = OwnListeners::default();
    own_listeners.add(address);
    let config = WebToolsConfig {
        allow_private: vec!["127.0.0.1".to_owned(), "localhost".to_owned()],
        ..WebToolsConfig::default()
    };
    let tool = WebFetch::new(&config, own_listeners);
    for host in ["127.0.0.1", "127.1", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{}/", address.port());
        let why = get(&tool, &json!({ "url": url })).unwrap_err();
        assert!(why.contains("a door of this daemon") || why.contains("not on the public internet"), "{why}");
    }
    door.set_nonblocking(true).unwrap();
    assert!(door.accept().is_err(), "somebody came in");
}

/// Spellings of this machine and of networks that are nobody's business.
const PRIVATE: &[&str] = &[
    "127.0.0.1",
    "127.0.0.2",
    "127.1",
    "127.0.1",
    "127.255.255.255",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0x7f.1",
    "0177.0.0.1",
    "0177.0.0.01",
    "017700000001",
    "0x7F.0x0.0x0.0x1",
    "127.0.0.1.",
    "127。0。0。1",
    "127．0．0．1",
    "１２７.0.0.1",
    "①②⑦.0.0.1",
    "127.0.0.1%2e",
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "ｌocalhost",
    "0",
    "0.0.0.0",
    "0x0",
    "00",
    "0.0.0.1",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000::0001]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "[2001:db8::1]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[fec0::1]",
    "[100::1]",
    "10.0.0.1",
    "10.1",
    "012.0.0.1",
    "167772161",
    "172.16.0.1",
    "172.31.255.254",
    "192.168.0.1",
    "192.168.1",
    "0xc0a80001",
    "3232235521",
    "169.254.169.254",
    "169.254.43518",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "100.64.0.1",
    "100.100.100.200",
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "192.88.99.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "4294967295",
    "0xffffffff",
];

#[test]
fn no_spelling_of_a_private_address_is_connected_to() {
    let canary = Server::saying("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret");
    let next = Arc::new(Mutex::new(String::new()));
    let location = Arc::clone(&next);
    let front = Server::start(move |_, stream| {
        let location = location.lock().unwrap().clone();
        write!(stream, "HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n").ok();
    });
    let tool = fetcher(5, 1000, &[&front]);
    for host in PRIVATE {
        let url = format!("http://{host}:{}/", canary.port);
        let literal = get(&tool, &json!({"url": url}));
        assert!(literal.is_err(), "{url}: {literal:?}");
        next.lock().unwrap().clone_from(&url);
        let redirected = get(&tool, &json!({"url": front.url("/")}));
        assert!(redirected.is_err(), "redirect to {url}: {redirected:?}");
    }
    assert_eq!(canary.connects(), 0);
    assert_eq!(front.connects(), PRIVATE.len());
}

#[test]
fn no_name_that_resolves_to_a_private_address_is_connected_to() {
    let canary = Server::saying("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret");
    let tool = fetcher(5, 1000, &[]);
    for ip in ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::127.0.0.1"] {
        for host in ["innocent.example", "localhost", "127.0.0.1.nip.io"] {
            let names = Names(vec![ip.parse().unwrap(); 3]);
            let url = format!("http://{host}:{}/", canary.port);
            let error = tool.run(names, &json!({"url": url}), &Cancel::new()).unwrap_err().message;
            assert!(error.contains("not on the public internet"), "{ip} {host}: {error}");
        }
    }
    assert_eq!(canary.connects(), 0);
}

#[test]
fn of_a_mixed_or_changing_answer_only_public_addresses_are_left() {
    #[derive(Debug)]
    struct Flips(AtomicUsize);
    impl Resolver for Flips {
        fn resolve(&self, uri: &Uri, c: &Config, t: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
            let public: IpAddr = "1.1.1.1".parse().unwrap();
            let private: IpAddr = "127.0.0.1".parse().unwrap();
            let ips = match self.0.fetch_add(1, Ordering::Relaxed) % 3 {
                0 => vec![public],
                1 => vec![private],
                _ => vec![private, public, private],
            };
            Names(ips).resolve(uri, c, t)
        }
    }
    let gate = Gate::new(Flips(AtomicUsize::new(0)), AllowedHosts::default(), OwnListeners::default());
    let (uri, config) = (Uri::from_static("http://flip.example:80/"), Config::default());
    let (mut open, mut refused) = (0, 0);
    for _ in 0..10_000 {
        match gate.resolve(&uri, &config, NextTimeout::default()) {
            Ok(found) => {
                assert!(found.iter().all(|address| address.ip().to_string() == "1.1.1.1"));
                open += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert_eq!((open, refused), (6667, 3333));
}

#[test]
fn a_page_comes_back_with_its_head() {
    let server = Server::saying(
        "HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\ncontent-length: 4\r\nx-secret: 1\r\n\r\nnone",
    );
    let tool = fetcher(5, 1000, &[&server]);
    let headers = json!({"Accept-Language": "de", "X-Evil": "1", "Host": "evil"});
    let text = get(&tool, &json!({"url": server.url("/a?b=c#d"), "headers": headers})).unwrap();
    assert_eq!(
        text,
        "Status: 404 Not Found\nContent-Type: text/plain\nContent-Length: 4\n\
         (not sent: Host, X-Evil; only Accept and Accept-Language are)\n\nnone"
    );
    let head = server.heads.lock().unwrap()[0].to_ascii_lowercase();
    assert!(head.starts_with("get /a?b=c http/1.1\r\n"), "{head}");
    for part in [&format!("host: 127.0.0.1:{}", server.port), "accept-language: de", "user-agent: kontekst/"]
    {
        assert!(head.contains(part), "{part} in {head}");
    }
    assert!(!head.contains("evil") && !head.contains("cookie") && !head.contains("referer"), "{head}");
}

#[test]
fn odd_characters_in_a_url_arrive_encoded() {
    let server = Server::saying("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let tool = fetcher(5, 1000, &[&server]);
    for path in [
        "/a|b^c`d{e}",
        "/é?ü=ö&x={\"y\"}",
        "/%zz?%",
        "/a b?c d",
        "/\\x",
        "/?<script>'",
        "/[x]?[y]",
        "/a\tb\n",
    ] {
        get(&tool, &json!({"url": server.url(path)})).unwrap_or_else(|why| panic!("{path}: {why}"));
    }
    for head in server.heads.lock().unwrap().iter() {
        assert!(head.is_ascii() && head.lines().next().unwrap().split(' ').count() == 3, "{head}");
    }
}

#[test]
fn head_has_no_body() {
    let server = Server::saying("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 99\r\n\r\n");
    let tool = fetcher(5, 1000, &[&server]);
    let text = get(&tool, &json!({"url": server.url("/"), "method": "head"})).unwrap();
    assert_eq!(text, "Status: 200 OK\nContent-Type: text/html\nContent-Length: 0\n\n");
    assert!(server.heads.lock().unwrap()[0].starts_with("HEAD / "));
}

#[test]
fn five_redirects_are_followed_and_a_sixth_is_not() {
    let server = Server::start(|head, stream| {
        let left: usize = head.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
        let answer = match left {
            0 => "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-type: text/plain\r\n\r\nhere".to_owned(),
            n => format!("HTTP/1.1 302 Found\r\nlocation: /{}\r\ncontent-length: 0\r\n\r\n", n - 1),
        };
        stream.write_all(answer.as_bytes()).ok();
    });
    let tool = fetcher(5, 1000, &[&server]);
    let text = get(&tool, &json!({"url": server.url("/5")})).unwrap();
    assert!(text.contains(&format!("URL: {}", server.url("/0"))) && text.ends_with("here"), "{text}");
    assert_eq!(server.connects(), 6);
    assert_eq!(get(&tool, &json!({"url": server.url("/6")})), Err("more than 5 redirects".into()));
    assert_eq!(server.connects(), 12);
}

#[test]
fn redirects_to_what_is_not_the_web_are_refused() {
    for location in [
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "ftp://example.com/",
        "javascript:alert(1)",
        "data:,x",
        "http://user:pass@example.com/",
        "http://",
        "//",
        "http://[::1",
        "unix:///run/x.sock",
    ] {
        let server = Server::saying(format!(
            "HTTP/1.1 301 Moved Permanently\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
        ));
        let result = get(&fetcher(5, 1000, &[&server]), &json!({"url": server.url("/")}));
        assert!(result.as_ref().is_err_and(|why| why.contains("redirect")), "{location}: {result:?}");
    }
}

#[test]
fn a_body_is_cut_at_the_limit_also_when_it_never_ends() {
    let endless = Server::start(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n").ok();
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
    });
    let text = get(&fetcher(5, 1000, &[&endless]), &json!({"url": endless.url("/")})).unwrap();
    assert!(text.contains("Content-Length: 1000\n(Response truncated due to size limit)\n\nxxx"), "{text}");
    let exact =
        Server::saying(format!("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{}", "x".repeat(1000)));
    let text = get(&fetcher(5, 1000, &[&exact]), &json!({"url": exact.url("/")})).unwrap();
    assert!(!text.contains("truncated"), "{text}");
}

/// 64 MiB of spaces in less than 100 kB.
fn bomb() -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let spaces = vec![b' '; 1 << 20];
    for _ in 0..64 {
        encoder.write_all(&spaces).unwrap();
    }
    encoder.finish().unwrap()
}

#[test]
fn a_gzip_bomb_is_cut_at_its_decoded_size() {
    let bomb = bomb();
    assert!(bomb.len() < 100_000);
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n",
        bomb.len()
    );
    let server = Server::saying([head.as_bytes(), &bomb].concat());
    let text = get(&fetcher(10, 100_000, &[&server]), &json!({"url": server.url("/")})).unwrap();
    assert!(text.contains("Content-Length: 100000\n(Response truncated"), "{}", &text[..200]);
    assert!(text.len() < 101_000, "{} bytes", text.len());
}

#[test]
fn a_head_without_end_is_refused() {
    let line = b"x-padding: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n";
    let (sender, sent) = mpsc::channel();
    let server = Server::start(move |_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n").ok();
        let mut bytes = 0;
        while stream.write_all(line).is_ok() {
            bytes += line.len();
        }
        sender.send(bytes).ok();
    });
    // An hour is no help: the size of the head has to end it.
    let result = get(&fetcher(3600, 1000, &[&server]), &json!({"url": server.url("/")}));
    assert!(result.is_err(), "{result:?}");
    // What the server could write until the fetch closed the connection; most of it lay in the kernel's buffers.
    let bytes = sent.recv_timeout(Duration::from_secs(60)).expect("the fetch closes the connection");
    assert!(bytes < 32 * 1024 * 1024, "{bytes}");
}

#[test]
fn a_slow_drip_ends_at_the_time_limit() {
    let (sender, sent) = mpsc::channel();
    let server = Server::start(move |_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 1000\r\n\r\n").ok();
        let mut bytes = 0;
        // A byte every 100 ms: no wait for the next byte is long, and all of them would take 100 s.
        while bytes < 1000 && stream.write_all(b"x").is_ok() {
            bytes += 1;
            std::thread::sleep(Duration::from_millis(100));
        }
        sender.send(bytes).ok();
    });
    let error = get(&fetcher(1, 1000, &[&server]), &json!({"url": server.url("/")})).unwrap_err();
    assert!(error.contains("within 1 s"), "{error}");
    let bytes = sent.recv_timeout(Duration::from_secs(60)).expect("the fetch closes the connection");
    assert!(bytes > 1, "the limit is for the whole page and not for the first byte");
}

#[test]
fn cancel_ends_a_fetch_at_once() {
    let cancel = Cancel::new();
    let stop = cancel.clone();
    // Cancels when the request has arrived, and answers nothing.
    let server = Server::start(move |_, stream| {
        stop.cancel();
        stream.read_to_end(&mut Vec::new()).ok();
    });
    // The server stays silent and the limit is an hour: nothing but the cancel can end this.
    let (tool, url, stopped) = (fetcher(3600, 1000, &[&server]), server.url("/"), cancel.clone());
    let result = returns(move || tool.run(DefaultResolver::default(), &json!({"url": url}), &stopped));
    assert_eq!(result, Err(Failure::cancelled()));
    let tool = fetcher(3600, 1000, &[&server]);
    let late = tool.run(DefaultResolver::default(), &json!({"url": server.url("/")}), &cancel);
    assert_eq!(late, Err(Failure::cancelled()));
}

#[test]
fn cancel_does_not_wait_for_a_name_lookup() {
    #[derive(Debug)]
    struct Stuck {
        asked: Mutex<mpsc::Sender<()>>,
        until: Mutex<mpsc::Receiver<()>>,
    }
    impl Resolver for Stuck {
        fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
            self.asked.lock().unwrap().send(()).ok();
            self.until.lock().unwrap().recv().ok();
            Err(ureq::Error::HostNotFound)
        }
    }
    let (asked, was_asked) = mpsc::channel();
    let (release, until) = mpsc::channel();
    let cancel = Cancel::new();
    let stop = cancel.clone();
    let canceller = std::thread::spawn(move || {
        was_asked.recv().unwrap();
        stop.cancel();
    });
    let names = Stuck { asked: Mutex::new(asked), until: Mutex::new(until) };
    // The lookup is stuck until `release` is dropped: nothing but the cancel can end this.
    let tool = fetcher(3600, 1000, &[]);
    let result = returns(move || tool.run(names, &json!({"url": "http://stuck.example/"}), &cancel));
    assert_eq!(result, Err(Failure::cancelled()));
    drop(release);
    canceller.join().unwrap();
}
