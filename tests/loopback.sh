# For the checks that start servers on the loopback address; read with `source`, by scripts that have set `scratch`.

# A port that nothing listens on.
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Waits until something listens on a port; after ten seconds it prints the logs and ends the script.
wait_for() {
    for _ in $(seq 200); do
        if (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return; fi
        sleep 0.05
    done
    echo "nothing listens on port $1" >&2
    cat "$scratch"/*.log >&2
    exit 1
}
