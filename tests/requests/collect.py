#!/usr/bin/env python3
"""Prints the instructions of the public set self-instruct that want a text, one JSON line each.

    git clone https://github.com/yizhongw/self-instruct
    tests/requests/collect.py self-instruct > strangers.jsonl
    KONTEKST_TEST_REQUESTS=$PWD/strangers.jsonl cargo test --test it requests

The data is not part of this repository; its licence is Apache-2.0. An instruction stands before the input of its first
instance, with an empty line between them. Left out are those of more than 600 bytes, and those about prejudice, insults and
private data of persons."""
import json, re, sys

SOURCES = ["data/seed_tasks.jsonl", "human_eval/user_oriented_instructions.jsonl"]
LEFT_OUT = re.compile(r"stereotype|hate speech|toxic|offensive|bias|racis|SSN|address of this person", re.I)

for source in SOURCES:
    for line in open(f"{sys.argv[1]}/{source}", encoding="utf-8"):
        task = json.loads(line)
        parts = [task["instruction"].strip(), task["instances"][0]["input"].strip()]
        prompt = "\n\n".join(filter(None, parts))
        if len(prompt.encode()) <= 600 and not LEFT_OUT.search(prompt):
            print(json.dumps({"prompt": prompt, "source": f"self-instruct/{task['id']}"}, ensure_ascii=False))
