//! Changes of the test that has to pass.

use super::{
    super::{TestCore, event_names},
    Step, answer, edit, first_result, read,
};

const TEST: &str = "from stats import mean\n\nassert mean([1, 3]) == 2\n";

#[tokio::test]
async fn a_change_of_the_test_is_turned_back_twice() {
    let cheat = || edit("test_stats.py", "== 2", "== 1");
    for insists in [false, true] {
        let next = if insists { vec![cheat(), cheat()] } else { vec![edit("stats.py", "1", "2")] };
        let test = TestCore::new([cheat()].into_iter().chain(next).chain([Step::Say("done")]));
        test.write("test_stats.py", TEST);
        test.write("stats.py", "def mean(numbers):\n    return 1\n");
        let prompt = "test_stats.py fails. Repair stats.py so that it passes.";
        let events = test.run(test.request(prompt)).await;
        assert_eq!(answer(&events), "done");
        assert_eq!(
            first_result(&test),
            "Nothing was changed: test_stats.py is a test that has to pass, and the request does not ask for another test. \
             Correct the code that it tests. It tests stats.py: correct the mistake there."
        );
        assert_eq!(test.read("test_stats.py") == TEST, !insists);
        assert_eq!(test.read("stats.py").contains('2'), !insists);
        let proposed = event_names(&events).iter().filter(|name| **name == "proposed").count();
        assert_eq!(proposed, 1, "nobody is asked about a change that is turned back");
    }
}

#[tokio::test]
async fn a_change_of_a_test_that_was_asked_for_is_carried_out() {
    for prompt in
        ["Add a case for [2, 2] to the test", "In test_stats.py, expect 1", "Update the tests, they fail"]
    {
        let test =
            TestCore::new([read("test_stats.py"), edit("test_stats.py", "== 2", "== 1"), Step::Say("done")]);
        test.write("test_stats.py", TEST);
        let events = test.run(test.request(prompt)).await;
        assert!(!event_names(&events).contains(&"tool_failed"), "{prompt}");
        assert!(test.read("test_stats.py").contains("== 1"), "{prompt}");
    }
}
