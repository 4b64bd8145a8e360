//! `kontekst man`: the pages come out of the program.

use std::fs;

use crate::test_home::TestHome;

#[test]
fn pages_are_printed_and_installed() {
    let home = TestHome::with_config("");
    let page = |words: &[&str]| home.run(&[&["man"], words].concat()).success();
    assert!(page(&["run"]).contains(".TH kontekst-run 1"));
    assert!(page(&["models", "pull"]).contains(".TH kontekst-models-pull 1"));
    let of_project =
        |name: &str| fs::read_to_string(format!("{}/man/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    assert_eq!(page(&["config.5"]), of_project("kontekst-config.5"));
    assert_eq!(page(&[]), of_project("kontekst.1"));
    for hidden in ["spawned-daemon", "propose-line", "exec-child"] {
        home.run(&["man", hidden]).fails(2);
    }
    assert!(home.run(&["man", "modles"]).fails(2).contains("did you mean `kontekst man models`?"));
    let stderr = home.run(&["man", "nope"]).fails(2);
    assert!(!stderr.contains("did you mean"), "{stderr}");
    let dir = home.work_dir().join("man");
    let install = || home.run(&["man", "--install", dir.to_str().unwrap()]);
    assert!(install().stderr.contains("wrote "));
    assert!(install().stderr.contains("as they should be"));
    assert!(dir.join("man5/kontekst-config.5").exists());
    let count = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/man")).unwrap().count();
    assert_eq!(fs::read_dir(dir.join("man1")).unwrap().count(), count - 1);
}
