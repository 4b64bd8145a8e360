//! Tests of schedules, with time zones that change their clocks, and of the files.

use jiff::{Timestamp, tz::TimeZone};

use kontekst_store::config::Home;

use super::*;

/// The clock of central Europe: one hour ahead of UTC, two from the last Sunday of March to that of October.
fn berlin() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

/// Returns the next three runs after `after`, as that clock shows them.
fn next(schedule: &str, after: &str) -> String {
    let schedule: Schedule = schedule.parse().unwrap();
    let mut at: Timestamp = after.parse().unwrap();
    let mut shown = Vec::new();
    for _ in 0..3 {
        at = schedule.next_after(at, &berlin()).unwrap();
        shown.push(at.to_zoned(berlin()).strftime("%d %H:%M%:z").to_string());
    }
    shown.join(", ")
}

#[test]
fn each_way_to_write_a_schedule_gives_its_times() {
    // 2026-11-23 is a Monday.
    for (schedule, expect) in [
        ("30m", "23 12:30+01:00, 23 13:00+01:00, 23 13:30+01:00"),
        ("1d", "24 12:00+01:00, 25 12:00+01:00, 26 12:00+01:00"),
        ("07:30", "24 07:30+01:00, 25 07:30+01:00, 26 07:30+01:00"),
        ("1d at 12:00", "24 12:00+01:00, 25 12:00+01:00, 26 12:00+01:00"),
        ("Mon..Fri 12:05", "23 12:05+01:00, 24 12:05+01:00, 25 12:05+01:00"),
        ("fri..sun at 9:00", "27 09:00+01:00, 28 09:00+01:00, 29 09:00+01:00"),
        ("sat..mon 09:00", "28 09:00+01:00, 29 09:00+01:00, 30 09:00+01:00"),
        ("fri..tue,thu 09:00", "24 09:00+01:00, 26 09:00+01:00, 27 09:00+01:00"),
        ("sun..sun 09:00", "29 09:00+01:00, 06 09:00+01:00, 13 09:00+01:00"),
        ("0 9 * * sat-mon/2", "28 09:00+01:00, 30 09:00+01:00, 05 09:00+01:00"),
        ("0 9 * * 7-2", "24 09:00+01:00, 29 09:00+01:00, 30 09:00+01:00"),
        ("sat,sun 09:00", "28 09:00+01:00, 29 09:00+01:00, 05 09:00+01:00"),
        ("*/20 * * * *", "23 12:20+01:00, 23 12:40+01:00, 23 13:00+01:00"),
        ("0 8-10/2 * * 1-5", "24 08:00+01:00, 24 10:00+01:00, 25 08:00+01:00"),
        ("15 6 1,15 * *", "01 06:15+01:00, 15 06:15+01:00, 01 06:15+01:00"),
        ("0 0 13 * fri", "27 00:00+01:00, 04 00:00+01:00, 11 00:00+01:00"),
        ("0 0 29 feb *", "29 00:00+01:00, 29 00:00+01:00, 29 00:00+01:00"),
        ("5 4 * * 7", "29 04:05+01:00, 06 04:05+01:00, 13 04:05+01:00"),
    ] {
        assert_eq!(next(schedule, "2026-11-23T11:00:00Z"), expect, "{schedule}");
    }
}

#[test]
fn a_time_that_does_not_exist_or_comes_twice_counts_once() {
    // On 2026-03-29, 02:00 is followed by 03:00. On 2026-10-25, 03:00 is followed by 02:00.
    let (spring, autumn) = ("2026-03-27T12:00:00Z", "2026-10-23T12:00:00Z");
    assert_eq!(next("02:30", spring), "28 02:30+01:00, 29 03:30+02:00, 30 02:30+02:00");
    assert_eq!(next("02:30", autumn), "24 02:30+02:00, 25 02:30+02:00, 26 02:30+01:00");
    assert_eq!(
        next("*/30 2-3 * * *", "2026-03-29T00:30:00Z"),
        "29 03:00+02:00, 29 03:30+02:00, 30 02:00+02:00"
    );
    // A time span goes by the time that passes, and not by the clock on the wall.
    assert_eq!(next("12h", "2026-10-24T20:00:00Z"), "25 09:00+01:00, 25 21:00+01:00, 26 09:00+01:00");
}

#[test]
fn what_is_no_schedule_is_refused() {
    #[rustfmt::skip]
    let texts = [
        "", "m", "0m", "1y", "99999999999999999999m", "7:3", "25:00", "07:60", "mon..fri",
        "mon..wed..fri 09:00", "7:30 pm", "foo 07:30", "* * * *", "60 * * * *", "* * 0 * *",
        "5-2 * * * *", "*/0 * * * *", "0 0 30 2 *", "* * * * * *", "-1m", "ñ", "53w",
    ];
    for text in texts {
        assert!(text.parse::<Schedule>().is_err(), "{text}");
    }
    let refusal = |text: &str| text.parse::<Schedule>().unwrap_err().to_string();
    assert!(refusal("mon..wed..fri 09:00").starts_with("`mon..wed..fri` are not days"));
    assert!(refusal("7:30 pm").starts_with("`7:30 pm` is not a time of day"));
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn job(schedule: &str, created: &str) -> Job {
    Job {
        schedule: schedule.parse().unwrap(),
        prompt: "what is new?".to_owned(),
        working_dir: "/tmp".into(),
        dir: None,
        created: at(created),
        time_zone: Some(berlin()),
        agent: None,
        model: None,
        system: Some("be brief".to_owned()),
        session: None,
        allow: vec!["read_file".to_owned()],
        checks: vec!["make test".to_owned()],
        network: true,
        paused: false,
    }
}

#[test]
fn the_next_time_of_all_jobs_follows_the_clock_on_the_wall() {
    let dir = tempfile::tempdir().unwrap();
    let jobs = Jobs::new(&Home::find(Some(dir.path().join("data"))).unwrap());
    assert_eq!((jobs.next(), jobs.any_waits()), (None, false));
    // The clocks go back at 01:00 UTC on the 25th.
    let created = "2026-10-24T10:00:00Z";
    let utc = Job { time_zone: Some(TimeZone::UTC), ..job("07:30", created) };
    jobs.add(&"utc".parse().unwrap(), &utc).unwrap();
    assert_eq!(jobs.next(), Some(at("2026-10-25T07:30:00Z")));
    jobs.add(&"morning".parse().unwrap(), &job("07:30", created)).unwrap();
    assert_eq!(jobs.next(), Some(at("2026-10-25T06:30:00Z")), "each job has its own time zone");
    jobs.add(&"night".parse().unwrap(), &job("02:30", created)).unwrap();
    assert_eq!(jobs.next(), Some(at("2026-10-25T00:30:00Z")));
    jobs.add(&"early".parse().unwrap(), &Job { paused: true, ..job("1h", created) }).unwrap();
    assert_eq!(jobs.next(), Some(at("2026-10-25T00:30:00Z")));
}

#[test]
fn the_file_of_a_job_has_its_time_zone() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::find(Some(dir.path().join("data"))).unwrap();
    let (jobs, id) = (Jobs::new(&home), "news".parse().unwrap());
    let stored = job("07:30", "2026-11-20T12:00:00Z");
    jobs.add(&id, &stored).unwrap();
    assert_eq!(jobs.job(&id).unwrap(), stored);
    let path = home.jobs().join("news.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let line = "time_zone = \"CET-1CEST,M3.5.0,M10.5.0/3\"\n";
    assert!(text.contains(line), "{text}");
    std::fs::write(&path, text.replace(line, "time_zone = \"Mars/Olympus\"\n")).unwrap();
    assert!(matches!(jobs.job(&id), Err(JobError::Invalid { .. })));
    std::fs::write(&path, text.replace(line, "")).unwrap();
    assert_eq!(jobs.job(&id).unwrap().zone(), TimeZone::system());
}

#[test]
fn what_was_missed_is_due_once() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::find(Some(dir.path().join("data"))).unwrap();
    let jobs = Jobs::new(&home);
    let job = Job { time_zone: Some(TimeZone::UTC), ..job("07:30", "2026-11-20T12:00:00Z") };
    let id = "news".parse().unwrap();
    jobs.add(&id, &job).unwrap();
    assert!(matches!(jobs.add(&id, &job), Err(JobError::Exists(_))));
    assert_eq!(jobs.job(&id).unwrap(), job);
    assert_eq!(jobs.due(at("2026-11-21T07:29:59Z")), []);
    assert_eq!(jobs.due(at("2026-11-21T07:30:00Z")), std::slice::from_ref(&id));
    // Nothing ran for four days. One run makes up for all of them.
    let now = at("2026-11-24T09:00:00Z");
    assert_eq!(jobs.due(now), std::slice::from_ref(&id));
    let running = jobs.begin(&id).unwrap();
    assert!(matches!(jobs.begin(&id), Err(JobError::Running(_))));
    assert!(matches!(jobs.remove(&id), Err(JobError::Running(_))));
    let mut state = jobs.state(&id);
    state.handled = Some(now);
    jobs.save(&id, &state, &running).unwrap();
    drop(running);
    assert_eq!(jobs.due(now), []);
    assert_eq!(jobs.next_run(&id, &job), Some(at("2026-11-25T07:30:00Z")));
    jobs.replace(&id, &Job { paused: true, ..job }).unwrap();
    assert_eq!((jobs.due(at("2027-01-01T00:00:00Z")), jobs.active()), (Vec::new(), Vec::new()));
    jobs.remove(&id).unwrap();
    assert_eq!(jobs.ids().unwrap(), []);
}

#[test]
fn the_results_are_bounded() {
    let mut state = JobState::default();
    for second in 0..30 {
        let time = Timestamp::from_second(second).unwrap();
        let (answer, messages, session) = Default::default();
        state.add(RunResult { started: time, finished: time, exit_code: Some(0), answer, messages, session });
    }
    assert_eq!(state.results.len(), 20);
    assert_eq!(state.results[0].started.as_second(), 10);
}
