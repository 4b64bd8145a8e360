//! Chat templates that are made to do harm: each is an error of its own run and of nothing else.

use std::{path::Path, thread};

use kontekst_core::Cancel;
use kontekst_engine::template::{Template, TemplateError, TemplateSource};
use kontekst_provider::builtin::template_process::TemplateProcess;

use super::{home, tiny_model};
use crate::{
    hostile_input::{Random, rounds},
    test_home::TestHome,
};

/// Takes as many steps as there are paths through two values of forty levels, all in one comparison.
const ENDLESS: &str = "{% set ns = namespace(x=[], y=[]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}\
    {% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}";

const HOSTILE: [(&str, &str); 6] = [
    (
        "deep",
        "{% set ns = namespace(x={}) %}{% for i in range(90000) %}{% set ns.x = {'a': ns.x} %}{% endfor %}\
         {{ ns.x | tojson }}",
    ),
    ("replace", "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}"),
    (
        "text",
        "{% set ns = namespace(x='abcdefgh') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    ),
    (
        "list",
        "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}\
         {{ ns.x | list | length }}",
    ),
    ("steps", "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}"),
    ("endless", ENDLESS),
];

/// Writes a model with this template, and an agent of the same name that uses it.
fn add_model(home: &TestHome, name: &str, template: &str) {
    let file = home.work_dir().join("models").join(name).with_extension("gguf");
    tiny_model::write_with_template(&file, "llama", template);
    let config = home.read("agents/default/config.toml").replace("\"tiny\"", &format!("\"{name}\""));
    home.write(&format!("agents/{name}/config.toml"), &config);
    home.write(&format!("agents/{name}/agent.md"), "You are a test.\n");
}

#[test]
fn a_hostile_template_is_an_error_and_the_daemon_goes_on() {
    let home = home();
    assert_eq!(home.run(&["run", "hello"]).success(), "It works.\n");
    let daemon = home.daemon();
    for (name, template) in HOSTILE {
        add_model(&home, name, template);
        home.run(&["models", "show", name]).success();
        let output = home.run(&["run", "--new", "--agent", name, "hello"]);
        let fact =
            format!("{name}.gguf cannot be loaded: its chat template cannot be used: it was stopped: ");
        assert!(output.stderr.contains(&fact), "{output:?}");
        assert_eq!((output.stdout.as_str(), output.code), ("", 6), "{output:?}");
        assert_eq!(home.run(&["run", "--new", "hello"]).success(), "It works.\n", "{name}");
    }
    assert_eq!(home.daemon(), daemon, "it is the same process");
    let checked = home.run(&["models", "check", "text"]);
    assert!(checked.stderr.contains("its chat template cannot be used"), "{checked:?}");
}

#[test]
fn a_template_that_turns_hostile_later_fails_that_run_only() {
    let home = home();
    let trap = format!(
        "{{%- if '!trap' in messages[-1].content -%}}{}{{%- endif -%}}{}",
        HOSTILE[1].1,
        tiny_model::TEMPLATE
    );
    add_model(&home, "trap", &trap);
    assert_eq!(home.run(&["run", "--agent", "trap", "hello"]).success(), "It works.\n");
    let daemon = home.daemon();
    let stderr = home.run(&["run", "--agent", "trap", "!trap"]).fails(1);
    assert!(stderr.contains("chat template") && stderr.contains("more memory"), "{stderr}");
    assert_eq!(home.run(&["run", "--new", "--agent", "trap", "hello"]).success(), "It works.\n");
    assert_eq!(home.daemon(), daemon);
}

fn try_out(template: &str, cancel: &Cancel, cpu_seconds: u64) -> Result<Template, TemplateError> {
    let launcher = Path::new(env!("CARGO_BIN_EXE_kontekst"));
    let source = TemplateSource { template: Some(template.to_owned()), ..TemplateSource::default() };
    Template::new(source, &TemplateProcess::new(launcher, cancel).with_cpu_seconds(cpu_seconds))
}

#[test]
fn a_cancel_ends_a_template_that_runs() {
    let cancel = Cancel::new();
    let (signal, an_hour) = (cancel.clone(), 3600);
    let canceller = thread::spawn(move || signal.cancel());
    assert_eq!(try_out(ENDLESS, &cancel, an_hour).err(), Some(TemplateError::Cancelled));
    canceller.join().unwrap();
}

/// Writes a random template that makes and uses large values.
fn random_template(random: &mut Random) -> String {
    const LEAVES: [&str; 10] = [
        "ns.x",
        "ns.y",
        "ns.x",
        "'abc'",
        "7",
        "1000000",
        "[1, 2]",
        "{'k': 1}",
        "messages",
        "messages[0].content",
    ];
    #[rustfmt::skip]
    const FILTERS: [&str; 18] = [
        "tojson", "list", "length", "join(',')", "join(ns.y)", "replace('a', ns.y)", "string", "sort",
        "unique", "reverse", "items", "upper", "batch(3)", "slice(3)", "indent(9)", "first", "last",
        "trim",
    ];
    fn expression(random: &mut Random, depth: usize) -> String {
        let part = |random: &mut Random| expression(random, depth - 1);
        match random.below(if depth == 0 { 1 } else { 9 }) {
            0 => LEAVES[random.below(LEAVES.len())].to_owned(),
            1 => format!("({} ~ {})", part(random), part(random)),
            2 => format!("({} + {})", part(random), part(random)),
            3 => format!("({} * {})", part(random), part(random)),
            4 => format!("[{}, {}]", part(random), part(random)),
            5 => format!("{{'a': {}, 'b': {}}}", part(random), part(random)),
            6 => format!("({} == {})", part(random), part(random)),
            7 => format!("({})[{}:]", part(random), random.below(3)),
            _ => format!("({} | {})", part(random), FILTERS[random.below(FILTERS.len())]),
        }
    }
    let mut template = "{% set ns = namespace(x='ab', y=[]) %}".to_owned();
    for _ in 0..1 + random.below(3) {
        let (name, value) = (["x", "y"][random.below(2)], expression(random, 2));
        let rounds = [1, 40, 5000][random.below(3)];
        template += &match random.below(3) {
            0 => format!("{{% for i in range({rounds}) %}}{{% set ns.{name} = {value} %}}{{% endfor %}}"),
            1 => format!("{{% macro m(a) %}}{{{{ {value} }}}}{{{{ m(a) }}}}{{% endmacro %}}{{{{ m(1) }}}}"),
            _ => format!("{{% for i in {value} %}}{{% set ns.{name} = [ns.{name}, i] %}}{{% endfor %}}"),
        };
    }
    template + &format!("{{{{ messages[-1].content }}}}{{{{ {} }}}}", expression(random, 3))
}

#[test]
fn random_templates_are_rendered_refused_or_stopped() {
    let mut random = Random::new(11);
    for _ in 0..rounds(25, 1000) {
        let template = random_template(&mut random);
        match try_out(&template, &Cancel::new(), 1) {
            // ChatML stands in for those that were refused.
            Ok(_) | Err(TemplateError::Stopped(_)) => {}
            Err(other) => panic!("{other}: {template}"),
        }
    }
}
