"""Drives kontekst's OpenAI-compatible endpoints with OpenAI's own client: drive.py BASE_URL TOKEN."""

import json
import sys

from openai import BadRequestError, NotFoundError, OpenAI

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

# Errors are raised as the client's own exceptions.
for wrong, error in [({"model": "gpt-9"}, NotFoundError), ({"model": "default", "n": 2}, BadRequestError)]:
    try:
        client.chat.completions.create(messages=[{"role": "user", "content": "hi"}], **wrong)
    except error:
        continue
    raise AssertionError(wrong)

print("all good")
