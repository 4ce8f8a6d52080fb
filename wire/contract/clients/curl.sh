#!/usr/bin/env bash
# Tests the protocol with curl and a server of its own. Each check prints one line.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
dir=$(mktemp -d)
pid=
trap '[ -n "$pid" ] && kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; rm -rf "$dir"' EXIT
passed=0 failed=0

port=$(cd "$here" && python3 -c 'import harness; print(harness.free_port())')
base=http://127.0.0.1:$port
"$root/bin/parley" serve --data "$dir/data" --listen "127.0.0.1:$port" --demo >"$dir/log" 2>&1 </dev/null &
pid=$!
up=0
for _ in $(seq 1200); do
  if curl -s -m 2 -o /dev/null "$base/api/v1/server_settings"; then up=1; break; fi
  kill -0 "$pid" 2>/dev/null || break
  sleep 0.05
done
[ "$up" = 1 ] || { echo "FAIL the server did not answer: $(tail -c 400 "$dir/log")"; echo "0 passed, 1 failed"; exit 1; }

# call METHOD PATH CURL-ARGUMENTS sets $status, $body and $headers. It records the answer, under the method $as if set.
call() {
  local method=$1 path=$2
  shift 2
  local how=(-X "$method")
  [ "$method" = HEAD ] && how=(-I)
  status=$(curl -s -m 20 "${how[@]}" -D "$dir/h" -o "$dir/b" -w '%{http_code}' "$base$path" "$@")
  [ "$method" = HEAD ] && : >"$dir/b"
  body=$(cat "$dir/b")
  headers=$(tr -d '\r' <"$dir/h")
  if [ -n "${PARLEY_RECORDING:-}" ] && [ -s "$dir/b" ] && [[ $path == /api/v1/* ]]; then
    python3 - "${as:-$method}" "$path" "$status" "$dir/b" >>"$PARLEY_RECORDING/curl.jsonl" <<'PY'
import json, sys
method, path, status, name = sys.argv[1:]
raw = open(name, encoding="utf-8").read()
try: body = json.loads(raw)
except ValueError: body = raw[:200]
print(json.dumps({"method": method, "path": path, "status": int(status), "body": body}))
PY
  fi
}

pass() { passed=$((passed + 1)); echo "ok   $1"; }
fail() { failed=$((failed + 1)); echo "FAIL $1: $2"; }
# is NAME WANT GOT
is() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got $(head -c 400 <<<"$3"), want $2"; fi; }
# says NAME REGEX TEXT: TEXT matches REGEX
says() { if grep -qiE -- "$2" <<<"$3"; then pass "$1"; else fail "$1" "no /$2/ in $(head -c 600 <<<"$3" | tr '\n' ' ')"; fi; }
# value EXPRESSION prints a Python expression, in which `a` is the body
value() {
  python3 -c '
import json, sys
a = None
try:
    a = json.load(open(sys.argv[1]))
    print(eval(sys.argv[2]))
except Exception as broken:
    print(f"{type(broken).__name__} {broken} in {json.dumps(a)[:200]}")' "$dir/b" "$1" 2>&1
}
header() { sed -n "s/^$1: //Ip" <<<"$headers" | tail -n 1; }
# refusal NAME STATUS CODE MSG
refusal() {
  is "$1" "$2 error $3 $4" "$status $(value '"%s %s %s" % (a["result"], a.get("code"), a["msg"])')"
}

call GET /api/v1/server_settings
is "server_settings without login" 200 "$status"
is "answers are application/json" application/json "$(header content-type)"
is "answers end with one newline" '7d0a' "$(tail -c 2 "$dir/b" | od -An -tx1 | tr -d ' \n')"
says "answers are not cached" '(no-cache|no-store)' "$(header cache-control)"
is "CORS: any origin" '*' "$(header access-control-allow-origin)"
says "CORS: Authorization is allowed" 'Authorization' "$(header access-control-allow-headers)"
says "CORS: methods" 'GET.*PATCH|PATCH.*GET' "$(header access-control-allow-methods)"
says "answers vary by language" 'Accept-Language' "$(header vary)"
is "feature level" 494 "$(value 'a["zulip_feature_level"]')"

call GET /api/v1/dev_list_users
email=$(value 'a["direct_admins"][0]["email"]')
call POST /api/v1/dev_fetch_api_key --data-urlencode "username=$email"
key=$(value 'a["api_key"]')
is "a key is 32 letters and digits" 32 "$(tr -d -c 'A-Za-z0-9' <<<"$key" | wc -c | tr -d ' ')"
me=(-u "$email:$key")

call POST /api/v1/users/me/subscriptions "${me[@]}" --data-urlencode 'subscriptions=[{"name":"curl"}]'
is "subscribe" success "$(value 'a["result"]')"
call POST /api/v1/register "${me[@]}" --data-urlencode 'event_types=["message"]'
is "register" 200 "$status"
queue=$(value 'a["queue_id"]')
is "a new queue is before the first event" -1 "$(value 'a["last_event_id"]')"
is "only the requested event types are fetched" "success False" "$(value '"%s %s" % (a["result"], "realm_users" in a)')"

(sleep 0.3; curl -s -m 20 -o "$dir/sent" "${me[@]}" "$base/api/v1/messages" -d type=stream -d to=curl -d topic=t -d content=hello) &
talker=$!
before=$(date +%s%N)
call GET "/api/v1/events?queue_id=$queue&last_event_id=-1" "${me[@]}"
waited=$((($(date +%s%N) - before) / 1000000))
wait "$talker"
is "a long poll is answered when a message arrives" "message hello" "$(value '"%s %s" % (a["events"][0]["type"], a["events"][0]["message"]["content"])')"
is "a long poll waits for the message" yes "$([ "$waited" -ge 150 ] && [ "$waited" -lt 5000 ] && echo yes || echo "$waited ms")"
event=$(value 'a["events"][0]["id"]')
[[ $event =~ ^[0-9]+$ ]] || event=none
call GET "/api/v1/events?queue_id=$queue&last_event_id=-1&dont_block=true" "${me[@]}"
is "an event is repeated until it is acknowledged" "$event" "$(value 'a["events"][0]["id"]')"
call GET "/api/v1/events?queue_id=$queue&last_event_id=$event&dont_block=true" "${me[@]}"
is "an acknowledged event is not repeated" '[]' "$(value 'a["events"]')"
call GET "/api/v1/events?queue_id=$queue&last_event_id=-1&dont_block=true" "${me[@]}"
says "acknowledged events cannot be requested again" 'already been pruned' "$(value 'a["msg"]')"

call GET "/api/v1/events?last_event_id=-1" "${me[@]}"
refusal "events without queue_id" 400 BAD_REQUEST "Missing 'queue_id' argument"
call GET "/api/v1/events?queue_id=$queue" "${me[@]}"
refusal "events without last_event_id" 400 BAD_REQUEST "Missing 'last_event_id' argument"
call GET "/api/v1/events?queue_id=nothing&last_event_id=-1" "${me[@]}"
refusal "an unknown queue" 400 BAD_EVENT_QUEUE_ID "Bad event queue ID: nothing"
is "the error contains the queue" nothing "$(value 'a["queue_id"]')"
call DELETE "/api/v1/events" "${me[@]}"
refusal "DELETE without a queue" 400 REQUEST_VARIABLE_MISSING "Missing 'queue_id' argument"
call DELETE "/api/v1/events" "${me[@]}" -d "queue_id=$queue"
is "DELETE reads its body" success "$(value 'a["result"]')"
call GET "/api/v1/events?queue_id=$queue&last_event_id=$event" "${me[@]}"
is "a deleted queue is unknown" BAD_EVENT_QUEUE_ID "$(value 'a["code"]')"

call GET /api/v1/users/me
refusal "no credentials" 401 UNAUTHORIZED "Not logged in: API authentication or user session required"
is "401 has a WWW-Authenticate header" 'Basic realm="zulip"' "$(header www-authenticate)"
is "CORS on errors too" '*' "$(header access-control-allow-origin)"
call GET /api/v1/users/me -H 'Authorization: Bearer x'
refusal "another authentication scheme" 400 BAD_REQUEST "This endpoint requires HTTP basic authentication."
call GET /api/v1/users/me -H 'Authorization: Basic !!!'
refusal "an invalid authorization header" 401 UNAUTHORIZED "Invalid authorization header for basic auth"
call GET /api/v1/users/me -u "$email:short"
refusal "a malformed key" 401 UNAUTHORIZED "Malformed API key"
call GET /api/v1/users/me -u "$email:00000000000000000000000000000000"
refusal "an unknown key" 401 UNAUTHORIZED "Invalid API key"
call GET /api/v1/users/me -u "nobody@example.com:$key"
refusal "the key of another user" 401 UNAUTHORIZED "Invalid API key"

call POST /api/v1/messages/render "${me[@]}"
refusal "a missing parameter" 400 REQUEST_VARIABLE_MISSING "Missing 'content' argument"
is "the error contains the parameter" content "$(value 'a["var_name"]')"
call POST /api/v1/user_topics "${me[@]}" -d stream_id=x -d topic=t -d visibility_policy=1
refusal "invalid JSON" 400 BAD_REQUEST "stream_id is not valid JSON"
call POST /api/v1/user_topics "${me[@]}" -d 'stream_id="5"' -d topic=t -d visibility_policy=1
refusal "a string is not an integer" 400 BAD_REQUEST "stream_id is not an integer"
call POST /api/v1/user_topics "${me[@]}" -d stream_id=1 -d topic=t -d visibility_policy=9
says "a value that is not allowed" 'Invalid visibility_policy' "$(value 'a["msg"]')"
call POST /api/v1/messages "${me[@]}" -d type=stream -d 'to=no such channel' -d topic=t -d content=c
is "an unknown channel" "400 STREAM_DOES_NOT_EXIST no such channel" "$status $(value '"%s %s" % (a["code"], a["stream"])')"
call GET /api/v1/messages/2000000000 "${me[@]}"
refusal "an unknown message" 400 BAD_REQUEST "Invalid message(s)"
call GET '/api/v1/messages?anchor=newest&num_before=1&num_after=0&narrow=%5B%5B%22is%22,%22nonsense%22%5D%5D' "${me[@]}"
is "a bad narrow" "400 BAD_NARROW" "$status $(value 'a["code"]')"

call POST /api/v1/messages/render "${me[@]}" -d 'content=**b**' -d zebra=1 -d apple=2
is "unknown parameters are listed, sorted" "['apple', 'zebra']" "$(value 'a["ignored_parameters_unsupported"]')"
call POST '/api/v1/messages/render?content=query' "${me[@]}" -d content=body
is "the body has priority over the query" '<p>body</p>' "$(value 'a["rendered"]')"
call POST /api/v1/messages/render "${me[@]}" -d content=first -d content=last
is "the last value of a repeated name is used" '<p>last</p>' "$(value 'a["rendered"]')"
call POST /api/v1/messages/render "${me[@]}" -F content=multipart
is "multipart forms" '<p>multipart</p>' "$(value 'a["rendered"]')"
call POST '/api/v1/messages/render?content=in+the+query' "${me[@]}"
is "parameters in the query of a POST" '<p>in the query</p>' "$(value 'a["rendered"]')"
call POST /api/v1/messages/render "${me[@]}" -H 'Content-Type: application/json' -d '{"content":"json"}'
is "a JSON body is not read as a form" REQUEST_VARIABLE_MISSING "$(value 'a["code"]')"
call POST /api/v1/messages/render "${me[@]}" --data-urlencode 'content=grüße 漢字'
says "text is not escaped" 'grüße 漢字' "$body"
as=PATCH call POST /api/v1/settings "${me[@]}" -d method=PATCH -d enter_sends=true
is "the form field method=PATCH overrides POST" success "$(value 'a["result"]')"

call HEAD /api/v1/server_settings
is "HEAD is allowed with GET" 200 "$status"
call OPTIONS /api/v1/messages
is "OPTIONS" 204 "$status"
says "OPTIONS lists the methods" 'GET.*HEAD.*POST' "$(header allow)"
call PUT /api/v1/messages "${me[@]}"
is "a missing method" "405 Method Not Allowed" "$status $(value 'a["msg"]')"
is "405 has a code" True "$(value '"code" in a')"
is "405 lists the methods in the body" True "$(value '"GET" in a["allowed_methods"] and "POST" in a["allowed_methods"]')"
says "405 lists the methods in Allow" 'GET.*POST|POST.*GET' "$(header allow)"
call GET /api/v1/no/such/thing "${me[@]}"
is "an unknown path" "404 error" "$status $(value 'a["result"]')"
is "404 is JSON" application/json "$(header content-type)"
call GET //api/v1//users/me "${me[@]}"
is "doubled slashes" 200 "$status"
call GET /health
is "health" 200 "$status"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
