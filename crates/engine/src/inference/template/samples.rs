//! Chat templates as model makers write them, for tests.

/// The main parts of Qwen3's: tools in the system text, calls in tags, thoughts only in the last exchange.
pub const QWEN: &str = r##"{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\n\n' }}
    {%- endif %}
    {{- "# Tools\n\n<tools>" }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\n</tools><|im_end|>\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and reasoning_content %}
            {{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + message.content.lstrip('\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + message.content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and message.content) or (not loop.first) %}
                    {{- '\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\n{"name": "' + tool_call.name + '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' + message.content + '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}"##;

/// Like Gemma's: no system text, no tools, and speakers that must alternate.
pub const GEMMA: &str = "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not \
    supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\
    {{ raise_exception('Conversation roles must alternate') }}{% endif %}{% if message['role'] == 'assistant' %}\
    {% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\\n' + \
    message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}\
    {% endif %}";

/// Like that of the small built-in model: it shows the last exchange only, and no definitions of tools.
pub const SMALL: &str = "{%- set last = namespace(user=0) -%}{%- for message in messages -%}{%- if message.role == 'user' -%}\
    {%- set last.user = loop.index0 -%}{%- endif -%}{%- endfor -%}{%- for message in messages -%}\
    {%- if loop.index0 >= last.user -%}{{- '<|' ~ message.role ~ '|>' -}}{%- if message.tool_calls -%}\
    {{- '<tool_call>' ~ message.tool_calls[0].function.arguments ~ '</tool_call>' -}}{%- else -%}\
    {{- message.content[:40] -}}{%- endif -%}{{- '<|end|>' -}}{%- endif -%}{%- endfor -%}{{- '<|assistant|>' -}}";

/// Takes arguments only as objects, and begins the thought of the answer.
pub const OBJECTS: &str = "{%- for message in messages -%}{{- '<' + message.role + '>' + message.content -}}\
    {%- for call in message.tool_calls -%}{%- for key, value in call.function.arguments.items() -%}\
    {{- '[' + key + '=' + value | tojson + ']' -}}{%- endfor -%}{%- endfor -%}{%- endfor -%}\
    {%- if tools -%}{{- tools | tojson -}}{%- endif -%}{{- '<assistant><think>\\n' -}}";
