#!/usr/bin/env bash
# Checks that models are reached over TLS with a company's own certificate authority (SSL_CERT_FILE), that an unknown
# one is refused, and that the proxy of the environment is used. Needs openssl and python3; stays on this machine.
#
# usage: tests/providers/network.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
server=
trap '[[ -z "$server" ]] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=Test Authority" -keyout "$work/ca.key" -out "$work/ca.pem" \
    -addext basicConstraints=critical,CA:TRUE 2>/dev/null
openssl req -newkey rsa:2048 -nodes -subj "/CN=localhost" -keyout "$work/key.pem" -out "$work/request.pem" 2>/dev/null
printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n' >"$work/extensions"
openssl x509 -req -in "$work/request.pem" -CA "$work/ca.pem" -CAkey "$work/ca.key" -CAcreateserial -days 2 \
    -extfile "$work/extensions" -out "$work/cert.pem" 2>/dev/null

port=$(free_port)
python3 - "$work" "$port" 2>/dev/null <<'PYTHON' &
import http.server, ssl, sys
folder, port = sys.argv[1], int(sys.argv[2])
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
server = http.server.HTTPServer(("127.0.0.1", port), http.server.BaseHTTPRequestHandler)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
PYTHON
server=$!
for _ in $(seq 100); do
    if (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
    sleep 0.1
done

run() { cargo test --release --workspace --locked --test network -- --ignored --exact "$1"; }
export LARDER_TEST_TLS="https://localhost:$port"
SSL_CERT_FILE="$work/ca.pem" run a_certificate_that_the_system_trusts_is_trusted
run an_untrusted_certificate_is_rejected
LARDER_TEST_PROXY_PORT=$(free_port)
export LARDER_TEST_PROXY_PORT
HTTP_PROXY="http://127.0.0.1:$LARDER_TEST_PROXY_PORT" NO_PROXY='' \
    run other_machines_are_reached_through_the_proxy_and_this_one_is_not
