//! The tools of one run, in a fixed order.

use std::{sync::Arc, time::Duration};

use super::Tool;
use crate::core::ToolDef;

/// Most tools that a client may bring. Source: [`ToolBox::with_client_tools`] is reached from a socket.
const MAX_CLIENT_TOOLS: usize = 256;
/// Largest definition (description and schema) of one client tool, in bytes.
const MAX_DEF_BYTES: usize = 64 * 1024;
/// Largest sum of all of them, in bytes.
const MAX_TOTAL_BYTES: usize = 1024 * 1024;

/// Who runs a tool.
#[derive(Clone)]
pub enum Executor {
    /// The daemon.
    Daemon(Arc<dyn Tool>),
    /// The client that brought it; it has `timeout` to answer.
    Client { timeout: Duration, concurrency: Concurrency },
}

/// A tool that runs at the client.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientTool {
    pub def: ToolDef,
    /// How long one call may take.
    pub timeout: Duration,
    pub concurrency: Concurrency,
}

/// Whether calls may run at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concurrency {
    /// One after the other.
    #[default]
    Sequential,
    /// Together with the calls beside it that are free, too.
    Parallel,
}

/// The tools of one run. The order never changes: it is part of the prompt, and a changed prompt costs
/// the model server's cache.
#[derive(Clone)]
pub struct ToolBox {
    defs: Arc<[ToolDef]>,
    /// One for each definition.
    sites: Vec<Executor>,
}

/// Why a client's tools were refused. None of them was taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolBoxError {
    #[error("`{0}` is not a tool name: use letters, digits, `_` and `-`, at most 64")]
    BadName(String),
    #[error("the tool `{0}` runs in the daemon and cannot be replaced")]
    Shadows(String),
    #[error("the tool `{0}` is given twice")]
    Duplicate(String),
    #[error("the parameters of the tool `{0}` are not a JSON Schema of type object")]
    BadSchema(String),
    #[error("the tool `{name}` takes {bytes} bytes, more than the limit of {MAX_DEF_BYTES}")]
    TooLarge { name: String, bytes: usize },
    #[error("{0} tools are more than the limit of {MAX_CLIENT_TOOLS}")]
    TooMany(usize),
    #[error("the tools take more than {MAX_TOTAL_BYTES} bytes together")]
    TotalTooLarge,
}

impl ToolBox {
    /// The first of two tools of one name is kept.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let mut defs: Vec<ToolDef> = Vec::new();
        let mut executors = Vec::new();
        for tool in tools {
            let def = tool.def();
            if defs.iter().all(|known| known.name != def.name) {
                defs.push(def);
                executors.push(Executor::Daemon(tool));
            }
        }
        Self { defs: defs.into(), sites: executors }
    }

    /// Puts the client's tools behind the daemon's, in the order given.
    ///
    /// # Errors
    ///
    /// One [`ToolBoxError`] for the first tool that cannot be taken. At most 256 tools, 64 KiB for one
    /// definition and 1 MiB for all.
    pub fn with_client_tools(self, tools: Vec<ClientTool>) -> Result<Self, ToolBoxError> {
        if tools.len() > MAX_CLIENT_TOOLS {
            return Err(ToolBoxError::TooMany(tools.len()));
        }
        let here = self.defs.len();
        let mut defs = self.defs.to_vec();
        let mut sites = self.sites;
        let mut total = 0;
        for ClientTool { def, timeout, concurrency: order } in tools {
            total += validated_size(&def)?;
            if total > MAX_TOTAL_BYTES {
                return Err(ToolBoxError::TotalTooLarge);
            }
            match defs.iter().position(|known| known.name == def.name) {
                Some(at) if at < here => return Err(ToolBoxError::Shadows(def.name)),
                Some(_) => return Err(ToolBoxError::Duplicate(def.name)),
                None => {}
            }
            defs.push(def);
            sites.push(Executor::Client { timeout, concurrency: order });
        }
        Ok(Self { defs: defs.into(), sites })
    }

    /// With one more of the daemon's tools, behind the others. A name that is taken stays whose it is.
    #[must_use]
    pub fn with_tool(self, tool: Arc<dyn Tool>) -> Self {
        let def = tool.def();
        if self.find(&def.name).is_some() {
            return self;
        }
        let defs = self.defs.iter().cloned().chain([def]).collect();
        let mut sites = self.sites;
        sites.push(Executor::Daemon(tool));
        Self { defs, sites }
    }

    /// Without the daemon's tool of this name; a client's stays.
    #[must_use]
    pub fn without_daemon_tool(&self, name: &str) -> Self {
        let kept = self.defs.iter().zip(&self.sites);
        let kept = kept.filter(|(def, site)| def.name != name || !matches!(site, Executor::Daemon(_)));
        let (defs, sites): (Vec<ToolDef>, Vec<Executor>) =
            kept.map(|(def, site)| (def.clone(), site.clone())).unzip();
        Self { defs: defs.into(), sites }
    }

    /// What the model is offered; the same each time.
    pub fn defs(&self) -> Arc<[ToolDef]> {
        Arc::clone(&self.defs)
    }

    pub fn find(&self, name: &str) -> Option<&Executor> {
        let at = self.defs.iter().position(|def| def.name == name)?;
        self.sites.get(at)
    }
}

/// The size of a definition that may be taken.
fn validated_size(def: &ToolDef) -> Result<usize, ToolBoxError> {
    // Source: what OpenAI-compatible servers take as a function name.
    let usable = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if def.name.is_empty() || def.name.len() > 64 || !def.name.bytes().all(usable) {
        return Err(ToolBoxError::BadName(def.name.chars().take(64).collect()));
    }
    if def.parameters.get("type").and_then(|kind| kind.as_str()) != Some("object") {
        return Err(ToolBoxError::BadSchema(def.name.clone()));
    }
    let bytes = def.name.len() + def.description.len() + def.parameters.to_string().len();
    if bytes > MAX_DEF_BYTES {
        return Err(ToolBoxError::TooLarge { name: def.name.clone(), bytes });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{config::ToolsConfig, tools::builtin};

    fn named(name: &str) -> ClientTool {
        let def =
            ToolDef { name: name.into(), description: "d".into(), parameters: json!({"type": "object"}) };
        ClientTool { def, timeout: Duration::from_secs(1), concurrency: Concurrency::Sequential }
    }

    fn builtins() -> ToolBox {
        ToolBox::new(builtin::all(&ToolsConfig::default()))
    }

    #[test]
    fn client_tools_come_behind_ours_and_shadow_none() {
        let tools = builtins().with_client_tools(vec![named("zoom"), named("ask")]).unwrap();
        let names: Vec<_> = tools.defs().iter().map(|def| def.name.clone()).collect();
        assert_eq!(names, ["read_file", "write_file", "edit_file", "list_files", "web_fetch", "zoom", "ask"]);
        assert!(matches!(tools.find("ask"), Some(Executor::Client { .. })));
        assert!(matches!(tools.find("read_file"), Some(Executor::Daemon(_))));
        assert!(tools.find("nothing").is_none());

        let refused = |given| builtins().with_client_tools(given).err().unwrap();
        assert_eq!(refused(vec![named("read_file")]), ToolBoxError::Shadows("read_file".into()));
        assert_eq!(refused(vec![named("a"), named("a")]), ToolBoxError::Duplicate("a".into()));
    }

    #[test]
    fn a_tool_comes_and_goes_behind_the_others() {
        let tool = || Arc::clone(&builtin::all(&ToolsConfig::default())[0]);
        let name = tool().def().name;
        let tools = builtins().without_daemon_tool(&name).with_client_tools(vec![named("ask")]).unwrap();
        assert!(tools.find(&name).is_none());
        assert_eq!(tools.clone().with_tool(tool()).defs().last().unwrap().name, name);
        assert!(
            matches!(tools.without_daemon_tool("ask").find("ask"), Some(Executor::Client { .. })),
            "not ours to take"
        );
        let theirs = builtins()
            .without_daemon_tool(&name)
            .with_client_tools(vec![named(&name)])
            .unwrap()
            .with_tool(tool());
        assert!(matches!(theirs.find(&name), Some(Executor::Client { .. })), "a name that is taken stays");
    }

    #[test]
    fn floods_are_refused() {
        let refused = |given| builtins().with_client_tools(given).err().unwrap();
        let many = |n: usize| (0..n).map(|i| named(&format!("t{i}"))).collect::<Vec<_>>();
        assert!(builtins().with_client_tools(many(256)).is_ok());
        assert_eq!(refused(many(257)), ToolBoxError::TooMany(257));
        for name in ["", "a b", "é", &"x".repeat(65), "a\n"] {
            assert!(matches!(refused(vec![named(name)]), ToolBoxError::BadName(_)), "{name}");
        }
        let mut large = named("large");
        large.def.description = "x".repeat(64 * 1024);
        assert!(matches!(refused(vec![large]), ToolBoxError::TooLarge { .. }));
        let mut heavy = many(20);
        for tool in &mut heavy {
            tool.def.description = "x".repeat(60_000);
        }
        assert_eq!(refused(heavy), ToolBoxError::TotalTooLarge);
        let mut odd = named("odd");
        odd.def.parameters = json!([]);
        assert_eq!(refused(vec![odd]), ToolBoxError::BadSchema("odd".into()));
    }
}
