//! Downloads from servers that fail in many ways.

use std::{fs, path::PathBuf, time::Duration};

use kontekst_core::Cancel;
use kontekst_models::pull::{DownloadConfig, Outcome, PullError, PullEvent, RemoteFile, Timing, fetch};

use super::{
    fake_hub::{HubResponse, hub, ranged, sha256},
    gguf,
};
use crate::fake_llama::{FakeLlama, Request};

const NAME: &str = "m.gguf";
const LENGTH: usize = 600_000;

struct PullTest {
    dir: tempfile::TempDir,
    web: FakeLlama,
    net: DownloadConfig,
    file: RemoteFile,
    cancel: Cancel,
    steps: Vec<PullEvent>,
}

impl PullTest {
    /// `answer` gets the number of the request, counted from 0.
    fn new(mut answer: impl FnMut(usize, &Request) -> HubResponse + Send + 'static) -> Self {
        let mut number = 0;
        let web = hub(move |seen| {
            number += 1;
            answer(number - 1, seen)
        });
        let timing = Timing {
            connect: Duration::from_secs(10),
            stall: Duration::from_secs(20),
            pause: Duration::from_millis(1),
            tries: 3,
        };
        let net =
            DownloadConfig { hub: "http://hub.invalid".parse().unwrap(), token: None, proxy: None, timing };
        let url = format!("{}/{NAME}", web.url()).parse().unwrap();
        let file = RemoteFile { url, name: NAME.to_owned(), sha256: None };
        Self { dir: tempfile::tempdir().unwrap(), web, net, file, cancel: Cancel::new(), steps: Vec::new() }
    }

    fn fetch(&mut self) -> Result<Outcome, PullError> {
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

    /// Fetches the file and checks that it is complete and the only one in its directory.
    #[track_caller]
    fn assert_fetched(&mut self, content: &[u8]) {
        let fetched = self.fetch().unwrap();
        let Outcome::Downloaded { bytes, sha256: found, .. } = fetched else { panic!("{fetched:?}") };
        assert_eq!((bytes, found), (content.len() as u64, sha256(content)));
        assert!(fs::read(self.path(NAME)).unwrap() == content);
        assert_eq!(self.files(), [NAME]);
    }

    /// Returns the headers `Range` and `If-Range` of each request.
    fn ranges(&self) -> Vec<(Option<String>, Option<String>)> {
        let header = |seen: &Request, name| seen.header(name).map(str::to_owned);
        self.web.requests().iter().map(|seen| (header(seen, "range"), header(seen, "if-range"))).collect()
    }

    fn restart_reasons(&self) -> Vec<&'static str> {
        self.steps
            .iter()
            .filter_map(|step| if let PullEvent::Restarted { why } = step { Some(*why) } else { None })
            .collect()
    }
}

fn range_from(start: usize, etag: Option<&str>) -> (Option<String>, Option<String>) {
    (Some(format!("bytes={start}-")), etag.map(str::to_owned))
}

#[test]
fn a_file_is_fetched_in_one_request() {
    let content = gguf("llama", LENGTH);
    let whole = content.clone();
    let mut test = PullTest::new(move |_, seen| ranged(seen, &content, "\"a\""));
    test.assert_fetched(&whole);
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(fs::metadata(test.path(NAME)).unwrap().permissions().mode() & 0o133, 0, "0644 or less");
    assert_eq!(test.ranges(), [(None, None)]);
    let moved: Vec<_> = test.steps.iter().filter(|step| matches!(step, PullEvent::Received { .. })).collect();
    assert_eq!(moved.last(), Some(&&PullEvent::Received { have: LENGTH as u64 }));
    assert_eq!(test.steps.last(), Some(&PullEvent::Saving));
}

#[test]
fn an_interrupted_download_resumes() {
    let content = gguf("llama", LENGTH);
    let whole = content.clone();
    let mut test = PullTest::new(move |number, seen| {
        let answer = ranged(seen, &content, "\"a\"");
        if number < 4 { answer.cut(100_000) } else { answer }
    });
    test.assert_fetched(&whole);
    let expect: Vec<_> = (1..5).map(|cut| range_from(cut * 100_000, Some("\"a\""))).collect();
    assert_eq!(test.ranges()[1..], expect);
    assert_eq!(test.restart_reasons(), [""; 0]);
}

#[test]
fn another_process_can_resume() {
    let content = gguf("llama", LENGTH);
    let whole = content.clone();
    let mut test = PullTest::new(move |number, seen| match number {
        0 => ranged(seen, &content, "\"a\"").cut(100_000),
        1..4 => HubResponse::status(503),
        _ => ranged(seen, &content, "\"a\""),
    });
    let error = test.fetch().unwrap_err();
    assert!(matches!(error, PullError::Unreachable { have: 100_000, .. }), "{error}");
    assert_eq!(test.files(), ["m.gguf.part", "m.gguf.part.json"]);
    test.assert_fetched(&whole);
    assert_eq!(test.ranges().last(), Some(&range_from(100_000, Some("\"a\""))));
}

#[test]
fn a_changed_file_is_fetched_from_the_start() {
    let (old, new) = (gguf("llama", LENGTH), gguf("qwen3", LENGTH));
    // Servers that honour If-Range and servers that send a part anyway, each with the same and with a new length.
    for (faulty, same_length) in [(false, true), (false, false), (true, true), (true, false)] {
        let old = old.clone();
        let new = if same_length { new.clone() } else { gguf("qwen3", LENGTH + 5) };
        let whole = new.clone();
        let mut test = PullTest::new(move |number, seen| match (number, faulty) {
            (0, _) => ranged(seen, &old, "\"a\"").cut(100_000),
            (1, true) => {
                let length = new.len();
                HubResponse::bytes(&new[100_000..])
                    .header("etag", "\"b\"")
                    .header("content-range", &format!("bytes 100000-{}/{length}", length - 1))
                    .with_status(206)
            }
            _ => ranged(seen, &new, "\"b\""),
        });
        test.assert_fetched(&whole);
        assert_eq!(test.restart_reasons().len(), 1, "{:?}", test.steps);
    }
}

type Fault = Box<dyn Fn(&[u8]) -> HubResponse + Send>;

#[test]
fn servers_without_ranges_and_with_wrong_ones() {
    let content = gguf("llama", LENGTH);
    let length = content.len();
    let part = move |content: &[u8], range: &str| {
        HubResponse::bytes(content).header("etag", "\"a\"").header("content-range", range).with_status(206)
    };
    let faults: [Fault; 5] = [
        Box::new(|content| HubResponse::bytes(content).header("etag", "\"a\"")),
        Box::new(move |content| part(&content[5..], &format!("bytes 5-{}/{length}", length - 1))),
        Box::new(move |content| part(&content[100_000..], "bytes 100000-/x")),
        Box::new(move |content| part(&content[100_000..], "nonsense")),
        Box::new(|_| HubResponse::status(416).header("content-range", "bytes */7")),
    ];
    for fault in faults {
        let content = content.clone();
        let whole = content.clone();
        let mut test = PullTest::new(move |number, seen| match number {
            0 => ranged(seen, &content, "\"a\"").cut(100_000),
            1 => fault(&content),
            _ => ranged(seen, &content, "\"a\""),
        });
        test.assert_fetched(&whole);
        assert_eq!(test.restart_reasons().len(), 1, "{:?}", test.steps);
    }
}

#[test]
fn a_server_that_never_finishes_is_given_up() {
    let content = gguf("llama", LENGTH);
    // Without ranges every attempt starts from the beginning.
    let mut test = PullTest::new(move |_, _| HubResponse::bytes(&content).cut(100_000));
    let error = test.fetch().unwrap_err();
    assert!(matches!(error, PullError::Unreachable { .. }), "{error}");
    assert!(test.ranges().len() <= 5, "{:?}", test.ranges());
}

#[test]
fn a_complete_part_file_is_only_renamed() {
    let content = gguf("llama", LENGTH);
    let whole = content.clone();
    let mut test = PullTest::new(move |_, seen| ranged(seen, &content, "\"a\""));
    fs::create_dir(test.path("")).unwrap();
    fs::write(test.path("m.gguf.part"), &whole).unwrap();
    let stamp = format!("{{\"url\":\"{}\",\"etag\":\"\\\"a\\\"\",\"total\":{LENGTH}}}", test.file.url);
    fs::write(test.path("m.gguf.part.json"), stamp).unwrap();
    test.assert_fetched(&whole);
    assert_eq!(test.ranges(), [range_from(LENGTH, Some("\"a\""))]);
}

#[test]
fn a_part_file_without_a_record_is_discarded() {
    let content = gguf("llama", LENGTH);
    for stamp in [None, Some("{"), Some("{\"url\":\"http://else.example/m.gguf\",\"etag\":\"\\\"a\\\"\"}")] {
        let (content, whole) = (content.clone(), content.clone());
        let mut test = PullTest::new(move |_, seen| ranged(seen, &content, "\"a\""));
        fs::create_dir(test.path("")).unwrap();
        fs::write(test.path("m.gguf.part"), "of something else").unwrap();
        if let Some(stamp) = stamp {
            fs::write(test.path("m.gguf.part.json"), stamp).unwrap();
        }
        test.assert_fetched(&whole);
        assert_eq!(test.ranges(), [(None, None)]);
    }
}

#[test]
fn a_wrong_checksum_discards_the_file() {
    let content = gguf("llama", LENGTH);
    let whole = content.clone();
    let mut test = PullTest::new(move |number, seen| {
        let answer = ranged(seen, &content, "W/\"weak\"");
        if number == 0 { answer.cut(100_000) } else { answer }
    });
    test.file.sha256 = Some(sha256(&whole));
    test.assert_fetched(&whole);
    // With a known checksum the download resumes without a validator.
    assert_eq!(test.ranges()[1], range_from(100_000, None));
    assert_eq!(test.fetch().unwrap(), Outcome::AlreadyPresent);

    fs::remove_file(test.path(NAME)).unwrap();
    test.file.sha256 = Some("0".repeat(64));
    let error = test.fetch().unwrap_err();
    assert!(matches!(&error, PullError::Checksum { found, .. } if *found == sha256(&whole)), "{error}");
    assert_eq!(test.files(), [""; 0]);
}

#[test]
fn the_hubs_checksum_is_verified_and_must_agree() {
    let content = gguf("llama", LENGTH);
    let sum = sha256(&content);
    let etag = sum.clone();
    let mut test = PullTest::new(move |_, seen| ranged(seen, &content, &format!("\"{etag}\"")));
    test.net.hub = test.web.url().parse().unwrap();
    assert_eq!(
        test.fetch().unwrap(),
        Outcome::Downloaded { bytes: LENGTH as u64, sha256: sum, verified: true }
    );
    fs::remove_file(test.path(NAME)).unwrap();
    test.file.sha256 = Some("1".repeat(64));
    assert!(matches!(test.fetch(), Err(PullError::Checksum { .. })));
    assert_eq!(test.files(), [""; 0]);
}

#[test]
fn files_that_are_not_models_are_discarded() {
    for (answer, part) in [
        (HubResponse::bytes(b"<html>please log in</html>"), "not a GGUF file"),
        (HubResponse::bytes(b""), "the file is empty"),
        (HubResponse::bytes(b"GGUF\x03\0\0\0"), "cannot be used"),
        (HubResponse::bytes(b"GG"), "cannot be used"),
        (HubResponse::bytes(b"x").header("content-encoding", "zstd"), "compressed"),
        (HubResponse::redirect("/m.gguf"), "more than 8 redirects"),
        (HubResponse::redirect("file:///etc/passwd"), "leaves https"),
        (HubResponse::status(302), "leads nowhere"),
        (HubResponse::bytes(b"GGUF").header("content-length", &u64::MAX.to_string()), "needs"),
        (HubResponse::status(404), "answered 404"),
        (HubResponse::status(403), "answered 403"),
        (HubResponse::status(206), "answered 206"),
    ] {
        let mut test = PullTest::new(move |_, _| answer.clone());
        let error = test.fetch().unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
        assert_eq!(test.files(), [""; 0], "{part}");
    }
}

#[test]
fn a_silent_server_is_abandoned_and_retried() {
    let content = gguf("llama", LENGTH);
    let whole = content.clone();
    let mut test = PullTest::new(move |number, seen| {
        let answer = ranged(seen, &content, "\"a\"");
        if number == 0 { answer.cut(100_000).hang() } else { answer }
    });
    test.net.timing.stall = Duration::from_millis(200);
    test.assert_fetched(&whole);
    let silent = |step: &PullEvent| matches!(step, PullEvent::Retrying { why, .. } if why.contains("silent"));
    assert!(test.steps.iter().any(silent), "{:?}", test.steps);
}

#[test]
fn a_cancel_stops_the_download_and_keeps_the_part() {
    let content = gguf("llama", LENGTH);
    let whole = content.clone();
    let mut test = PullTest::new(move |number, seen| {
        let answer = ranged(seen, &content, "\"a\"");
        if number == 0 { answer.cut(100_000).hang() } else { answer }
    });
    let (cancel, dir) = (test.cancel.clone(), test.path(""));
    let result = fetch(&test.file, &dir, &test.net, &test.cancel, &mut |step| {
        if step == (PullEvent::Received { have: 100_000 }) {
            cancel.cancel();
        }
    });
    assert!(matches!(result, Err(PullError::Cancelled { have: 100_000, .. })), "{result:?}");
    test.cancel = Cancel::new();
    test.assert_fetched(&whole);
}

#[test]
fn existing_files_and_links_are_never_overwritten() {
    let content = gguf("llama", LENGTH);
    let mut test = PullTest::new(move |_, seen| ranged(seen, &content, "\"a\""));
    fs::create_dir(test.path("")).unwrap();
    fs::write(test.path(NAME), "mine").unwrap();
    assert!(matches!(test.fetch(), Err(PullError::Exists(_))));
    fs::remove_file(test.path(NAME)).unwrap();
    // A dangling symlink counts as an existing file.
    let outside = test.dir.path().join("outside");
    std::os::unix::fs::symlink(&outside, test.path(NAME)).unwrap();
    assert!(matches!(test.fetch(), Err(PullError::Exists(_))));
    fs::remove_file(test.path(NAME)).unwrap();
    std::os::unix::fs::symlink(&outside, test.path("m.gguf.part")).unwrap();
    assert!(matches!(test.fetch(), Err(PullError::Path(_))));
    fs::remove_file(test.path("m.gguf.part")).unwrap();
    assert!(!outside.exists());

    let held = fs::File::create(test.path("m.gguf.part")).unwrap();
    held.try_lock().unwrap();
    assert!(matches!(test.fetch(), Err(PullError::Busy(_))));
}
