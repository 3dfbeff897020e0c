# Larder in a container: docs/guide/containers.md.

FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc g++ libc6-dev make && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --locked --profile dist -p larder-cli && strip target/dist/larder

FROM debian:bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home --home-dir /home/larder larder \
    && install --directory --owner=larder --group=larder --mode=700 /data /models /project
COPY --from=build /src/target/dist/larder /usr/local/bin/larder
USER larder
WORKDIR /project
# Everything that Larder keeps, and the weights of the built-in models.
ENV LARDER_HOME=/data LARDER_MODELS=/models LARDER_LISTEN=0.0.0.0:8787
VOLUME ["/data", "/models"]
EXPOSE 8787
STOPSIGNAL SIGTERM
# Healthy while the gateway accepts requests. /readyz needs no key.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8787 && printf 'GET /readyz HTTP/1.0\\r\\nhost: localhost\\r\\n\\r\\n' >&3 && head -1 <&3 | grep -q ' 200 '"]
ENTRYPOINT ["larder"]
CMD ["serve"]
