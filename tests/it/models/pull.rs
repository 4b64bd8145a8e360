//! Fetching from servers that fail in every way there is.

use std::{fs, path::PathBuf, time::Duration};

use kontekst::{
    core::Cancel,
    models::pull::{Fetched, File, Net, PullError, Step, Timing, fetch},
};

use super::{
    gguf,
    web::{Answer, Seen, Web, ranged, sha256},
};

const NAME: &str = "m.gguf";
const LENGTH: usize = 600_000;

struct Bench {
    dir: tempfile::TempDir,
    web: Web,
    net: Net,
    file: File,
    cancel: Cancel,
    steps: Vec<Step>,
}

impl Bench {
    /// `answer` is asked with the number of the request, from 0.
    fn new(mut answer: impl FnMut(usize, &Seen) -> Answer + Send + 'static) -> Self {
        let mut number = 0;
        let web = Web::start(move |seen| {
            number += 1;
            answer(number - 1, seen)
        });
        let timing = Timing {
            connect: Duration::from_secs(10),
            stall: Duration::from_secs(20),
            pause: Duration::from_millis(1),
            tries: 3,
        };
        let net = Net { hub: "http://hub.invalid".parse().unwrap(), token: None, proxy: None, timing };
        let url = format!("{}/{NAME}", web.url()).parse().unwrap();
        let file = File { url, name: NAME.to_owned(), sha256: None };
        Self { dir: tempfile::tempdir().unwrap(), web, net, file, cancel: Cancel::new(), steps: Vec::new() }
    }

    fn fetch(&mut self) -> Result<Fetched, PullError> {
        let steps = &mut self.steps;
        fetch(&self.file, &self.dir.path().join("models"), &self.net, &self.cancel, &mut |step| {
            steps.push(step);
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("models").join(name)
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path().join("models")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The file is there and whole, and nothing else is.
    #[track_caller]
    fn got(&mut self, content: &[u8]) {
        let fetched = self.fetch().unwrap();
        let Fetched::New { bytes, sha256: found, .. } = fetched else { panic!("{fetched:?}") };
        assert_eq!((bytes, found), (content.len() as u64, sha256(content)));
        assert!(fs::read(self.path(NAME)).unwrap() == content);
        assert_eq!(self.files(), [NAME]);
    }

    /// `Range` and `If-Range` of each request.
    fn ranges(&self) -> Vec<(Option<String>, Option<String>)> {
        let header = |seen: &Seen, name| seen.header(name).map(str::to_owned);
        self.web.seen().iter().map(|seen| (header(seen, "range"), header(seen, "if-range"))).collect()
    }

    fn again(&self) -> Vec<&'static str> {
        self.steps
            .iter()
            .filter_map(|step| if let Step::Again { why } = step { Some(*why) } else { None })
            .collect()
    }
}

fn from(start: usize, etag: Option<&str>) -> (Option<String>, Option<String>) {
    (Some(format!("bytes={start}-")), etag.map(str::to_owned))
}

#[test]
fn a_file_that_comes_at_once() {
    let content = gguf("llama", LENGTH);
    let whole = content.clone();
    let mut bench = Bench::new(move |_, seen| ranged(seen, &content, "\"a\""));
    bench.got(&whole);
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(fs::metadata(bench.path(NAME)).unwrap().permissions().mode() & 0o133, 0, "0644 or less");
    assert_eq!(bench.ranges(), [(None, None)]);
    let moved: Vec<_> = bench.steps.iter().filter(|step| matches!(step, Step::Moved { .. })).collect();
    assert_eq!(moved.last(), Some(&&Step::Moved { have: LENGTH as u64 }));
    assert_eq!(bench.steps.last(), Some(&Step::Saving));
}

#[test]
fn what_is_cut_goes_on_where_it_was() {
    let content = gguf("llama", LENGTH);
    let whole = content.clone();
    let mut bench = Bench::new(move |number, seen| {
        let answer = ranged(seen, &content, "\"a\"");
        if number < 4 { answer.cut(100_000) } else { answer }
    });
    bench.got(&whole);
    let expect: Vec<_> = (1..5).map(|cut| from(cut * 100_000, Some("\"a\""))).collect();
    assert_eq!(bench.ranges()[1..], expect);
    assert_eq!(bench.again(), [""; 0]);
}

#[test]
fn another_process_goes_on_too() {
    let content = gguf("llama", LENGTH);
    let whole = content.clone();
    let mut bench = Bench::new(move |number, seen| match number {
        0 => ranged(seen, &content, "\"a\"").cut(100_000),
        1..4 => Answer::status(503),
        _ => ranged(seen, &content, "\"a\""),
    });
    let error = bench.fetch().unwrap_err();
    assert!(matches!(error, PullError::Unreachable { have: 100_000, .. }), "{error}");
    assert_eq!(bench.files(), ["m.gguf.part", "m.gguf.part.json"]);
    bench.got(&whole);
    assert_eq!(bench.ranges().last(), Some(&from(100_000, Some("\"a\""))));
}

#[test]
fn a_file_that_changed_is_fetched_from_its_start() {
    let (old, new) = (gguf("llama", LENGTH), gguf("qwen3", LENGTH));
    // A server that honours If-Range, one that has a new length, and one that sends a part all the same.
    for (faulty, same_length) in [(false, true), (false, false), (true, true), (true, false)] {
        let old = old.clone();
        let new = if same_length { new.clone() } else { gguf("qwen3", LENGTH + 5) };
        let whole = new.clone();
        let mut bench = Bench::new(move |number, seen| match (number, faulty) {
            (0, _) => ranged(seen, &old, "\"a\"").cut(100_000),
            (1, true) => {
                let length = new.len();
                Answer::bytes(&new[100_000..])
                    .header("etag", "\"b\"")
                    .header("content-range", &format!("bytes 100000-{}/{length}", length - 1))
                    .with_status(206)
            }
            _ => ranged(seen, &new, "\"b\""),
        });
        bench.got(&whole);
        assert_eq!(bench.again().len(), 1, "{:?}", bench.steps);
    }
}

type Fault = Box<dyn Fn(&[u8]) -> Answer + Send>;

#[test]
fn servers_without_ranges_and_with_wrong_ones() {
    let content = gguf("llama", LENGTH);
    let length = content.len();
    let part = move |content: &[u8], range: &str| {
        Answer::bytes(content).header("etag", "\"a\"").header("content-range", range).with_status(206)
    };
    let faults: [Fault; 5] = [
        Box::new(|content| Answer::bytes(content).header("etag", "\"a\"")),
        Box::new(move |content| part(&content[5..], &format!("bytes 5-{}/{length}", length - 1))),
        Box::new(move |content| part(&content[100_000..], "bytes 100000-/x")),
        Box::new(move |content| part(&content[100_000..], "nonsense")),
        Box::new(|_| Answer::status(416).header("content-range", "bytes */7")),
    ];
    for fault in faults {
        let content = content.clone();
        let whole = content.clone();
        let mut bench = Bench::new(move |number, seen| match number {
            0 => ranged(seen, &content, "\"a\"").cut(100_000),
            1 => fault(&content),
            _ => ranged(seen, &content, "\"a\""),
        });
        bench.got(&whole);
        assert_eq!(bench.again().len(), 1, "{:?}", bench.steps);
    }
}

#[test]
fn a_server_that_never_finishes_is_given_up() {
    let content = gguf("llama", LENGTH);
    // Without ranges it would start over for ever.
    let mut bench = Bench::new(move |_, _| Answer::bytes(&content).cut(100_000));
    let error = bench.fetch().unwrap_err();
    assert!(matches!(error, PullError::Unreachable { .. }), "{error}");
    assert!(bench.ranges().len() <= 5, "{:?}", bench.ranges());
}

#[test]
fn a_part_that_was_whole_needs_nothing_but_its_name() {
    let content = gguf("llama", LENGTH);
    let whole = content.clone();
    let mut bench = Bench::new(move |_, seen| ranged(seen, &content, "\"a\""));
    fs::create_dir(bench.path("")).unwrap();
    fs::write(bench.path("m.gguf.part"), &whole).unwrap();
    let stamp = format!("{{\"url\":\"{}\",\"etag\":\"\\\"a\\\"\",\"total\":{LENGTH}}}", bench.file.url);
    fs::write(bench.path("m.gguf.part.json"), stamp).unwrap();
    bench.got(&whole);
    assert_eq!(bench.ranges(), [from(LENGTH, Some("\"a\""))]);
}

#[test]
fn bytes_that_nobody_knows_are_not_used() {
    let content = gguf("llama", LENGTH);
    for stamp in [None, Some("{"), Some("{\"url\":\"http://else.example/m.gguf\",\"etag\":\"\\\"a\\\"\"}")] {
        let (content, whole) = (content.clone(), content.clone());
        let mut bench = Bench::new(move |_, seen| ranged(seen, &content, "\"a\""));
        fs::create_dir(bench.path("")).unwrap();
        fs::write(bench.path("m.gguf.part"), "of something else").unwrap();
        if let Some(stamp) = stamp {
            fs::write(bench.path("m.gguf.part.json"), stamp).unwrap();
        }
        bench.got(&whole);
        assert_eq!(bench.ranges(), [(None, None)]);
    }
}

#[test]
fn a_checksum_is_the_last_word() {
    let content = gguf("llama", LENGTH);
    let whole = content.clone();
    let mut bench = Bench::new(move |number, seen| {
        let answer = ranged(seen, &content, "W/\"weak\"");
        if number == 0 { answer.cut(100_000) } else { answer }
    });
    bench.file.sha256 = Some(sha256(&whole));
    bench.got(&whole);
    // With a checksum, going on needs no validator.
    assert_eq!(bench.ranges()[1], from(100_000, None));
    assert_eq!(bench.fetch().unwrap(), Fetched::Already);

    fs::remove_file(bench.path(NAME)).unwrap();
    bench.file.sha256 = Some("0".repeat(64));
    let error = bench.fetch().unwrap_err();
    assert!(matches!(&error, PullError::Checksum { found, .. } if *found == sha256(&whole)), "{error}");
    assert_eq!(bench.files(), [""; 0]);
}

#[test]
fn the_hubs_checksum_is_heard_and_cannot_be_contradicted() {
    let content = gguf("llama", LENGTH);
    let sum = sha256(&content);
    let told = sum.clone();
    let mut bench = Bench::new(move |_, seen| ranged(seen, &content, &format!("\"{told}\"")));
    bench.net.hub = bench.web.url().parse().unwrap();
    assert_eq!(bench.fetch().unwrap(), Fetched::New { bytes: LENGTH as u64, sha256: sum, verified: true });
    fs::remove_file(bench.path(NAME)).unwrap();
    bench.file.sha256 = Some("1".repeat(64));
    assert!(matches!(bench.fetch(), Err(PullError::Checksum { .. })));
    assert_eq!(bench.files(), [""; 0]);
}

#[test]
fn what_is_no_model_is_not_kept() {
    for (answer, part) in [
        (Answer::bytes(b"<html>please log in</html>"), "not a GGUF file"),
        (Answer::bytes(b""), "the file is empty"),
        (Answer::bytes(b"GGUF\x03\0\0\0"), "cannot be used"),
        (Answer::bytes(b"GG"), "cannot be used"),
        (Answer::bytes(b"x").header("content-encoding", "zstd"), "compressed"),
        (Answer::redirect("/m.gguf"), "more than 8 redirects"),
        (Answer::redirect("file:///etc/passwd"), "leaves https"),
        (Answer::status(302), "leads nowhere"),
        (Answer::bytes(b"GGUF").header("content-length", &u64::MAX.to_string()), "needs"),
        (Answer::status(404), "answered 404"),
        (Answer::status(403), "answered 403"),
        (Answer::status(206), "answered 206"),
    ] {
        let mut bench = Bench::new(move |_, _| answer.clone());
        let error = bench.fetch().unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
        assert_eq!(bench.files(), [""; 0], "{part}");
    }
}

#[test]
fn a_silent_server_is_left() {
    let content = gguf("llama", LENGTH);
    let whole = content.clone();
    let mut bench = Bench::new(move |number, seen| {
        let answer = ranged(seen, &content, "\"a\"");
        if number == 0 { answer.cut(100_000).hang() } else { answer }
    });
    bench.net.timing.stall = Duration::from_millis(200);
    bench.got(&whole);
    let silent = |step: &Step| matches!(step, Step::Broken { why, .. } if why.contains("silent"));
    assert!(bench.steps.iter().any(silent), "{:?}", bench.steps);
}

#[test]
fn a_cancel_stops_it_at_once_and_keeps_what_came() {
    let content = gguf("llama", LENGTH);
    let whole = content.clone();
    let mut bench = Bench::new(move |number, seen| {
        let answer = ranged(seen, &content, "\"a\"");
        if number == 0 { answer.cut(100_000).hang() } else { answer }
    });
    let (cancel, dir) = (bench.cancel.clone(), bench.path(""));
    let result = fetch(&bench.file, &dir, &bench.net, &bench.cancel, &mut |step| {
        if step == (Step::Moved { have: 100_000 }) {
            cancel.cancel();
        }
    });
    assert!(matches!(result, Err(PullError::Cancelled { have: 100_000, .. })), "{result:?}");
    bench.cancel = Cancel::new();
    bench.got(&whole);
}

#[test]
fn nothing_is_overwritten_and_nothing_is_followed() {
    let content = gguf("llama", LENGTH);
    let mut bench = Bench::new(move |_, seen| ranged(seen, &content, "\"a\""));
    fs::create_dir(bench.path("")).unwrap();
    fs::write(bench.path(NAME), "mine").unwrap();
    assert!(matches!(bench.fetch(), Err(PullError::Exists(_))));
    fs::remove_file(bench.path(NAME)).unwrap();
    // A dangling link is something, too.
    let outside = bench.dir.path().join("outside");
    std::os::unix::fs::symlink(&outside, bench.path(NAME)).unwrap();
    assert!(matches!(bench.fetch(), Err(PullError::Exists(_))));
    fs::remove_file(bench.path(NAME)).unwrap();
    std::os::unix::fs::symlink(&outside, bench.path("m.gguf.part")).unwrap();
    assert!(matches!(bench.fetch(), Err(PullError::Path(_))));
    fs::remove_file(bench.path("m.gguf.part")).unwrap();
    assert!(!outside.exists());

    let held = fs::File::create(bench.path("m.gguf.part")).unwrap();
    held.try_lock().unwrap();
    assert!(matches!(bench.fetch(), Err(PullError::Busy(_))));
}
