#!/bin/sh
# foreign.sh CUTEGEN [VENV] - both OpenAI dialects, and Anthropic's, against a server written elsewhere: LiteLLM's
# proxy. Its replies are canned, once by itself ("canned") and once by the fault server behind it ("behind", which
# LiteLLM translates into each dialect; its own canned replies do not stream in the responses dialect). Installs it into
# VENV (default: a temporary one) from the package registry, so it needs a network and is not part of CI.
set -eu
cutegen=$(readlink -f "$1")
here=$(cd "$(dirname "$0")" && pwd)
venv=${2:-}
work=$(mktemp -d)
proxy=
mkfifo "$work/in"
python3 "$here/fault_server.py" "$work/behind.log" <"$work/in" >"$work/behind" &
behind=$!
exec 9>"$work/in"
while [ ! -s "$work/behind" ]; do sleep 0.1; done
trap 'kill $behind; [ -z "$proxy" ] || kill "$proxy" 2>/dev/null; rm -rf "$work"' EXIT
if [ -z "$venv" ]; then
    venv=$work/venv
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q 'litellm[proxy]'
fi
cat >"$work/config.yaml" <<YAML
model_list:
  - model_name: canned
    litellm_params:
      model: openai/canned
      api_key: not-used
      mock_response: "Hello from a canned model. It says: 1 + 1 = 2."
  - model_name: behind
    litellm_params:
      model: hosted_vllm/m
      api_key: not-used
      api_base: http://127.0.0.1:$(cat "$work/behind")/ok/foreign
litellm_settings:
  num_retries: 0
general_settings:
  master_key: sk-foreign-0123456789
YAML
port=${PORT:-48123}
export LITELLM_LOCAL_MODEL_COST_MAP=True LITELLM_TELEMETRY=False
(cd "$work" && exec "$venv/bin/litellm" --config config.yaml --host 127.0.0.1 --port "$port") >"$work/proxy.log" 2>&1 &
proxy=$!
n=0
until "$venv/bin/python" -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$port/health/liveliness', timeout=2)" 2>/dev/null; do
    n=$((n + 1))
    [ $n -lt 240 ] && kill -0 $proxy || { tail -20 "$work/proxy.log"; exit 1; }
    sleep 1
done
failed=0
check() { # NAME PATTERN EXIT COMMAND...
    name=$1 pattern=$2 want=$3
    shift 3
    code=0
    out=$("$@" 2>&1) || code=$?
    if [ $code = "$want" ] && printf %s "$out" | grep -q "$pattern"; then
        echo "ok      $name: $(printf %s "$out" | tr '\n' ' ' | cut -c1-160)"
    else
        echo "not ok  $name (exit $code): $out"
        failed=1
    fi
}
export OPENAI_API_KEY=sk-foreign-0123456789 ANTHROPIC_API_KEY=sk-foreign-0123456789
url=http://127.0.0.1:$port
for spec in openai:canned anthropic:canned; do
    check "$spec, streamed" "1 + 1 = 2" 0 "$cutegen" ask --model "$spec" --base-url "$url/v1" "How much is 1 + 1?"
    check "$spec, as JSON" '"output_tokens": *[0-9]' 0 "$cutegen" ask --model "$spec" --base-url "$url" --json "How much is 1 + 1?"
done
for spec in openai:behind responses:behind anthropic:behind; do
    check "$spec, streamed" "int x = 1;" 0 "$cutegen" ask --model "$spec" --base-url "$url/v1" "Hello?"
    check "$spec, as JSON" '"output_tokens": *20' 0 "$cutegen" ask --model "$spec" --base-url "$url" --json "Hello?"
done
check "a wrong key" "not accepted\|status 40" 3 env OPENAI_API_KEY=sk-wrong-99999999 "$cutegen" ask --model openai:canned --base-url "$url/v1" "x"
check "an unknown model" "status 40" 3 "$cutegen" ask --model openai:nobody --base-url "$url/v1" "x"
"$venv/bin/pip" list 2>/dev/null | grep -i '^litellm ' || true
[ $failed = 0 ] || [ -z "${KEEP_LOG:-}" ] || cp "$work/proxy.log" "$KEEP_LOG"
exit $failed
