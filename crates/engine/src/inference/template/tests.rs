//! Tests what is found out about templates.

use super::{
    InThisProcess, Template, TemplateSource, Traits,
    samples::{GEMMA, OBJECTS, QWEN, SMALL},
};

fn template(text: &str) -> Template {
    let source = TemplateSource { template: Some(text.to_owned()), ..TemplateSource::default() };
    Template::new(source, &InThisProcess).unwrap()
}

#[test]
fn a_template_is_known_by_what_it_renders() {
    let full = Traits {
        system_role: true,
        tools: true,
        calls: true,
        results: true,
        argument_objects: false,
        empty_tools: false,
    };
    for (text, traits) in [
        (QWEN, full),
        (OBJECTS, Traits { argument_objects: true, ..full }),
        (SMALL, Traits { system_role: false, tools: false, ..full }),
        (GEMMA, Traits { system_role: false, tools: false, calls: false, results: false, ..full }),
        // Some count the tools without asking whether there are any.
        (
            &format!("{{%- if tools | length == 0 -%}}{{%- endif -%}}{QWEN}"),
            Traits { empty_tools: true, ..full },
        ),
        // A template that cannot be used is replaced by ChatML.
        ("{{ oops(", Traits { tools: false, calls: false, ..full }),
        ("nothing of it", Traits { tools: false, calls: false, ..full }),
    ] {
        assert_eq!(template(text).traits(), traits, "{text}");
    }
    assert!(template(QWEN).traits().native_tools() && !template(SMALL).traits().native_tools());
}
