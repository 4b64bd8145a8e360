//! Writes of whole files over others.

use kontekst::agent::protocol::Event;
use serde_json::json;

use super::{
    super::{TestCore, event_names},
    Step, answer, first_result,
};

fn write(content: &str) -> Step {
    Step::Call(vec![("write_file", json!({"path": "a.txt", "content": content}))])
}

#[tokio::test]
async fn a_write_over_an_unread_file_is_turned_back_once() {
    let test = TestCore::new([write("new\n"), write("new\n"), Step::Say("done")]);
    test.write("a.txt", "one\ntwo\n");
    let events = test.run(test.request("put new into a.txt")).await;
    assert_eq!(answer(&events), "done");
    assert_eq!(
        first_result(&test),
        "Nothing was written: a.txt exists already, and you have not read it. To change a part of it, call edit_file \
         with old_str copied from the file. To replace all of it, call write_file again with the whole content.\nAll of \
         a.txt, between the lines:\n-----\none\ntwo\n-----"
    );
    assert_eq!(test.read("a.txt"), "new\n", "the second one was approved and carried out");
    let names = event_names(&events);
    assert_eq!(
        names.iter().filter(|name| **name == "proposed").count(),
        1,
        "nobody is asked about the first"
    );
    assert_eq!(names.iter().filter(|name| **name == "tool_failed").count(), 1);
}

#[tokio::test]
async fn a_write_is_carried_out_where_the_model_or_the_user_knows_what_it_does() {
    let read = || Step::Call(vec![("read_file", json!({"path": "a.txt"}))]);
    for (steps, prompt) in [
        (vec![read(), write("new\n")], "change it"),
        (vec![write("new\n")], "overwrite a.txt with new"),
        (vec![write("new\n")], "a.txt says:\none\ntwo\nmake it say new"),
    ] {
        let test = TestCore::new(steps.into_iter().chain([Step::Say("done")]));
        test.write("a.txt", "one\ntwo\n");
        let events = test.run(test.request(prompt)).await;
        assert!(!event_names(&events).contains(&"tool_failed"), "{prompt}");
        assert_eq!(test.read("a.txt"), "new\n", "{prompt}");
    }
    let test = TestCore::new([write("new\n"), Step::Say("done")]);
    let events = test.run(test.request("write a.txt")).await;
    assert!(matches!(&events[events.len() - 1], Event::Ended(_)) && test.exists("a.txt"));
}

#[tokio::test]
async fn a_write_that_drops_most_of_a_known_file_is_turned_back_once() {
    let long: String = (0..30).map(|number| format!("line {number}\n")).collect();
    let read = Step::Call(vec![("read_file", json!({"path": "a.txt"}))]);
    let steps = [read, write("line 7\n# the rest is as before\n")];
    let test = TestCore::new(steps.into_iter().chain((0..3).map(|_| Step::Say("sorry"))));
    test.write("a.txt", &long);
    test.run(test.request("look at line 8 in a.txt")).await;
    assert_eq!(test.read("a.txt"), long);
    let requests = format!("{:?}", test.model.requests()[2].messages);
    assert!(requests.contains("only 1 of the 30 lines of a.txt would be left"), "{requests}");
}

#[tokio::test]
async fn a_file_is_not_created_under_a_guessed_name() {
    let wrong = |tool, args| Step::Call(vec![(tool, args)]);
    let test = TestCore::new([
        wrong("edit_file", json!({"path": "src/a.txt", "old_str": "one", "new_str": "two"})),
        wrong("write_file", json!({"path": "src/a.txt", "content": "two\n"})),
        wrong("edit_file", json!({"path": "a.txt", "old_str": "one", "new_str": "two"})),
        Step::Say("done"),
    ]);
    test.write("a.txt", "one\n");
    assert_eq!(answer(&test.run(test.request("replace one with two in a.txt")).await), "done");
    assert_eq!((test.read("a.txt").as_str(), test.exists("src/a.txt")), ("two\n", false));
    let requests = format!("{:?}", test.model.requests()[2].messages);
    assert!(
        requests.contains("Nothing was written: there is no src/a.txt; did you mean `a.txt`?"),
        "{requests}"
    );
}

#[tokio::test]
async fn a_write_over_an_unread_file_is_turned_back_again_if_it_drops_most_of_it() {
    let old = "MAX = 5\n\n\ndef allowed(size):\n    return size <= MAX\n";
    let new = "MAX = 20\n";
    let test = TestCore::new([write(new), write(new), write(new), Step::Say("done")]);
    test.write("a.txt", old);
    answer(&test.run(test.request("raise the limit to 20")).await);
    let results: Vec<String> = test.model.requests()[3]
        .messages
        .iter()
        .filter_map(|message| message.tool_result.as_ref())
        .map(|result| result.output.clone())
        .collect();
    assert!(results[0].contains("you have not read it"), "{results:?}");
    assert!(results[1].contains("only 0 of the 3 lines of a.txt would be left"), "{results:?}");
    assert_eq!(test.read("a.txt"), new, "the third one was carried out");
}

#[tokio::test]
async fn an_edit_of_all_places_is_turned_back_twice_where_one_may_be_meant() {
    let edit = || {
        let args = json!({"path": "a.txt", "old_str": "t = 1", "new_str": "t = 2", "replace_all": true});
        Step::Call(vec![("edit_file", args)])
    };
    let test = TestCore::new([edit(), edit(), edit(), Step::Say("done")]);
    test.write("a.txt", "[a]\nt = 1\n[b]\nt = 1\n");
    assert_eq!(answer(&test.run(test.request("set the t of b to 2 in a.txt")).await), "done");
    let result = first_result(&test);
    assert!(result.starts_with("Nothing was changed: old_str stands in a.txt 2 times, and "), "{result}");
    assert!(result.contains("[a]\nt = 1\n[b]\nt = 1\n"), "{result}");
    assert_eq!(test.read("a.txt"), "[a]\nt = 2\n[b]\nt = 2\n", "the model insisted");
}

#[tokio::test]
async fn the_meant_place_is_named_with_the_edit_for_it() {
    let all = json!({"path": "a.txt", "old_str": "t = 1", "new_str": "t = 2", "replace_all": true});
    let one = json!({"path": "a.txt", "old_str": "[client]\nt = 1", "new_str": "[client]\nt = 2"});
    let calls = [all, one].map(|args| Step::Call(vec![("edit_file", args)]));
    let test = TestCore::new(calls.into_iter().chain([Step::Say("done")]));
    test.write("a.txt", "[server]\nt = 1\n[client]\nt = 1\n");
    assert_eq!(answer(&test.run(test.request("set the t of the client to 2 in a.txt")).await), "done");
    let result = first_result(&test);
    let advice = r#"Call edit_file with old_str "[client]\nt = 1" and new_str "[client]\nt = 2"."#;
    assert!(
        result.contains("The request speaks of \"client\": that is line 4") && result.ends_with(advice),
        "{result}"
    );
    assert_eq!(test.read("a.txt"), "[server]\nt = 1\n[client]\nt = 2\n");
}
