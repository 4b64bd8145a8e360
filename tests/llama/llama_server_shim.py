#!/usr/bin/env python3
"""The `llama-server` command line in front of xllamacpp, which carries llama.cpp's own HTTP server in a wheel.

So a machine without a compiled llama.cpp can run the tests that need the real server. It takes the flags
that kontekst uses, ends on SIGTERM, and, when LLAMA_SERVER_ROUTER_PORT is set, at the end of its stdin.
There is no router mode. An unknown flag is an error, as in the original.
"""

import os
import signal
import sys
import threading

import xllamacpp


def switch(word):
    return word.lower() in ("1", "on", "true", "yes")


def words(text):
    return text.split(",")


def speculation(text):
    kinds = xllamacpp.common_speculative_type
    return [kinds["COMMON_SPECULATIVE_TYPE_" + word.upper().replace("-", "_")] for word in words(text)]


def set_attribute(params, path, value):
    """Sets an attribute of CommonParams, or of one of its parts: `cpuparams.n_threads`."""
    *parts, name = path.split(".")
    for part in parts:
        params = getattr(params, part)
    setattr(params, name, value)


# The names of an option, the attribute of CommonParams that it sets, and how its value is parsed.
VALUES = {
    ("-a", "--alias"): ("model_alias", lambda text: set(words(text))),
    ("-b", "--batch-size"): ("n_batch", int),
    ("-c", "--ctx-size"): ("n_ctx", int),
    ("-cram", "--cache-ram"): ("cache_ram_mib", int),
    ("-n", "--predict", "--n-predict"): ("n_predict", int),
    ("-ngl", "--gpu-layers", "--n-gpu-layers"): ("n_gpu_layers", int),
    ("-np", "--parallel"): ("n_parallel", int),
    ("-t", "--threads"): ("cpuparams.n_threads", int),
    ("-to", "--timeout"): ("timeout_read", int),
    ("-ub", "--ubatch-size"): ("n_ubatch", int),
    ("--api-key",): ("api_keys", words),
    ("--chat-template",): ("chat_template", str),
    ("--cors-origins",): ("cors_origins", str),
    ("--host",): ("hostnames", words),
    ("--kv-unified-per-slot",): ("kv_unified_per_slot", int),
    ("--port",): ("port", int),
    ("--reasoning-format",): (None, str),
    ("--slot-save-path",): ("slot_save_path", lambda path: os.path.join(path, "")),
    ("--spec-ngram-simple-size-n",): ("speculative.ngram_simple.size_n", int),
    ("--spec-type",): ("speculative.types", speculation),
    ("--sse-ping-interval",): ("sse_ping_interval", int),
}

# The names of an option without a value, the attribute, and the value that it sets.
SWITCHES = {
    ("-kvu", "--kv-unified"): ("kv_unified", True),
    ("--jinja",): ("use_jinja", True),
    ("--metrics",): ("endpoint_metrics", True),
    ("--offline",): ("offline", True),
    ("--slots",): ("endpoint_slots", True),
    ("-no-kvu", "--no-kv-unified"): ("kv_unified", False),
    ("--no-context-shift",): ("ctx_shift", False),
    ("--no-slots",): ("endpoint_slots", False),
    ("--no-ui", "--no-webui"): ("ui", False),
    ("--no-warmup",): ("warmup", False),
}

MODEL = ("-m", "--model")


def by_name(table):
    return {name: entry for names, entry in table.items() for name in names}


def parse(arguments):
    """Parses a command line into CommonParams. Exits with 1 and the message of llama-server if it is invalid."""
    params = xllamacpp.CommonParams()
    params.port = 8080
    values, switches = by_name(VALUES), by_name(SWITCHES)
    if os.environ.get("LLAMA_API_KEY"):
        params.api_keys = words(os.environ["LLAMA_API_KEY"])
    chosen_slots = False
    rest = iter(arguments)
    for flag in rest:
        if flag in switches:
            attribute, value = switches[flag]
            setattr(params, attribute, value)
            continue
        if flag not in values and flag not in MODEL:
            sys.exit(f"error: invalid argument: {flag}")
        text = next(rest, None)
        if text is None:
            sys.exit(f"error while handling argument \"{flag}\": expected value for argument")
        if flag in MODEL:
            params.model.path = text
            continue
        attribute, read = values[flag]
        chosen_slots |= attribute == "n_parallel"
        if attribute:
            set_attribute(params, attribute, read(text))
    if not chosen_slots:
        params.n_parallel, params.kv_unified = 4, True  # what `-np auto` means
    return params


def leave_with(code):
    os._exit(code)  # the server's threads do not end by themselves


def leave_at_end_of_stdin():
    sys.stdin.buffer.read()
    leave_with(1)


def main(arguments):
    if "--version" in arguments:
        print("version: xllamacpp", getattr(xllamacpp, "__version__", "?"), file=sys.stderr)
        return
    if "-h" in arguments or "--help" in arguments:
        for names in [MODEL, *VALUES, *SWITCHES]:
            print(", ".join(names))
        return
    params = parse(arguments)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: leave_with(0))
    if os.environ.get("LLAMA_SERVER_ROUTER_PORT"):
        threading.Thread(target=leave_at_end_of_stdin, daemon=True).start()
    try:
        server = xllamacpp.Server(params)  # answers 503 while it loads, and returns when it has
    except Exception as error:
        print("E", error, file=sys.stderr, flush=True)
        leave_with(1)
    print("listening on", server.listening_address, file=sys.stderr, flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
