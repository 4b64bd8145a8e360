#!/usr/bin/env python3
"""Kills two llama-servers one at a time, with kontekst using both of them, directly and through a LiteLLM proxy.

    python3 -m venv v && v/bin/pip install 'litellm[proxy]'
    tests/llama/failover.py --kontekst target/debug/kontekst --llama-server llama-server \\
        --model tiny.gguf --litellm v/bin/litellm

Without --litellm only kontekst's own `endpoints` are shown. Ends with `ok`, or with what went wrong.
"""

import argparse
import json
import os
import pathlib
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

PATIENCE = 120
COOLDOWN = 1


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """A process that listens on a port."""

    def __init__(self, words, port, path, **kwargs):
        self.words, self.port, self.path, self.kwargs = words, port, path, kwargs
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            self.words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.kwargs
        )
        until = time.monotonic() + PATIENCE
        while True:
            try:
                with urllib.request.urlopen(self.url(self.path), timeout=5) as answer:
                    if answer.status == 200:
                        return self
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > until:
                sys.exit(f"{self.words[0]} does not answer at port {self.port}")
            time.sleep(0.1)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def url(self, path=""):
        return f"http://127.0.0.1:{self.port}{path}"


class Kontekst:
    def __init__(self, binary, directory, config, **variables):
        self.binary, self.work = binary, directory / "work"
        home = directory / "home"
        agent = home / "agents" / "default"
        agent.mkdir(parents=True)
        self.work.mkdir()
        (home / "config.toml").write_text('bind = "off"\nprovider = "endpoint"\n' + config)
        (agent / "agent.md").write_text("You are a test.\n")
        (agent / "config.toml").write_text('model = "tiny"\n[sampling]\nmax_tokens = 64\n')
        self.environment = {"KONTEKST_HOME": str(home), "PATH": os.environ["PATH"], **variables}

    def command(self, *words):
        return subprocess.run(
            [self.binary, *words], env=self.environment, cwd=self.work, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )

    def answers(self, when):
        done = self.command("run", "--new", "hello")
        if done.returncode != 0 or not done.stdout.strip():
            sys.exit(f"{when}: exit {done.returncode}\n{done.stderr}")
        print(f"{when}: {done.stdout.strip()!r}", flush=True)

    def refuses(self, when):
        done = self.command("run", "--new", "hello")
        if done.returncode == 0:
            sys.exit(f"{when}: an answer from nobody: {done.stdout!r}")
        print(f"{when}: {done.stderr.strip().splitlines()[0]}", flush=True)


def one_at_a_time(name, kontekst, servers, settle=0):
    first, second = servers
    try:
        kontekst.answers(f"{name}, both up")
        first.kill()
        for _ in range(3):
            kontekst.answers(f"{name}, the first killed")
        first.start()
        time.sleep(settle)  # a proxy does not ask again at once what has failed
        second.kill()
        for _ in range(3):
            kontekst.answers(f"{name}, the second killed")
        first.kill()
        kontekst.refuses(f"{name}, both killed")
        first.start()
        second.start()
        time.sleep(settle)
        kontekst.answers(f"{name}, both back")
    finally:
        kontekst.command("daemon", "stop")


def litellm_config(servers):
    deployments = [
        {"model_name": "tiny", "litellm_params": {
            "model": "openai/tiny", "api_base": server.url("/v1"), "api_key": "none"}}
        for server in servers
    ]
    router = {"num_retries": 3, "allowed_fails": 1, "cooldown_time": COOLDOWN}
    return json.dumps({"model_list": deployments, "router_settings": router})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kontekst", required=True, type=pathlib.Path)
    parser.add_argument("--llama-server", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--litellm")
    options = parser.parse_args()
    binary = options.kontekst.resolve()
    servers = []
    for _ in range(2):
        port = free_port()
        words = [options.llama_server, "--host", "127.0.0.1", "--port", str(port), "-m", options.model,
                 "--alias", "tiny", "--jinja", "-np", "1", "-c", "4096"]
        servers.append(Server(words, port, "/health"))
    proxy = None
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        try:
            for server in servers:
                server.start()
            (directory / "fleet").mkdir()
            urls = ", ".join(f'"{server.url()}"' for server in servers)
            fleet = Kontekst(binary, directory / "fleet", f"endpoints = [{urls}]\n")
            one_at_a_time("endpoints", fleet, servers)
            if options.litellm:
                config = directory / "litellm.json"
                config.write_text(litellm_config(servers))
                port = free_port()
                words = [options.litellm, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
                key = "sk-" + secrets.token_hex(32)  # without one it does not start
                environment = {**os.environ, "LITELLM_MASTER_KEY": key}
                proxy = Server(words, port, "/health/liveliness", cwd=directory, env=environment).start()
                (directory / "proxy").mkdir()
                where = f'endpoint = "{proxy.url()}"\napi_key_env = "PROXY_KEY"\n'
                behind = Kontekst(binary, directory / "proxy", where, PROXY_KEY=key)
                one_at_a_time("LiteLLM", behind, servers, settle=2 * COOLDOWN)
        finally:
            for server in [*servers, proxy]:
                if server:
                    server.kill()
    print("ok")


if __name__ == "__main__":
    main()
