# The image for clusters is the last stage: Node.js, the libraries it loads, and Sluice; no shell, no package manager. `--target demo` has a shell, for
# the fake nodes of docker-compose.yml.
# The index of all architectures: `docker buildx build --platform linux/amd64,linux/arm64`.
ARG NODE_IMAGE=node:24.18.0-bookworm-slim@sha256:6f7b03f7c2c8e2e784dcf9295400527b9b1270fd37b7e9a7285cf83b6951452d

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json LICENSE ./
COPY packages ./packages
COPY protocols ./protocols
# `prepare` builds, and there is nothing to build yet: hence --ignore-scripts. No dependency needs its scripts.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY scripts ./scripts
COPY src ./src
RUN npm run build

FROM build AS pruned
RUN npm prune --omit=dev --ignore-scripts --no-audit --no-fund

FROM ${NODE_IMAGE} AS demo
# Elsewhere the program sets GLIBC_TUNABLES by restarting itself: src/cli/gateway-flags.ts.
ENV NODE_ENV=production GLIBC_TUNABLES=glibc.malloc.tcache_count=65535
WORKDIR /app
COPY --from=pruned /app/package.json ./
COPY --from=pruned /app/node_modules ./node_modules
COPY --from=pruned /app/dist ./dist
# node_modules/@sluice are links to the workspaces.
COPY --from=pruned /app/packages ./packages
COPY --from=pruned /app/protocols ./protocols
COPY LICENSE ./
# Owned by the user that runs, so that a volume mounted here is too. Nothing else is written to: the root may be read-only.
RUN install -d -o node -g node /var/lib/sluice
USER 1000:1000
EXPOSE 6443 8081
ENTRYPOINT ["node", "--no-incremental-marking", "--max-semi-space-size=8", "/app/dist/bin/sluice.cjs"]
CMD ["serve", "--config", "/etc/sluice/config.yaml"]

FROM build AS rootfs
# It bundles the program with the packages that it needs.
RUN apt-get update && apt-get install --yes --no-install-recommends binutils && node scripts/image-rootfs.mjs /rootfs

FROM scratch
COPY --from=rootfs /rootfs/ /
ENV NODE_ENV=production GLIBC_TUNABLES=glibc.malloc.tcache_count=65535
WORKDIR /app
# By number, so that Kubernetes can check runAsNonRoot.
USER 1000:1000
# API and admin listener; the configuration says which addresses they are on.
EXPOSE 6443 8081
ENTRYPOINT ["/usr/bin/node", "--no-incremental-marking", "--max-semi-space-size=8", "/app/dist/bin/sluice.cjs"]
# One process for each core that the container may use.
CMD ["serve", "--config", "/etc/sluice/config.yaml", "--workers", "auto"]
