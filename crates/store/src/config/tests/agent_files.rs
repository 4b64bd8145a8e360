//! Tests of the files of an agent.

use super::*;

fn agent(files: &[(&str, &str)]) -> Result<AgentConfig, AgentError> {
    let (_dir, home) = home();
    home.create().unwrap();
    let dir = home.agents().join("x");
    fs::create_dir(&dir).unwrap();
    for (name, text) in files {
        fs::write(dir.join(name), text).unwrap();
    }
    AgentConfig::load(&home, &"x".parse().unwrap())
}

#[test]
fn the_default_agent_leaves_the_choice_to_the_model_and_shows_the_values_of_the_seed() {
    let (_dir, home) = home();
    home.create().unwrap();
    assert!(agents::create_default(&home).unwrap());
    assert!(!agents::create_default(&home).unwrap());
    let agent = AgentConfig::load(&home, &agents::DEFAULT.parse().unwrap()).unwrap();
    assert_eq!((agent.display_name.as_str(), agent.model.as_str()), ("Default Assistant", ""));
    assert_eq!(agent.sampling, kontekst_core::Sampling::default());
    assert!((100..=700).contains(&agent.prompt.len()), "{}", agent.prompt.len());
    assert_eq!(agent.unknown_keys, Vec::<String>::new());
    assert_eq!(
        (mode(&home.agents().join("default")), mode(&home.agents().join("default/agent.md"))),
        (0o700, 0o600)
    );

    let file = home.agents().join("default/config.toml");
    let with_comments = fs::read_to_string(&file).unwrap();
    fs::write(&file, uncommented(&with_comments)).unwrap();
    let agent = AgentConfig::load(&home, &agents::DEFAULT.parse().unwrap()).unwrap();
    assert_eq!(agent.model, "gpt-oss-20b-Q4_K_M.gguf");
    let sampling = kontekst_core::Sampling {
        temperature: Some(0.7),
        top_p: Some(0.9),
        top_k: Some(40),
        repeat_penalty: Some(1.1),
        max_tokens: Some(4096),
    };
    assert_eq!(agent.sampling, sampling);

    fs::remove_file(home.agents().join("default/config.toml")).unwrap();
    assert!(!agents::create_default(&home).unwrap(), "what a person changed stays changed");
}

#[test]
fn one_of_the_two_files_makes_an_agent() {
    let only_prompt = agent(&[("agent.md", "\nBe kind.\n\n")]).unwrap();
    assert_eq!((only_prompt.prompt.as_str(), only_prompt.display_name.as_str()), ("Be kind.", "x"));
    assert!(only_prompt.has_prompt && !only_prompt.has_config);
    let only_config = agent(&[("config.toml", "model = 'm.gguf'\nextra = 1")]).unwrap();
    assert!(only_config.has_config && !only_config.has_prompt);
    assert_eq!((only_config.model.as_str(), only_config.unknown_keys), ("m.gguf", vec!["extra".to_owned()]));
    for (text, role) in [
        ("tool_role = true", ToolRole::Native),
        ("tool_role = false", ToolRole::Text),
        ("tool_role = 'auto'", ToolRole::Auto),
        ("tool_role = 'steps'", ToolRole::Steps),
        ("tool_role = 'text'", ToolRole::Prompted),
        ("", ToolRole::Auto),
    ] {
        assert_eq!(agent(&[("config.toml", text)]).unwrap().tool_role, role, "{text}");
    }
}

#[test]
fn rails_are_on_unless_a_key_says_otherwise() {
    assert_eq!(agent(&[("config.toml", "")]).unwrap().rails, RailsConfig::default());
    let text = "[rails]\nrepeats = false\nthinking_budget = 500\nguard_rail = true\n";
    let some = agent(&[("config.toml", text)]).unwrap();
    let expected = RailsConfig { repeats: false, thinking_budget: Some(500), ..RailsConfig::default() };
    assert_eq!((some.rails, some.unknown_keys), (expected, vec!["rails.guard_rail".to_owned()]));
}

#[test]
fn a_mistake_in_an_agent_file_is_reported_with_its_line() {
    #[track_caller]
    fn refused(text: &str, expect: &Expect) {
        let error = agent(&[("config.toml", text)]).unwrap_err().to_string();
        expect.assert_eq(&error[error.find("agents/").expect("the file is named")..]);
    }
    refused(
        "model = 3",
        &expect![
            "agents/x/config.toml, line 1, column 9: `model`: invalid type: integer `3`, expected a string"
        ],
    );
    refused(
        "[rails]\nopening = 1",
        &expect![
            "agents/x/config.toml, line 2, column 11: `opening`: invalid type: integer `1`, expected a boolean"
        ],
    );
    refused(
        "tool_role = 'maybe'",
        &expect![[
            r#"agents/x/config.toml, line 1, column 13: `tool_role`: invalid value: string "maybe", expected true, false, "text", "steps" or "auto""#
        ]],
    );
    refused(
        "[sampling]\ntemperature = 2.5",
        &expect!["agents/x/config.toml, line 2, column 15: `temperature`: must be from 0 to 2, not 2.5"],
    );
    refused(
        "[sampling]\ntemperature = nan",
        &expect!["agents/x/config.toml, line 2, column 15: `temperature`: must be from 0 to 2, not NaN"],
    );
    refused(
        "[sampling]\ntop_p = -0.1",
        &expect!["agents/x/config.toml, line 2, column 9: `top_p`: must be from 0 to 1, not -0.1"],
    );
    refused(
        "[sampling]\ntop_k = -1",
        &expect!["agents/x/config.toml, line 2, column 9: `top_k`: must be from 0 to 2147483647, not -1"],
    );
    refused(
        "[sampling]\nrepeat_penalty = 3",
        &expect!["agents/x/config.toml, line 2, column 18: `repeat_penalty`: must be from 0 to 2, not 3"],
    );
    refused(
        "[sampling]\nmax_tokens = 0",
        &expect![
            "agents/x/config.toml, line 2, column 14: `max_tokens`: must be from 1 to 2147483647, not 0"
        ],
    );
    refused(
        "[sampling]\ntop_q = 1",
        &expect![
            "agents/x/config.toml, line 2, column 1: unknown field `top_q`, expected one of `temperature`, `top_p`, `top_k`, `repeat_penalty`, `max_tokens`"
        ],
    );
    refused(
        "endpoint = ''",
        &expect!["agents/x/config.toml, line 1, column 12: `endpoint`: must not be blank"],
    );
    refused(
        "context_size = 1",
        &expect![
            "agents/x/config.toml, line 1, column 16: `context_size`: must be from 256 to 2147483647, not 1"
        ],
    );
    assert!(agent(&[("config.toml", "[sampling]\ntemperature = 1")]).is_ok(), "whole numbers are fine");
}

#[test]
fn an_unknown_agent_names_the_others() {
    let (_dir, home) = home();
    home.create().unwrap();
    let load = || AgentConfig::load(&home, &"x".parse().unwrap()).unwrap_err().to_string();
    assert_eq!(load(), "no agent `x`; there are: none");
    agents::create_default(&home).unwrap();
    for dir in ["b", "empty", ".hidden", "with space"] {
        fs::create_dir(home.agents().join(dir)).unwrap();
    }
    fs::write(home.agents().join("b/agent.md"), "x").unwrap();
    fs::write(home.agents().join(".hidden/agent.md"), "x").unwrap();
    assert_eq!(load(), "no agent `x`; there are: b, default");
    fs::write(home.agents().join("b/config.toml"), "x").unwrap();
    let listed: Vec<bool> = AgentConfig::list(&home).iter().map(Result::is_ok).collect();
    assert_eq!(listed, [false, true], "a broken agent is listed as such");
}
