"""Drives kontekst's OpenAI-compatible endpoints with OpenAI's own client: drive.py BASE_URL TOKEN."""

import json
import sys

from openai import (
    AuthenticationError,
    BadRequestError,
    InternalServerError,
    NotFoundError,
    OpenAI,
    RateLimitError,
)
from pydantic import BaseModel

client = OpenAI(base_url=sys.argv[1], api_key=sys.argv[2], max_retries=0)
weather = {
    "name": "get_weather",
    "description": "The weather in a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
ask = [{"role": "user", "content": "weather?"}]

assert [model.id for model in client.models.list()] == ["default"]

# Chat completions: whole, streamed, and with a tool call and its result.
whole = client.chat.completions.create(model="default", messages=[{"role": "user", "content": "hi"}])
assert whole.choices[0].message.content == "Hello world", whole
assert whole.usage.total_tokens == 15, whole.usage
pieces = client.chat.completions.create(
    model="default", messages=[{"role": "user", "content": "hi"}], stream=True, stream_options={"include_usage": True}
)
pieces = list(pieces)
assert "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices) == "Hello world"
assert pieces[-1].usage.total_tokens == 15
tools = [{"type": "function", "function": weather}]
called = client.chat.completions.create(model="default", messages=ask, tools=tools).choices[0]
assert called.finish_reason == "tool_calls"
call = called.message.tool_calls[0]
assert json.loads(call.function.arguments) == {"city": "Bern"}
result = {"role": "tool", "tool_call_id": call.id, "content": "sun"}
after = client.chat.completions.create(model="default", messages=[*ask, called.message, result], tools=tools)
assert after.choices[0].message.content == "Hello world"

# The same with the responses API.
response = client.responses.create(model="default", input="hi")
assert response.output_text == "Hello world", response
with client.responses.stream(model="default", input="hi") as stream:
    assert "".join(event.delta for event in stream if event.type == "response.output_text.delta") == "Hello world"
    assert stream.get_final_response().output_text == "Hello world"
tools = [{"type": "function", **weather}]
called = client.responses.create(model="default", input=ask, tools=tools).output[0]
assert called.type == "function_call" and json.loads(called.arguments) == {"city": "Bern"}
result = {"type": "function_call_output", "call_id": called.call_id, "output": "sun"}
after = client.responses.create(model="default", input=[*ask, called.model_dump(), result], tools=tools)
assert after.output_text == "Hello world"



class Person(BaseModel):
    name: str
    age: int


# Answers in a format, with the client's own parsing.
who = [{"role": "user", "content": "Who is it?"}]
ada = Person(name="Ada", age=36)
parsed = client.chat.completions.parse(model="default", messages=who, response_format=Person)
assert parsed.choices[0].message.parsed == ada, parsed
with client.chat.completions.stream(model="default", messages=who, response_format=Person) as stream:
    assert stream.get_final_completion().choices[0].message.parsed == ada
assert client.responses.parse(model="default", input=who, text_format=Person).output_parsed == ada
loose = client.chat.completions.create(model="default", messages=who, response_format={"type": "json_object"})
assert Person.model_validate_json(loose.choices[0].message.content) == ada

# Forced calls, and the other settings.
tools = [{"type": "function", "function": weather}]
for choice in ["required", {"type": "function", "function": {"name": "get_weather"}}]:
    called = client.chat.completions.create(model="default", messages=ask, tools=tools, tool_choice=choice).choices[0]
    assert json.loads(called.message.tool_calls[0].function.arguments) == {"city": "Bern"}, called
settings = {"stop": ["END"], "seed": 1, "presence_penalty": 0.1, "frequency_penalty": 0.1, "logit_bias": {"1": 2}}
client.chat.completions.create(model="default", messages=who, n=1, reasoning_effort="low", **settings)
thought = client.responses.create(model="default", input="think").output
assert [item.type for item in thought] == ["reasoning", "message"], thought
assert thought[0].content[0].text == "Hm.", thought

# Errors are raised as the client's own exceptions, also where the answer is streamed.
for prompt, error in [("!400", BadRequestError), ("!401", AuthenticationError), ("!429", RateLimitError), ("!500", InternalServerError)]:
    for stream in [False, True]:
        try:
            client.chat.completions.create(model="default", messages=[{"role": "user", "content": prompt}], stream=stream)
        except error as raised:
            assert raised.response.headers["retry-after"] == "7", raised.response.headers
            continue
        raise AssertionError(prompt)
for wrong, error, param in [
    ({"model": "gpt-9"}, NotFoundError, "model"),
    ({"model": "default", "n": 2}, BadRequestError, "n"),
    ({"model": "default", "logprobs": True}, BadRequestError, "logprobs"),
]:
    try:
        client.chat.completions.create(messages=[{"role": "user", "content": "hi"}], **wrong)
    except error as raised:
        assert raised.param == param, raised
        continue
    raise AssertionError(wrong)
assert OpenAI(base_url=sys.argv[1], api_key="not-needed", max_retries=0).models.list().data, "any key will do"

print("all good")
