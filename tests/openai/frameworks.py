"""Drives kontekst's OpenAI-compatible endpoints with LangChain and with `llm`: frameworks.py BASE_URL TOKEN DIRECTORY."""

import json
import os
import subprocess
import sys

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

base_url, token, directory = sys.argv[1:]
model = ChatOpenAI(base_url=base_url, api_key=token, model="default", max_retries=0)


class Person(BaseModel):
    """A person."""

    name: str
    age: int


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return "sun"


# LangChain: all methods of structured output, stop sequences and forced calls.
for method in ["json_schema", "json_mode", "function_calling"]:
    answer = model.with_structured_output(Person, method=method).invoke("Who is it?")
    assert answer == Person(name="Ada", age=36), (method, answer)
assert model.bind(stop=["END"]).invoke("hi").content == "Hello world"
for choice in ["any", "get_weather"]:
    called = model.bind_tools([get_weather], tool_choice=choice).invoke("weather?")
    assert called.tool_calls[0]["args"] == {"city": "Bern"}, called

# llm: a schema, stop sequences and a JSON object.
with open(os.path.join(directory, "extra-openai-models.yaml"), "w") as file:
    options = {"api_base": base_url, "api_key_name": "kontekst", "supports_schema": True}
    json.dump([{"model_id": "kontekst", "model_name": "default", **options}], file)


def llm(*words):
    environment = {**os.environ, "LLM_USER_PATH": directory}
    command = [sys.executable, "-m", "llm", "-m", "kontekst", "--key", token, "--no-stream", *words]
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


assert json.loads(llm("--schema", "name, age int", "Who is it?")) == {"name": "Ada", "age": 36}
assert json.loads(llm("-o", "json_object", "1", "Who is it? Answer in JSON.")) == {"name": "Ada", "age": 36}
assert llm("-o", "stop", "END", "hi").strip() == "Hello world"

print("all good")
