//! The settings that a run takes from the profile of its model, and those that count before it.

use kontekst_agent::{RunOverrides, StartRun};
use kontekst_core::{ModelIdentity, Sampling};
use kontekst_models::profile::{Calling, Profile};
use kontekst_store::config::ToolRole;

use super::{
    TestCore,
    scripted_provider::{ScriptedProvider, Step},
};

/// A core whose model has this name at a server, and answers two requests.
fn core(model: &str, profile: Option<Profile>) -> TestCore {
    let identity =
        ModelIdentity::Served { endpoint: "http://127.0.0.1:1".to_owned(), model: model.to_owned() };
    let steps = [Step::Say("a"), Step::Say("b"), Step::Say("c")];
    let test = TestCore::with_model(ScriptedProvider::new(steps).with_identity(identity.clone()), |_| {});
    if let Some(profile) = profile {
        profile.store(test.core.home(), &identity, "").unwrap();
    }
    test
}

fn profile(calling: Calling) -> Option<Profile> {
    Some(Profile { calling: Some(calling), temperature: Some(0.1), ..Profile::default() })
}

/// Runs one request and returns the way of calling and the temperature that the model was asked with.
async fn asked(test: &TestCore, request: StartRun) -> (ToolRole, Option<f64>) {
    test.run(request).await;
    let last = test.model.requests().pop().unwrap();
    (last.tool_role, last.sampling.temperature)
}

#[tokio::test]
async fn a_profile_decides_what_the_agent_and_the_request_leave_open() {
    let test = core("m", profile(Calling::Steps));
    assert_eq!(asked(&test, test.request("hello")).await, (ToolRole::Steps, Some(0.1)));
    test.agent("fixed", "tool_role = true\n[sampling]\ntemperature = 0.4\n");
    let of_agent = StartRun { agent: "fixed".to_owned(), ..test.request("hello") };
    assert_eq!(asked(&test, of_agent).await, (ToolRole::Native, Some(0.4)));
    let sampling = Sampling { temperature: Some(0.9), ..Sampling::default() };
    let overrides = RunOverrides { sampling, ..RunOverrides::default() };
    let of_request = StartRun { overrides, ..test.request("hello") };
    assert_eq!(asked(&test, of_request).await, (ToolRole::Steps, Some(0.9)));

    let test = core("m", profile(Calling::Text));
    assert_eq!(asked(&test, test.request("hello")).await, (ToolRole::Prompted, Some(0.1)));
    let bare = RunOverrides { bare: true, ..RunOverrides::default() };
    let bare = StartRun { overrides: bare, ..test.request("hello") };
    assert_eq!(asked(&test, bare).await, (ToolRole::Native, None));
}

#[tokio::test]
async fn a_known_family_counts_where_there_is_no_profile() {
    let test = core("Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf", None);
    assert_eq!(asked(&test, test.request("hello")).await, (ToolRole::Steps, None));
    let test = core("Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf", profile(Calling::Native));
    assert_eq!(asked(&test, test.request("hello")).await, (ToolRole::Native, Some(0.1)));
    let undecided = Some(Profile::default());
    let test = core("Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf", undecided);
    assert_eq!(asked(&test, test.request("hello")).await, (ToolRole::Steps, None));
    let test = core("unknown", None);
    assert_eq!(asked(&test, test.request("hello")).await, (ToolRole::Auto, None));
}
