#!/usr/bin/env bash
# Has an agent of another maker work with kontekst as its model: drive.sh AGENT BASE_URL DIRECTORY.
#
# AGENT is codex, opencode or pi, and $AGENTS/AGENT/node_modules has it. For `make a file`, the model must run
# `echo made > made.txt` with the shell of the agent, and then answer `Hello world`. The key that is sent is none of kontekst's.
set -euo pipefail
agent=$1 url=$2 dir=$3
bin=$AGENTS/$agent/node_modules/.bin
export HOME=$dir/home CODEX_HOME=$dir/home NO_COLOR=1 OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_AUTOUPDATE=1
mkdir -p "$HOME/.pi/agent" "$dir/work"
cd "$dir/work"

cat >"$HOME/config.toml" <<END
model = "default"
model_provider = "kontekst"
[model_providers.kontekst]
name = "kontekst"
base_url = "$url"
wire_api = "responses"
experimental_bearer_token = "any"
END
models='{"default": {"name": "default"}}'
cat >opencode.json <<END
{"provider": {"kontekst": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "$url", "apiKey": "any"}, "models": $models}},
 "model": "kontekst/default", "small_model": "kontekst/default", "autoupdate": false, "share": "disabled"}
END
cat >"$HOME/.pi/agent/models.json" <<END
{"providers": {"kontekst": {"baseUrl": "$url", "api": "openai-completions", "apiKey": "any", "models": [{"id": "default"}]}}}
END

case $agent in
  codex) ask=("$bin/codex" exec --skip-git-repo-check --sandbox danger-full-access) ;;
  opencode) ask=("$bin/opencode" run --auto) ;;
  pi) ask=("$bin/pi" --provider kontekst --model default -p) ;;
esac
answer=$(timeout 120 "${ask[@]}" "make a file" </dev/null 2>&1) || { echo "$answer"; exit 1; }
[[ $(cat made.txt) == made && $answer == *"Hello world"* ]] || { echo "$answer"; exit 1; }
echo "all good"
