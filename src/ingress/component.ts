// src/ingress: HTTP by Ingress v1: routes, balancing, certificates by server name, HTTP/1.1 and HTTP/2

import type { GatewayConfiguration } from "../config/configuration.ts";
import type { IngressListener } from "../config/sections/ingress-listener.ts";
import { SlowBodies } from "../http/slow-bodies.ts";
import type { BuiltCluster } from "../kubernetes/component.ts";
import type { Component } from "../lifecycle/component.ts";
import type { Listener } from "../listeners/listener.ts";
import type { ServingContext } from "../listeners/listener-context.ts";
import { PlainRequests } from "../listeners/plain-requests.ts";
import { SEAT_WAIT_MS } from "../listeners/request-seats.ts";
import { readServingTls, watchServingTls } from "../listeners/serving-certificate.ts";
import { finishRequests } from "../listeners/shutdown.ts";
import { AddressRules } from "../net/address-rules.ts";
import { FairQueue } from "../net/fair-queue.ts";
import { type Listen, urlOf } from "../net/listen.ts";
import { createSelfSignedCertificate } from "../net/self-signed.ts";
import type { UpstreamTlsFiles } from "../net/upstream-tls-files.ts";
import type { Metrics } from "../observability/metrics.ts";
import { AccessLog } from "./access-log.ts";
import type { CertificateAndKey } from "./certificates.ts";
import { EndpointUpstream } from "./endpoint-upstream.ts";
import type { IngressContext, StreamingGateway } from "./ingress-context.ts";
import { createIngressServers, type IngressServers } from "./ingress-servers.ts";
import { ProblemReporter } from "./problem-reporter.ts";
import { routeNamesOf } from "./route-backend.ts";
import { type ActiveRoutes, RouteController } from "./route-controller.ts";
import { RouteProblems } from "./route-problems.ts";
import { ServiceBalancer } from "./service-balancer.ts";
import { StatusPublisher } from "./status-publisher.ts";
import { buildIngressWriter } from "./writer-component.ts";

/** The default certificate carries a DNS name, without which some clients do not even report it. */
const DEFAULT_CERTIFICATE_NAME = "ingress.sluice.dev";

export interface RunningIngress extends Component {
  readonly httpUrl: string;
  readonly httpsUrl: string;
}

/** What differs where several processes are one gateway. */
export interface IngressRuntime {
  readonly listen: Listen;
  /** What TLS tickets are encrypted with; absent: keys of this process. */
  readonly ticketKeys?: Buffer | undefined;
}

/** The front door: routes from the store, its own listeners, and the API leg behind `StreamingGateway` backends. */
export async function startIngress(
  listener: IngressListener,
  configuration: GatewayConfiguration,
  cluster: Pick<BuiltCluster, "store" | "live">,
  gateway: ServingContext & { readonly metrics: Metrics } & Pick<IngressContext, "isGatewayHealthy">,
  api: Listener,
  { listen, ticketKeys }: IngressRuntime,
  upstreams: UpstreamTlsFiles,
): Promise<RunningIngress> {
  const { logger } = gateway;
  const { store } = cluster;
  const metrics = gateway.metrics.ingress;
  // What reads files comes before what has to be stopped.
  const defaultTls = await defaultTlsOf(listener);
  const streamingGateways = await streamingGatewaysOf(listener, configuration, api, upstreams);
  const writer = buildIngressWriter(listener.leaderElection, cluster, logger);
  const publisher = new StatusPublisher({
    cluster: store,
    addresses: listener.publishedAddresses,
    write: writer.writeStatus,
    mayWrite: writer.mayWrite,
    onFailure: (ingress, error) =>
      logger.error(
        { ingress: ingress.metadata.name, error },
        "the status of an Ingress could not be written",
      ),
  });
  const reporter = new ProblemReporter({
    log: ({ ingress: { metadata }, reason, message, owner }) =>
      logger.warn(
        { namespace: metadata.namespace ?? "default", ingress: metadata.name, reason, owner },
        message,
      ),
    tell: writer.tellProblem,
    mayTell: writer.mayWrite,
  });
  let active: ActiveRoutes["problems"] = [];
  const routeProblems: RouteProblems = new RouteProblems(() => {
    const all = [...active, ...routeProblems.all];
    metrics.problemsReplaced(all.map(({ reason }) => reason));
    reporter.report(all);
  });
  const controller = await RouteController.start({
    cluster: store,
    classes: listener,
    hostOwnership: listener.hostOwnership,
    onActive: ({ ingresses, problems: compiled, secrets }) => {
      active = compiled;
      const shown = secrets.slice(0, configuration.limits.maxIngressMetricRoutes);
      gateway.metrics.operations.secretCertificatesServed(shown);
      routeProblems.retain(ingresses);
      const problems = [...compiled, ...routeProblems.all];
      metrics.routesReplaced(
        ingresses.length,
        problems.map(({ reason }) => reason),
        routeNamesOf(ingresses),
        configuration.limits.maxIngressMetricRoutes,
      );
      publisher.publish(ingresses);
      reporter.report(problems);
    },
  });
  writer.start(() => {
    publisher.resume();
    reporter.tellRest();
  });
  const balancer = new ServiceBalancer({
    cluster: store,
    addressRules: new AddressRules(listener.allowedEndpointAddresses),
    dialTimeoutMs: configuration.timeouts.dialMs,
    onTlsFailure: (failure) => logger.warn({ ...failure }, "TLS with an endpoint of a Service failed"),
  });
  const { limits, timeouts } = configuration;
  const requests = new PlainRequests(Number.POSITIVE_INFINITY, timeouts.streamIdleMs);
  const seats = new FairQueue({
    seats: limits.maxConcurrentIngressRequests,
    seatsPerFlow: limits.maxConcurrentIngressRequestsPerAddress,
    maxWaiting: limits.maxConcurrentIngressRequests,
    onlyModestFlowsWait: true,
    maxWaitMs: SEAT_WAIT_MS,
  });
  const slowBodies = new SlowBodies({
    places: limits.maxConcurrentIngressRequests,
    placesPerFlow: limits.maxConcurrentIngressRequestsPerAddress,
  });
  const accessLog =
    listener.accessLog && new AccessLog({ ...listener.accessLog, edge: gateway.edge, metrics, logger });
  const context: IngressContext = {
    ...gateway,
    metrics,
    accessLog,
    requests,
    seats,
    slowBodies,
    routes: () => controller.routes,
    balancer,
    problems: routeProblems,
    streamingGateways,
    onConnectionRefused: (reason) => gateway.metrics.access.connectionRefused(reason),
  };
  const servers = createIngressServers(
    context,
    {
      defaultTls,
      certificatesFor: (name) => controller.certificatesFor(name),
      ticketKeys,
      settings: listener.tls,
    },
    listener.proxyProtocol,
  );
  const { address, httpPort, httpsPort, defaultCertificate } = listener;
  const watchedTls =
    defaultCertificate &&
    watchServingTls(servers.setDefaultTls, {
      files: defaultCertificate,
      current: { ...defaultTls, clientAuthorities: [] },
      authorities: [],
      logger,
      onServed: (cert) => gateway.metrics.operations.certificateServed("ingress", cert),
    });
  const stop = async (): Promise<void> => {
    watchedTls?.stop();
    await stopServers(servers);
    await accessLog?.stop();
    await controller.stop();
    await publisher.stop();
    await writer.stop();
    balancer.stop();
    for (const streaming of streamingGateways.values()) {
      if (streaming.type === "upstream") streaming.upstream.close();
    }
  };
  try {
    const plainAt = await listen(servers.plain, "ingress.http", { address, port: httpPort });
    const secureAt = await listen(servers.secure, "ingress.https", { address, port: httpsPort });
    return {
      httpUrl: urlOf("http", plainAt),
      httpsUrl: urlOf("https", secureAt),
      enterLameDuck: () => servers.enterLameDuck(),
      drain: (timeoutMs) => {
        servers.enterLameDuck();
        return finishRequests({ plainRequests: requests, ...servers }, timeoutMs, logger);
      },
      reload: async () => {
        await accessLog?.reopen();
        await watchedTls?.reload();
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function defaultTlsOf({ defaultCertificate }: IngressListener): Promise<CertificateAndKey> {
  if (defaultCertificate !== undefined) return await readServingTls(defaultCertificate, []);
  // RSA: there is no client that could not verify it.
  const made = await createSelfSignedCertificate([DEFAULT_CERTIFICATE_NAME], DEFAULT_CERTIFICATE_NAME, "rsa");
  return { cert: made.certPem, key: made.keyPem };
}

async function streamingGatewaysOf(
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
        upstream: new EndpointUpstream(endpoint, timeouts.dialMs),
      });
    }
  }
  return found;
}

function stopServers({ plain, secure, destroyConnections }: IngressServers): Promise<unknown> {
  const closed = [plain, secure].map((server) => new Promise((resolve) => server.close(resolve)));
  destroyConnections();
  return Promise.all(closed);
}
