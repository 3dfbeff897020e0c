#!/usr/bin/env bash
# The reverse proxies of docs/guide/security.md: has nginx and Caddy check the examples as they are printed there.
# Skips a program that is not installed.
set -euo pipefail
cd "$(dirname "$0")/../.."

page=docs/guide/security.md
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The first code block of the page in a language.
block() {
    awk -v fence="\`\`\`$1" '$0 == fence { on = 1; next } on && /^```/ { exit } on' "$page" >"$scratch/$1"
    [[ -s $scratch/$1 ]] || { echo "$page has no block of $1" >&2; exit 1; }
}

if command -v nginx >/dev/null && command -v openssl >/dev/null; then
    block nginx
    openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=larder.example.com \
        -keyout "$scratch/key.pem" -out "$scratch/certificate.pem" 2>/dev/null
    {
        printf 'pid %s/nginx.pid;\nevents {}\nhttp {\naccess_log off;\n' "$scratch"
        for kind in client_body proxy fastcgi uwsgi scgi; do printf '%s_temp_path %s/%s;\n' "$kind" "$scratch" "$kind"; done
        # nginx reads the certificate and binds the port even when it only checks.
        sed -e "s|\(ssl_certificate \+\)[^;]*;|\1$scratch/certificate.pem;|" \
            -e "s|\(ssl_certificate_key \+\)[^;]*;|\1$scratch/key.pem;|" \
            -e 's|listen 443|listen 127.0.0.1:18443|' "$scratch/nginx"
        printf '}\n'
    } >"$scratch/nginx.conf"
    nginx -t -q -p "$scratch" -e stderr -c "$scratch/nginx.conf"
    echo "nginx accepts the example"
else
    echo "skipped: nginx or openssl is not installed"
fi

if command -v caddy >/dev/null; then
    block caddyfile
    HOME=$scratch XDG_DATA_HOME=$scratch XDG_CONFIG_HOME=$scratch \
        caddy validate --adapter caddyfile --config "$scratch/caddyfile" >"$scratch/said" 2>&1 ||
        { cat "$scratch/said" >&2; exit 1; }
    echo "Caddy accepts the example"
else
    echo "skipped: caddy is not installed"
fi
