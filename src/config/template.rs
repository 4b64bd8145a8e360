//! The `config.toml` that first use writes, and the keys it may have.

/// All documented keys with their defaults; a test holds that it parses to them.
pub(super) const CONFIG: &str = r##"# kontekst configuration. Keys left out keep the defaults shown here.

bind = ":50051"                      # gRPC on TCP; `:PORT` is this machine only, "off" leaves the unix socket
endpoint = "http://127.0.0.1:8080"   # model server; used as it is when something healthy answers there
model_dir = "~/models"               # where GGUF files are
context_size = 4096                  # tokens the model can see
# gpu_layers = 0                     # layers on the GPU; llama-server decides when absent
# provider = "endpoint"              # "endpoint", "llama-server" or "builtin" pins one; tried in order when absent
# llama_server = "/usr/bin/llama-server"   # the binary; looked for when absent
# llama_args = []                    # added at the end of its command line
max_loaded_models = 1                # models that are loaded at a time; the one used least leaves first
keep_warm_minutes = 10               # how long one stays that nobody uses; 0 is for ever
kv_cache_mb = 2048                   # disk for what our servers have read of conversations; 0 keeps nothing
# endpoints = ["http://gpu1:8000", { url = "http://gpu2:8000", api_key_env = "GPU2_KEY" }]   # tried in order
# api_key_env = "OPENAI_API_KEY"     # environment variable of the daemon with the endpoint's key
# allow_remote = false               # lets `bind` be an address that other machines reach; needs a token
compaction = "summary"               # a conversation that outgrows the window: "summary" or "trim"
max_turns = 50                       # model calls in one run before it fails

[tools]
working_dir = ""                     # used when a client names no working directory
timeout_seconds = 120                # for one tool call

[tools.file]
max_size_bytes = 10485760            # largest file that is read or written

[tools.web]
timeout_seconds = 30                 # for one fetch
max_response_bytes = 5242880         # a longer body is cut, and the cut is marked
# allow_private = []                 # hosts that may be fetched although their address is private

[kaiak]                              # editors, through `kontekst rpc`
agent = "default"                    # who fixes what they report
max_sessions = 10                    # open at a time
approval_timeout_seconds = 300       # a question that nobody answers for so long means no
# providers = { openai = { endpoint = "https://api.openai.com", api_key_env = "OPENAI_API_KEY", model = "gpt-4" } }

[roz]                                # clients of roz.v1.AgentService, which run the tools themselves
agent = "default"                    # whose prompt and model they get
daemon_tools = []                    # tools of the daemon that join theirs; files need [tools] working_dir
events = "both"                      # "first" or "second" sends one generation's form only

[roz.models]                         # what the short names stand for; empty is the agent's own model
fast = ""
standard = ""
max = ""

[workers]                            # runs that a model starts, where an agent has `workers = true`
at_once = 2                          # of one run, at the same time
per_run = 8                          # of one run in all, theirs included
max_turns = 20                       # model calls of one worker
max_tokens = 16384                   # tokens that the model may write for it
max_seconds = 600                    # its time
"##;

/// Dotted paths of every key; a test holds that these are the fields of [`super::Config`].
pub(super) const KEYS: &[&str] = &[
    "bind",
    "endpoint",
    "model_dir",
    "context_size",
    "gpu_layers",
    "provider",
    "llama_server",
    "llama_args",
    "max_loaded_models",
    "keep_warm_minutes",
    "kv_cache_mb",
    "endpoints",
    "api_key_env",
    "allow_remote",
    "compaction",
    "max_turns",
    "tools.working_dir",
    "tools.timeout_seconds",
    "tools.file.max_size_bytes",
    "tools.web.timeout_seconds",
    "tools.web.max_response_bytes",
    "tools.web.allow_private",
    "kaiak.agent",
    "kaiak.max_sessions",
    "kaiak.approval_timeout_seconds",
    "kaiak.providers",
    "roz.agent",
    "roz.daemon_tools",
    "roz.events",
    "roz.models.fast",
    "roz.models.standard",
    "roz.models.max",
    "workers.at_once",
    "workers.per_run",
    "workers.max_turns",
    "workers.max_tokens",
    "workers.max_seconds",
];
