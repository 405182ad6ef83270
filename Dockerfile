# The image that runs the program: docker build --tag function-wasm .
# Without Docker, node scripts/build-image.mjs makes one like it. All stages have one Debian, so that what
# the first one links is there in the last. A release pins them by digest: --build-arg RUNTIME_IMAGE=…@sha256:…
ARG RUST_IMAGE=docker.io/library/rust:1.95-slim-bookworm
ARG NODE_IMAGE=docker.io/library/node:24-bookworm-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs24-debian12

FROM ${RUST_IMAGE} AS native
ENV CARGO_TARGET_DIR=/target
WORKDIR /src
COPY native native
# As scripts/lib/native.mjs does it: one invocation for the whole workspace.
RUN cargo build --release --locked --workspace --manifest-path native/Cargo.toml
WORKDIR /out
RUN cp /target/release/libwasmtime_node.so wasmtime-node.node \
  && cp /target/release/wasmtime-compile wasmtime-compile

FROM ${NODE_IMAGE} AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src src
RUN node node_modules/typescript/bin/tsc -p tsconfig.build.json \
  && npm ci --ignore-scripts --omit=dev

WORKDIR /app
COPY package.json LICENSE ./
COPY proto proto
COPY wit wit
COPY package package
COPY --from=native /out build/native
# Crossplane runs it as a user of its own choice, so everything is readable for all.
RUN mv /src/dist /src/node_modules . \
  && chmod -R u=rwX,go=rX . \
  && chmod 755 build/native/wasmtime-compile

FROM ${RUNTIME_IMAGE}
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app /app
EXPOSE 9443 8080 8081
# Numeric, so that Kubernetes sees that it is not root; there need be no such user.
USER 65532:65532
# Not CMD, which the args of a container replace.
ENTRYPOINT ["/nodejs/bin/node", "/app/dist/main.js"]
