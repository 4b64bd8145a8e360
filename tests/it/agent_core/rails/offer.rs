//! Tools of which a run has no use.

use super::*;

/// Returns the tools that are withheld in each turn of a run with this prompt, which reads `a.txt` and answers.
async fn withheld_in(prompt: &str, file: &str, config: &str) -> Vec<Vec<String>> {
    let test = TestCore::new([read("a.txt"), Step::Say("It says one.")]);
    test.write("a.txt", file);
    test.agent("steps", config);
    let request = StartRun { agent: "steps".to_owned(), ..test.request(prompt) };
    answer(&test.run(request).await);
    withheld(&test).into_iter().map(|(names, _)| names).collect()
}

#[tokio::test]
async fn a_question_withholds_the_tools_that_change_files() {
    let changing = ["write_file", "edit_file", "run_command", "web_fetch"].map(str::to_owned).to_vec();
    assert_eq!(withheld_in("what is in a.txt?", "one\n", "").await, [changing.clone(), changing]);
    let unused = ["run_command", "web_fetch"].map(str::to_owned).to_vec();
    assert_eq!(withheld_in("look at a.txt", "one\n", "").await, [unused.clone(), unused]);
    assert_eq!(withheld_in("what is in a.txt?", "one\n", "[rails]\noffer = false\n").await, [[""; 0]; 2]);
}

#[tokio::test]
async fn web_fetch_is_withheld_until_an_address_occurs() {
    let unused = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let (before, after) = (unused(&["run_command", "web_fetch"]), unused(&["run_command"]));
    assert_eq!(withheld_in("look at a.txt", "see https://a.example/b\n", "").await, [before, after.clone()]);
    assert_eq!(withheld_in("look at a.txt and visit example.com", "one\n", "").await, [after.clone(), after]);
}

#[tokio::test]
async fn run_command_is_withheld_where_nothing_is_to_be_run() {
    let web = vec!["web_fetch".to_owned()];
    assert_eq!(withheld_in("run the tests and look at a.txt", "one\n", "").await, [web.clone(), web]);
}
