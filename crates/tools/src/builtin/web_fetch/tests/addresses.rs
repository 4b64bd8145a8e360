//! Tests that no address outside the public internet is connected to.

use super::*;

/// Resolves every name to these addresses, with the port of the URL.
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

#[test]
fn the_daemons_own_addresses_are_refused_even_if_they_are_allowed() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let own_listeners = OwnListeners::default();
    own_listeners.add(address);
    let config = WebToolsConfig {
        allow_private: vec!["127.0.0.1".to_owned(), "localhost".to_owned()],
        ..WebToolsConfig::default()
    };
    let tool = WebFetch::new(&config, own_listeners, None);
    for host in ["127.0.0.1", "127.1", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{}/", address.port());
        let why = get(&tool, &json!({ "url": url })).unwrap_err();
        assert!(
            why.contains("an address of this daemon") || why.contains("not on the public internet"),
            "{why}"
        );
    }
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "web_fetch connected to the daemon");
}

/// Spellings of addresses of this machine and of private networks.
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
    let canary = Server::with_response("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret");
    let next = Arc::new(Mutex::new(String::new()));
    let location = Arc::clone(&next);
    let front = Server::start(move |_, stream| {
        let location = location.lock().unwrap().clone();
        write!(stream, "HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n").ok();
    });
    let tool = fetcher(5, 1000, &[&front]);
    for host in PRIVATE {
        let place = format!("{host}:{}/", canary.port);
        for (scheme, method) in [("http", "GET"), ("http", "HEAD"), ("https", "GET"), ("HTTP", "GET")] {
            let direct = get(&tool, &json!({"url": format!("{scheme}://{place}"), "method": method}));
            assert!(direct.is_err(), "{method} {scheme}://{place}: {direct:?}");
        }
        for scheme in ["http:", "https:", ""] {
            *next.lock().unwrap() = format!("{scheme}//{place}");
            let redirected = get(&tool, &json!({"url": front.url("/")}));
            assert!(redirected.is_err(), "redirect to {scheme}//{place}: {redirected:?}");
        }
    }
    assert_eq!(canary.connects(), 0);
    assert_eq!(front.connects(), 3 * PRIVATE.len());
}

#[test]
fn no_name_that_resolves_to_a_private_address_is_connected_to() {
    let canary = Server::with_response("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret");
    let tool = fetcher(5, 1000, &[]);
    for ip in ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::127.0.0.1"] {
        for host in ["innocent.example", "localhost", "127.0.0.1.nip.io"] {
            let names = Names(vec![ip.parse().unwrap(); 3]);
            let url = format!("http://{host}:{}/", canary.port);
            let error = tool.run(names, &json!({"url": url}), None, &Cancel::new()).unwrap_err().message;
            assert!(error.contains("not on the public internet"), "{ip} {host}: {error}");
        }
    }
    assert_eq!(canary.connects(), 0);
}

#[test]
fn only_the_public_addresses_of_a_changing_name_are_used() {
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
