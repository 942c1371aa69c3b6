// src/ingress: HTTP by Ingress v1: routes, balancing, certificates by server name, HTTP/1.1 and
// HTTP/2

import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import type { GatewayConfiguration } from "../config/configuration.ts";
import type { IngressListener } from "../config/sections/ingress-listener.ts";
import { SlowBodies } from "../http/slow-bodies.ts";
import type { BuiltCluster } from "../kubernetes/component.ts";
import { type Component, Started } from "../lifecycle/component.ts";
import type { ServingContext } from "../listeners/edge-rules.ts";
import type { Listener } from "../listeners/listener.ts";
import { PlainRequests } from "../listeners/plain-requests.ts";
import { readServingTls, watchServingTls } from "../listeners/serving-certificate.ts";
import { finishRequests } from "../listeners/shutdown.ts";
import { AddressRules } from "../net/address-rules.ts";
import { FairQueue } from "../net/fair-queue.ts";
import type { Listen } from "../net/listen.ts";
import type { UpstreamTlsFiles } from "../net/upstream-tls-files.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { CertificateAndKey } from "./certificates.ts";
import { routeNamesOf } from "./compile-routes.ts";
import { EndpointUpstream } from "./endpoint-upstream.ts";
import { AccessLog, type IngressContext, type StreamingGateway } from "./ingress-context.ts";
import { createIngressServers } from "./ingress-servers.ts";
import { type ActiveRoutes, RouteController } from "./route-controller.ts";
import { ProblemReporter, RouteProblems } from "./route-problems.ts";
import { ServiceBalancer } from "./service-balancer.ts";
import { StatusPublisher } from "./status-publisher.ts";
import { buildIngressWriter } from "./writer-component.ts";

/**
 * The DNS name in the default certificate; some clients cannot report a certificate without one.
 */
const DEFAULT_CERTIFICATE_NAME = "ingress.sluice.dev";

/** Differs between one process and several workers. */
interface IngressRuntime {
  readonly listen: Listen;
  /** Encrypts TLS tickets; absent: this process makes its own keys. */
  readonly ticketKeys?: Buffer | undefined;
}

interface IngressParts {
  readonly listener: IngressListener;
  readonly configuration: GatewayConfiguration;
  readonly cluster: Pick<BuiltCluster, "store" | "live">;
  readonly gateway: ServingContext & { readonly metrics: Metrics } & Pick<IngressContext, "isGatewayHealthy">;
  readonly api: Listener;
  readonly runtime: IngressRuntime;
  readonly upstreams: UpstreamTlsFiles;
}

/** The front door: routes from the store, its own listeners, and the API leg behind `StreamingGateway` backends. */
export function startIngress(parts: IngressParts): Promise<Component> {
  return Started.building((started) => buildIngress(started, parts));
}

async function buildIngress(started: Started, parts: IngressParts): Promise<Component> {
  const { listener, configuration, cluster, gateway, api, runtime, upstreams } = parts;
  const { listen, ticketKeys } = runtime;
  const { logger } = gateway;
  const metrics = gateway.metrics.ingress;
  const defaultTls = await defaultTlsOf(listener);
  const streamingGateways = await streamingGatewaysOf(started, listener, configuration, api, upstreams);
  const { controller, problems } = await startRoutes(started, parts);
  const balancer = started.add(
    new ServiceBalancer({
      cluster: cluster.store,
      addressRules: new AddressRules(listener.allowedEndpointAddresses),
      dialTimeoutMs: configuration.timeouts.dialMs,
      onTlsFailure: (failure) => logger.warn({ ...failure }, "TLS with an endpoint of a Service failed"),
    }),
    (it) => it.stop(),
  );
  const accessLog =
    listener.accessLog &&
    started.add(new AccessLog({ ...listener.accessLog, edge: gateway.edge, metrics, logger }), (it) =>
      it.stop(),
    );
  const context: IngressContext = {
    ...gateway,
    metrics,
    accessLog,
    ...boundsOf(configuration),
    routes: controller,
    balancer,
    problems,
    streamingGateways,
    onConnectionRefused: (reason) => gateway.metrics.access.connectionRefused(reason),
  };
  const certificatesFor = (name: string) => controller.certificatesFor(name);
  const tls = { defaultTls, certificatesFor, ticketKeys, settings: listener.tls };
  const servers = started.add(createIngressServers(context, tls, listener.proxyProtocol), (it) => it.stop());
  const { address, httpPort, httpsPort, defaultCertificate } = listener;
  const watchedTls =
    defaultCertificate &&
    started.add(
      watchServingTls(servers.setDefaultTls, {
        files: defaultCertificate,
        current: { ...defaultTls, clientAuthorities: [] },
        authorities: [],
        logger,
        onServed: (cert) => gateway.metrics.operations.certificateServed("ingress", cert),
      }),
      (it) => it.stop(),
    );
  await listen(servers.plain, "ingress.http", { address, port: httpPort });
  await listen(servers.secure, "ingress.https", { address, port: httpsPort });
  return {
    enterLameDuck: () => servers.enterLameDuck(),
    drain: (timeoutMs) => {
      servers.enterLameDuck();
      return finishRequests({ plainRequests: context.requests, ...servers }, timeoutMs, logger);
    },
    reload: async () => {
      await accessLog?.reopen();
      await watchedTls?.reload();
    },
    stop: () => started.stop(),
  };
}

/** Compiles routes, and reports their problems and statuses, as often as their objects change. */
async function startRoutes(
  started: Started,
  { listener, configuration, cluster, gateway }: IngressParts,
): Promise<{ readonly controller: RouteController; readonly problems: RouteProblems }> {
  const { logger } = gateway;
  const metrics = gateway.metrics.ingress;
  const { maxIngressMetricRoutes } = configuration.limits;
  const writer = started.add(buildIngressWriter(listener.leaderElection, cluster, logger), (it) => it.stop());
  const publisher = started.add(
    new StatusPublisher({
      cluster: cluster.store,
      addresses: listener.publishedAddresses,
      write: writer.writeStatus,
      mayWrite: writer.mayWrite,
      onFailure: (ingress, error) =>
        logger.error(
          { ingress: ingress.metadata.name, error },
          "the status of an Ingress could not be written",
        ),
    }),
    (it) => it.stop(),
  );
  const reporter = new ProblemReporter({
    log: ({ origin: { metadata }, reason, message, owner }) =>
      logger.warn(
        { namespace: metadata.namespace ?? "default", ingress: metadata.name, reason, owner },
        message,
      ),
    tell: writer.tellProblem,
    mayTell: writer.mayWrite,
  });
  let active: ActiveRoutes["problems"] = [];
  const reportProblems = (): void => {
    const all = [...active, ...problems.all];
    metrics.problemsReplaced(all.map(({ reason }) => reason));
    reporter.report(all);
  };
  const problems = new RouteProblems(reportProblems);
  function* onActive({ ingresses, problems: compiled, secrets }: ActiveRoutes): Generator<void, void> {
    active = compiled;
    yield* gateway.metrics.operations.secretCertificatesServed(secrets.slice(0, maxIngressMetricRoutes));
    problems.retain(ingresses);
    reportProblems();
    yield;
    yield* metrics.routesReplaced(ingresses.length, routeNamesOf(ingresses), maxIngressMetricRoutes);
    yield* publisher.publishing(ingresses);
  }
  const { hostOwnership } = listener;
  const controller = started.add(
    await RouteController.start({ cluster: cluster.store, classes: listener, hostOwnership, onActive }),
    (it) => it.stop(),
  );
  writer.start(() => {
    publisher.resume();
    reporter.tellRest();
  });
  return { controller, problems };
}

/** How many requests are forwarded at once, and how long each may take. */
function boundsOf({
  limits,
  timeouts,
}: GatewayConfiguration): Pick<IngressContext, "requests" | "seats" | "slowBodies"> {
  const seats = limits.maxConcurrentIngressRequests;
  const seatsPerFlow = limits.maxConcurrentIngressRequestsPerAddress;
  return {
    requests: new PlainRequests(Number.POSITIVE_INFINITY, timeouts.streamIdleMs),
    seats: new FairQueue({
      seats,
      seatsPerFlow,
      maxWaiting: seats,
      onlyModestFlowsWait: true,
    }),
    slowBodies: new SlowBodies({ places: seats, placesPerFlow: seatsPerFlow }),
  };
}

async function defaultTlsOf({ defaultCertificate }: IngressListener): Promise<CertificateAndKey> {
  if (defaultCertificate !== undefined) return await readServingTls(defaultCertificate, []);
  // RSA, because every client can verify it.
  const made = await createSelfSignedCertificate([DEFAULT_CERTIFICATE_NAME], DEFAULT_CERTIFICATE_NAME, "rsa");
  return { cert: made.certPem, key: made.keyPem };
}

async function streamingGatewaysOf(
  started: Started,
  { streamingGateways }: IngressListener,
  { timeouts }: GatewayConfiguration,
  api: Listener,
  upstreams: UpstreamTlsFiles,
): Promise<Map<string, StreamingGateway>> {
  const found = new Map<string, StreamingGateway>();
  for (const { name, upstream } of streamingGateways) {
    if (upstream === undefined) {
      found.set(name, {
        type: "local",
        listener: api,
      });
    } else {
      const endpoint = await upstreams.endpoint("streamingGateway", upstream.url, upstream);
      found.set(name, {
        type: "upstream",
        upstream: started.add(new EndpointUpstream(endpoint, timeouts.dialMs), (it) => it.close()),
      });
    }
  }
  return found;
}
