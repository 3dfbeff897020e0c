# The steps of .ci/run, one by one. `just check` and `just test` before every commit.

# List what there is
default:
    @just --list

# Formatting, lints and documentation
check:
    cargo fmt --all --check
    cargo clippy --release --workspace --all-targets --locked -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps --locked

# All tests
test:
    cargo test --release --workspace --locked

# All tests with many generated cases and many crashes
long:
    PROPTEST_CASES=20000 LARDER_CRASH_ROUNDS=200 cargo test --release --workspace --locked

# Accept what the golden tests print now; look at the diff before committing it
bless:
    LARDER_BLESS=1 cargo test --release --workspace --locked
    git diff --stat

# Measure
bench:
    cargo bench --workspace --locked

# Quality on the corpora that LARDER_CORPORA names, compared with evals/baselines
evals *suites="all":
    cargo run --release --locked -p larder-evals -- {{suites}}

# Try to break condensers, requests, streams, pointers: `just fuzz json 600`
fuzz target="all" seconds="60":
    cargo run --release --locked -p larder-evals -- fuzz {{target}} --seconds {{seconds}}

# Licences and sources of dependencies
deny:
    cargo deny --locked check licenses bans sources

# Everything, as the continuous integration does it
ci:
    .ci/run
