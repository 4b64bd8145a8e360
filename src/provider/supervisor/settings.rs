//! What a supervised server is started with.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{super::openai::KvCacheDir, binary::Options};

/// What the configuration and the environment say about servers of our own.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `llama_server` of the configuration.
    pub configured_binary: Option<PathBuf>,
    /// `$KONTEKST_LLAMA_SERVER`.
    pub env_binary: Option<PathBuf>,
    /// `$PATH`.
    pub search_path: Option<OsString>,
    /// Environment variables that configure a llama-server of the user's own. A child does not inherit them.
    pub llama_variables: Vec<OsString>,
    pub model_dir: PathBuf,
    /// Tokens in the window of one request.
    pub context_size: u32,
    /// Absent leaves it to llama-server: its own default fits the layers to the GPU's memory, and 0
    /// would forbid the GPU.
    pub gpu_layers: Option<u32>,
    /// Goes to the end of the command line, where it wins.
    pub extra_args: Vec<String>,
    /// Preferred when it is a loopback address with a free port.
    pub endpoint: String,
    /// The executable that takes the role [`super::exec::ROLE`]; without one, the child may outlive a
    /// killed daemon by the time it needs to see its stdin close.
    pub launcher: Option<PathBuf>,
    /// Children at a time; 0 counts as 1.
    pub max_loaded: usize,
    /// How long a child stays that nobody uses; absent is for ever.
    pub keep_warm: Option<Duration>,
    /// Where the caches of conversations are kept.
    pub kv_cache: Option<Arc<KvCacheDir>>,
    /// Where children are noted for a daemon that comes after one that was killed.
    pub run_dir: Option<PathBuf>,
}

/// The command line of llama-server. Source of `--host` to `--reasoning-format`: the first kontekst.
pub fn arguments(
    settings: &Settings,
    options: &Options,
    (host, port): (&str, u16),
    model: &Path,
    alias: &str,
) -> Vec<OsString> {
    let mut line = CommandLine { options, arguments: Vec::new() };
    line.option("--host", host);
    line.option("--port", &port.to_string());
    line.option("--ctx-size", &settings.context_size.to_string());
    if let Some(layers) = settings.gpu_layers {
        line.option("--n-gpu-layers", &layers.to_string());
    }
    line.option("--reasoning-format", "deepseek");
    line.arguments.extend(["-m".into(), model.into()]);
    line.option("--alias", alias);
    line.switch("--jinja"); // the default now, but tools fail without it in older builds
    // One slot, so that `context_size` is what one request has: several would share it, and fail
    // together when it is full. The cache in RAM keeps every session's prefix all the same.
    line.option("-np", "1");
    // A cancel takes effect between two batches: on a CPU the default of 2048 tokens takes 15 seconds
    // or more. Reading speed is the same there from 64 on.
    let batch = if settings.gpu_layers == Some(0) || !has_gpu() { "256" } else { "512" };
    line.option("-b", batch);
    line.option("-ub", batch);
    line.first_known(&["--no-ui", "--no-webui"]);
    if options.has("--cors-origins") {
        line.option("--cors-origins", "localhost"); // by default any web page may ask
    }
    if options.has("--slot-prompt-similarity") {
        // The slot's own prompt is kept only for one that is mostly the same; for any other, llama-server looks
        // into its cache in RAM. By default a tenth is enough, and with one slot that is never looked into: the
        // system text and the tools are as much. Putting a prompt there costs less than reading a fifth of it.
        line.option("--slot-prompt-similarity", "0.8");
    }
    line.first_known(&["--offline"]);
    if let Some(kv) = &settings.kv_cache {
        line.path("--slot-save-path", kv.dir());
    }
    line.arguments.extend(settings.extra_args.iter().map(OsString::from));
    line.arguments
}

/// The kernel knows a device that computes. A wrong guess costs a little speed, or a slower cancel.
fn has_gpu() -> bool {
    const DEVICES: [&str; 3] = ["/dev/nvidiactl", "/dev/kfd", "/dev/dri/renderD128"];
    cfg!(target_os = "macos") || DEVICES.iter().any(|device| Path::new(device).exists())
}

struct CommandLine<'a> {
    options: &'a Options,
    arguments: Vec<OsString>,
}

impl CommandLine<'_> {
    fn option(&mut self, name: &str, value: &str) {
        if self.options.probably_has(name) {
            self.arguments.extend([name.into(), value.into()]);
        }
    }

    fn path(&mut self, name: &str, value: &Path) {
        if self.options.probably_has(name) {
            self.arguments.extend([name.into(), value.into()]);
        }
    }

    fn switch(&mut self, name: &str) {
        if self.options.probably_has(name) {
            self.arguments.push(name.into());
        }
    }

    fn first_known(&mut self, names: &[&str]) {
        self.arguments.extend(names.iter().find(|name| self.options.has(name)).map(OsString::from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_the_seeds_and_only_what_was_asked() {
        let settings = Settings {
            context_size: 8192,
            extra_args: vec!["-np".into(), "4".into()],
            ..Settings::default()
        };
        let line = |settings: &Settings| {
            let line = arguments(
                settings,
                &Options::default(),
                ("127.0.0.1", 8080),
                Path::new("/m/a b.gguf"),
                "a b",
            );
            line.iter().map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let start = ["--host", "127.0.0.1", "--port", "8080", "--ctx-size", "8192", "--reasoning-format"];
        assert_eq!(line(&settings)[..7], start);
        assert_eq!(line(&settings)[8..13], ["-m", "/m/a b.gguf", "--alias", "a b", "--jinja"]);
        assert!(line(&settings).ends_with(&["-np".to_owned(), "4".to_owned()]));
        let cpu = Settings { gpu_layers: Some(0), ..settings };
        assert_eq!(line(&cpu)[6..8], ["--n-gpu-layers", "0"]);
    }

    #[test]
    fn only_a_prompt_that_is_mostly_the_same_keeps_the_slot() {
        let line = |help: &str| {
            let options = Options::listed_in(help);
            arguments(&Settings::default(), &options, ("127.0.0.1", 1), Path::new("/m/a.gguf"), "a")
        };
        let known = line("-sps,  --slot-prompt-similarity SIMILARITY   how much of the prompt must match\n");
        assert!(known.windows(2).any(|pair| pair == ["--slot-prompt-similarity", "0.8"]), "{known:?}");
        assert!(!line("").contains(&"--slot-prompt-similarity".into()));
    }
}
