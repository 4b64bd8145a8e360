//! The `config.toml` that is written on first use, and the keys that it may have.

/// All keys with their documentation and defaults. A test checks that the file parses to the defaults.
pub(super) const CONFIG: &str = r##"# kontekst configuration. Keys left out keep the defaults shown here. A default after `#` is only an example: without
# that key, the model, its server and this machine decide.

bind = ":50051"                      # gRPC on TCP; `:PORT` is this machine only, "off" leaves the unix socket
# endpoint = "http://127.0.0.1:8080" # model server; looked for on this machine when absent
model_dir = "~/models"               # where GGUF files are
# context_size = 4096                # the largest context window in tokens; as the model and its server have it when absent
# gpu_layers = 0                     # layers on the GPU; llama-server decides when absent
# provider = "endpoint"              # "endpoint", "llama-server" or "builtin" uses only that one; tried in order when absent
# llama_server = "/usr/bin/llama-server"   # the binary; looked for when absent
# llama_args = []                    # added at the end of its command line
max_loaded_models = 1                # models that are loaded at a time; the least recently used is unloaded
keep_warm_minutes = 10               # how long an unused model stays loaded; 0 never unloads it
kv_cache_mb = 2048                   # disk for the prompt caches of model servers that the daemon starts; 0 keeps none
speculation = true                   # guess ahead where an answer repeats what stands before it; the answer is the same
# endpoints = ["http://gpu1:8000", { url = "http://gpu2:8000", api_key_env = "GPU2_KEY" }]   # tried in order
# api_key_env = "OPENAI_API_KEY"     # environment variable of the daemon that has the key of `endpoint`
# allow_remote = false               # allows an address in `bind` that other machines can reach; needs a token
compaction = "summary"               # when a conversation no longer fits the window: "summary" or "trim"
max_turns = 50                       # maximum number of model calls in one run
# dir = { "~/src/app" = { checks = ["cargo test -q"] } }   # checks of runs in a directory, see docs/commands.md

[tools]
working_dir = ""                     # for clients that name none; "" gives them no file tools
timeout_seconds = 120                # for one tool call

[tools.file]
max_size_bytes = 10485760            # largest file that is read or written

[tools.web]
timeout_seconds = 30                 # for one fetch
max_response_bytes = 5242880         # a longer page is cut, and the cut is marked
# allow_private = []                 # hosts that may be fetched although their addresses are private

[commands]                           # command lines that a model runs, see docs/commands.md
approval = "ask"                     # or "sandboxed": those without network run unasked in the whole sandbox; "never": none
# allow = ["cargo test", "git diff"] # commands that run without a question, by their first words
# environment = ["DATABASE_URL"]    # more environment variables for them; PATH and those of toolchains are there
sandbox = "auto"                     # "require" runs nothing where a layer is missing; "off" is for containers
# hidden = ["~/letters"]             # more paths that commands cannot read, besides keys and passwords
network = false                      # true lets commands reach the network
timeout_seconds = 120                # for one command line
memory_mb = 4096                     # of each process; 0 is no limit
processes = 512                      # of one command line; 0 is no limit

[http]
listen = "off"                       # HTTP, SSE and the web page, for example "127.0.0.1:8787"
approval = "auto"                    # tool calls over HTTP: "auto", "read-only", or "ask" (kontekst approvals)
commands = false                     # offer run_command over HTTP; `approval` decides about the calls
cors = true                          # send CORS headers
# origins = []                       # origins of pages that need no token, for example "http://localhost:3000"
# hosts = []                         # more host names that a Host header may have

[kaiak]                              # editors, through `kontekst rpc`
agent = "default"                    # the agent that makes the fixes
max_sessions = 10                    # maximum number of open sessions
approval_timeout_seconds = 300       # after this time, an unanswered question counts as denied
commands = false                     # offer run_command; only what needs no question runs
# providers = { openai = { endpoint = "https://api.openai.com", api_key_env = "OPENAI_API_KEY", model = "gpt-4" } }

[roz]                                # clients of roz.v1.AgentService, which run the tools themselves
agent = "default"                    # the agent whose prompt and model they get
daemon_tools = []                    # tools of the daemon in addition to theirs; file tools need [tools] working_dir
events = "both"                      # "first" or "second" sends one generation's form only

[roz.models]                         # models behind the short names; empty is the agent's own model
fast = ""
standard = ""
max = ""

[workers]                            # limits of runs that a model starts, if its agent has `workers = true`
at_once = 2                          # workers of one run that work at the same time
per_run = 8                          # workers of one run in all, including those that workers start
max_turns = 20                       # maximum number of model calls of one worker
max_tokens = 16384                   # maximum number of tokens that the model writes for one worker
max_seconds = 600                    # maximum duration of one worker

[sessions]
active = "global"                    # `kontekst sessions use` is for all directories; "directory": for its own

[undo]                               # what `kontekst undo` can take back
keep_days = 30                       # 0 keeps nothing
max_bytes = 1073741824               # disk for it; the oldest runs go first
max_file_bytes = 10485760            # a larger file is changed without it, and the preview says so

[approvals]
park = "headless"                    # a run that needs an approval without a terminal waits on disk; "never": it is denied

[daemon]
idle_exit_minutes = 60               # a daemon that a command started exits after this time without a client; 0 never does
"##;

/// The SHA-256 of every text that [`CONFIG`] has had, the newest last. A test checks that this is the present one.
pub(super) const WRITTEN: &[&str] = &[
    "bb651ca8efcb6ec9f1236ba0a55cff6d21ee62b7017e5e6664ab985f62d93ee4",
    "37a2b1c958df402f1590b42d9c5fa5d8020662772105a9d086541f6aee86f7fe",
    "0bbe9e21b902c71727ef5941ffa7dcb447f7027df0fa6f52ea0541ee71abb586",
    "5be8dcde9a5ec474205711f60c92d90d33372dfcb0c54ab0a111ee21855e683b",
    "c38065d15f78138cf4cd7f77e16951630ee79e4b66f6c6db388cea303fa27c67",
    "1f61d2d44597488513af00980e5eb58c71da4b47d0d040302d3db7fb92eb5139",
    "d0f52fb04db99ee6143b502a9a412807da1a269cf6b402c87170390d3b9d187e",
    "c77e8135d6a22283894fceddafab8efea0a5b08e4ac4ff7ab1404044ffc1a08b",
    "17a585ef491e80204d43332fd08320d994b285b414c0d0911238d04341e93ae3",
    "d61f612c17f010aef857eee06b43c02905752f43b9903d8cc3e71cb382575dac",
    "bf16227275b9209991065e923c2cf618c7841a0c73336c45e576a5f583d305b7",
    "8387a65d59eb57bf24b45dd9cf3426bd50c36f840d6ee75be4464c7d0dbbfe86",
    "933a2665f520773d28aab3fbfcc00f06a0c7750cd4a6388d8715a34ef22e501e",
    "603a00652213d997dc75fee848d0a711fbdfafbaf78aa7859b240ecd38e5557a",
    "dd1ccc4f98bc21e68ec3486e18528d63aa28db050dd1766b5a02558bca3a3fcb",
    "cea586aac8cdbf082d393a4c52bf5fc293f5859aa38b707ee8e7615eb1fffb34",
    "be4c53d670c5503230434deadc9652bad6c0f010c256f0b7f836ad1dd2441683",
    "fa4bdfb0b88247c4e6d7ef61a51538df537ffa13ef864c69c9a81014389a692f",
    "fdfbd740d36362ae19d361d002bfe29d7b0c4ad175c75974824b5f168aaf8aa2",
    "10b17b1b0ec6dd9bc5cffb66421b7252f1a45b8597e46ece23f7a656dab62bcf",
    "d44f85d2bb5e3ddb4380e18c015a36bf7051586dafe749d1a8d16cea1b255e28",
    "1d1f4e497448953a37d8043109443b488e906bcc504fd6c6ecd1d78a3c906af2",
    "13623dcf17d1d01951f670e9c8ea2f6964c331a02d8eb29e6f747cd338301e30",
    "c18a499cf2c5ef3450182a04379557c138552e0a99135d53b24b4272e82f0219",
    "fd517c63f549595a24fb0a3e51257ffce58a55900a2d0c5112533d1201f09f11",
    "8d09bdd04875e66c1563a1d1640245f40404ea7f9503583f0bc9c47688f2d9b2",
    "ca0eea5b2127f9c6dcf0e1c6c2d70045985e355ca8103f0582b4f6bdf0894e2c",
    "2fea69f7d54fa6baef37c6031b9b4b3e4998a49ed6d2b81c102d30b78a9df064",
    "432e6be36b915404cf0250c19b60c868ecc79b48dd888dfc349404b43f4315fd",
    "88c38574325c85bdd3692fe203431beef8eb171f148e124ffedf990e0098792b",
    "423e3c25df8062dbeb8824eb9961a584dfdc4502ae4be93d32014a28164df813",
];

/// The dotted paths of all keys. A test checks that they are the fields of [`super::Config`].
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
    "speculation",
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
    "commands.approval",
    "commands.allow",
    "commands.environment",
    "commands.sandbox",
    "commands.hidden",
    "commands.network",
    "commands.timeout_seconds",
    "commands.memory_mb",
    "commands.processes",
    "http.listen",
    "http.approval",
    "http.commands",
    "http.cors",
    "http.origins",
    "http.hosts",
    "kaiak.agent",
    "kaiak.max_sessions",
    "kaiak.approval_timeout_seconds",
    "kaiak.commands",
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
    "sessions.active",
    "undo.keep_days",
    "undo.max_bytes",
    "undo.max_file_bytes",
    "approvals.park",
    "daemon.idle_exit_minutes",
    "dir",
];
