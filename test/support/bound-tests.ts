/** The tests of each row of docs/limits.md: files below test, with a part of the test's title, between bars. */
export const BOUND_TESTS: Readonly<Record<string, string>> = {
  "audit.log.maxBackups": "unit/access/audit/audit-file.test.ts: as many backups are kept",
  "audit.log.maxBytes": "unit/access/audit/audit-file.test.ts",
  "audit.webhook.maxQueuedEvents": "integration/access/audit/audited-requests.test.ts: dead, continue",
  "audit.webhook.throttle.burst": "unit/access/audit/event-queue.test.ts: lets a burst through at once",
  "audit.webhook.throttle.perSecond": "unit/access/audit/event-queue.test.ts",
  "authentication.tokenReview.maxCachedTokens": "unit/access/authn/token-review.test.ts",
  "authentication.tokenReview.timeout": "unit/access/authn/token-review.test.ts",
  "authorization.webhook.maxCachedDecisions":
    "unit/access/authz/webhook/webhook-authorizer.test.ts: the cache is bounded",
  HOLDER_SHARE: "unit/access/authz/webhook/webhook-authorizer.test.ts: evicts nobody else's decision",
  "authorization.webhook.timeout": "integration/legs/api-server/access/webhook.test.ts: silent",
  "cluster.maxStateAge":
    "integration/legs/api-server/admission.test.ts: refuses sessions by state that is too old | integration/kubernetes/connect-admission.test.ts: does not trust rules that are older | integration/kubernetes/connect-admission.test.ts: and no longer than remembered state counts",
  "kubelet.circuitBreaker.retry": "integration/nodes/misbehaving-nodes.test.ts: a node that is gone",
  "kubelet.spareConnections":
    "integration/net/spare-connections.test.ts: is one of so many at most | integration/net/spare-connections.test.ts: is closed when no session wants it",
  "kubelet.streaming.retryFailedPath": "unit/nodes/known-nodes.test.ts: is left out for a while",
  "recording.maxHold":
    "integration/recording/failing-disk.test.ts: passes on only what the queue takes | integration/recording/failing-disk.test.ts: in place of the command's success",
  "recording.maxOutputBytes": "integration/recording/failing-disk.test.ts: is counted, and not recorded",
  "recording.maxQueuedBytes": "unit/recording/recorder.test.ts: of all sessions",
  "recording.maxQueuedBytesPerSession":
    "integration/recording/failing-disk.test.ts: passes on only what the queue takes",
  LAST_CLOSE_MS: "integration/listeners/http2-connections.test.ts: an idle client that stops",
  MAX_PLAIN_DEPTH: "unit/config/plain-yaml.test.ts: too many levels",
  MAX_SPARE_MEMORIES:
    "unit/net/freed-memory.test.ts: are kept up to a bound | integration/legs/api-server/stalled-memory.test.ts: in ",
  MAX_LOG_LINE_BYTES: "unit/cli/client/log-position.test.ts: a line past its bound",
  MAX_WAITING_WARNINGS: "unit/sessions/terminal-warning.test.ts: holds so many warnings",
  MAX_LINE_BYTES: "unit/recording/reading.test.ts: a line without an end",
  "recording.maxTotalBytes": "integration/recording/retention.test.ts: deletes the oldest past the size",
  "recording.s3.maxWaitingBytes":
    "integration/recording/uploads.test.ts: past their bound no new recording begins",
  "recording.s3.requestTimeout": "integration/recording/uploads.test.ts: that answers no request",
  MAX_ATTEMPTS: "integration/recording/uploads.test.ts: that answers no request",
  MAX_CLOCK_STEP_MS:
    "integration/recording/retention.test.ts: deletes nothing by age for a while after the clock jumps",
  MAX_INDEXED: "unit/recording/recording-index.test.ts: lists and remembers recordings up to its bound",
  MAX_S3_ANSWER_BYTES: "integration/recording/uploads.test.ts: whose answer does not end",
  MAX_OBJECT_PAGES: "integration/session-api/stored-recordings.test.ts: ends at a bound of pages",
  MAX_BUCKET_HEADER_BYTES: "integration/session-api/stored-recordings.test.ts: a header of so many bytes",
  MAX_BUCKET_RECORDINGS: "integration/session-api/stored-recordings.test.ts: has so many, the newest",
  MAX_BUCKET_WAIT_MS: "integration/session-api/stored-recordings.test.ts: of a bucket that hangs",
  BUCKET_LIST_MS: "integration/session-api/stored-recordings.test.ts: is used for a while",
  BOOKMARK_PERIOD_MS: "integration/api/read-only-server/watch.test.ts: has a bookmark each minute",
  MAX_FOLDER_WAIT_MS: "unit/session-api/folder-gate.test.ts: gives up",
  MAX_FOLDER_REQUESTS: "unit/session-api/folder-gate.test.ts: lets a few through at once",
  MAX_SKEW_MS: "integration/recording/uploads.test.ts: is believed up to a day",
  MAX_UPLOAD_AGE_MS: "integration/recording/uploads.test.ts: older than a day",
  MAX_PAGES: "integration/recording/uploads.test.ts: older than a day",
  MAX_DELETED_AT_ONCE: "integration/recording/retention.test.ts: deletes up to a number in a round",
  MAX_LINE_CHARACTERS: "unit/recording/echoed-input.test.ts: are hidden",
  MAX_WAITING_LINES: "unit/recording/echoed-input.test.ts: wait for their echo up to a number",
  MAX_FILES: "integration/recording/archive-reader.test.ts: names files up to its bound",
  MAX_NAME_CHARACTERS: "integration/recording/archive-reader.test.ts: has names that are cut",
  MAX_EXTENSION_BYTES: "integration/recording/archive-reader.test.ts: no extension that is too long",
  SILENCE_MS: "integration/recording/finish-left-parts.test.ts: here or elsewhere",
  WATCHED_MS: "integration/recording/finish-left-parts.test.ts: here or elsewhere",
  MAX_CHANGING_LINE: "unit/recording/terminal-filter.test.ts: a line past its bound",
  MAX_SEQUENCE: "unit/recording/terminal-filter.test.ts: that does not end",
  MAX_BINARY_BYTES: "unit/recording/session-writer.test.ts: keeps binary output exactly up to its bound",
  MAX_CONNECTIONS: "unit/recording/forward-recorder.test.ts: follows no more connections",
  "limits.maxAdminConnections":
    "integration/admin/admin-server.test.ts: bounds its connections | integration/admin/admin-server.test.ts: is not starved by | integration/admin/admin-server.test.ts: leaves places to other addresses",
  "limits.maxBearerTokenBytes":
    "unit/access/authn/token-chain.test.ts: a token past the bound is not shown to anybody",
  "limits.maxConcurrentIngressRequests":
    "integration/legs/api-server/pipelining.test.ts: are so many and no more at the front door",
  "limits.maxConcurrentIngressRequestsPerAddress":
    "integration/security/fair-shares.test.ts: every request of others is served",
  "limits.maxConcurrentRequests":
    "integration/legs/api-server/pipelining.test.ts: are so many and no more at the API listener",
  "limits.maxConcurrentRequestsPerUser":
    "integration/security/fair-shares.test.ts: every request of others is served, and health checks | integration/security/fair-shares.test.ts: a user that has nothing waits | unit/net/fair-queue.test.ts: leaves seats beside flows that take all that they can",
  "limits.maxConcurrentSessions":
    "integration/legs/api-server/refusals.test.ts: more sessions than allowed: 429 with Retry-After",
  "limits.maxConnectionBytesPerSecond":
    "integration/legs/api-server/translate.test.ts: TestStreamTranslator_ThrottleReadChannels",
  "limits.maxConnectionsPerAddress":
    "integration/security/edge.test.ts: an address has so many connections and no more",
  "limits.maxHttp2Streams":
    "integration/legs/api-server/http2.test.ts: no more streams at a time than the bound",
  "limits.maxIngressMetricRoutes": "unit/observability/ingress-metrics.test.ts: past the limit",
  "limits.maxLongRunningRequests":
    "integration/security/fair-shares.test.ts: watches of others begin | integration/security/fair-shares.test.ts: each other user has its watches | unit/net/displacing-seats.test.ts",
  "limits.maxLongRunningRequestsPerUser":
    "integration/security/fair-shares.test.ts: watches of others begin | integration/security/fair-shares.test.ts: each other user has its watches | unit/net/displacing-seats.test.ts",
  "limits.maxPeerRelays": "integration/peers/replicas.test.ts: relay so many sessions at once",
  "limits.maxPeers": "integration/peers/replicas.test.ts: ask so many peers, and log that there are more",
  "limits.maxRefusalBodyBytes":
    "integration/legs/api-server/bounds.test.ts: maxRefusalBodyBytes: a node's endless refusal is read so far and no further",
  "limits.maxRememberedNodes": "unit/nodes/known-nodes.test.ts: is bounded",
  "limits.maxRequestHeaderBytes":
    "integration/legs/api-server/refusals.test.ts: oversized headers get 431 | integration/http/downstream/client-error.test.ts: a head past its bound",
  "limits.maxRequestHeaders":
    "integration/legs/api-server/header-lines.test.ts: more lines it is | integration/legs/api-server/bounds.test.ts: maxRequestHeaders: a request with more lines is refused whole, not cut",
  "limits.maxRuntimeMessageBytes": "integration/cri/cri-runtime.test.ts: refuses an answer past its bound",
  "limits.maxUpgradeResponseHeadBytes": "integration/http/upgrade/upgrade-request.test.ts: an oversized head",
  "limits.maxWebSocketFragments":
    "unit/protocols/websocket/frame-decoder.test.ts: stops a message of endless empty fragments",
  "limits.maxWebSocketFrameBytes":
    "unit/protocols/websocket/frame-decoder.test.ts: refuses an oversized frame from its header, before any payload is handed on",
  "limits.socketBufferBytes":
    "integration/legs/api-server/stalled-memory.test.ts: downloads that nobody reads",
  "limits.spdy.maxControlFrameBytes":
    "unit/protocols/spdy/frame-decoder.test.ts: TestReadFrameRejectsOversizedControlFrame",
  "limits.spdy.maxDataFrameBytes":
    "unit/protocols/spdy/frame-vectors.test.ts: is refused by a limit one byte below its payload, not by one that fits",
  "limits.spdy.maxHeaderBlockBytes":
    "unit/protocols/spdy/header-compression.test.ts: refuses a bomb without inflating it",
  "limits.spdy.maxHeaders":
    "unit/protocols/spdy/header-block.test.ts: refuses one header more than its limit",
  "limits.spdy.maxSettingsEntries":
    "unit/protocols/spdy/frame-decoder.test.ts: one SETTINGS entry more than its limit",
  "limits.spdy.maxStreams": "unit/protocols/spdy/session.test.ts: refuses streams beyond maxStreams",
  "limits.stalledPeerBufferBytes":
    "unit/config/configuration.test.ts: a stall buffer that payload alone could fill",
  "podProbes.leaderElection.leaseDuration":
    "integration/probes/elected-prober.test.ts: killed with -9 it is followed",
  "podProbes.leaderElection.renewDeadline":
    "integration/probes/elected-prober.test.ts: stood still past its Lease",
  "podProbes.threads": "integration/probes/probe-threads.test.ts",
  "policy.limits.maxSessionsPerNamespace":
    "integration/legs/api-server/access/policy.test.ts: sessions at once",
  "policy.limits.maxSessionsPerUser": "integration/legs/api-server/access/policy.test.ts: sessions at once",
  "policy.rules.idleTimeout": "integration/legs/api-server/access/policy.test.ts: idle",
  "policy.rules.maxDuration": "integration/legs/api-server/access/policy.test.ts: total duration",
  "quotaStore.commandTimeout": "real/quota-store.test.ts: stands still or is slow",
  "quotaStore.lease":
    "real/quota-store.test.ts: a lease time after a replica was killed | unit/access/policy/quota-leases.test.ts: are renewed three times",
  "resumption.maxSessions":
    "integration/sessions/resumption.test.ts: serves plainly where there is no more room | integration/legs/kubelet/resumed-node-leg.test.ts: is as any other | integration/app/worker-resumption.test.ts: counts with those",
  "resumption.maxTotalBytes":
    "integration/sessions/resumption.test.ts: serves plainly where all sessions together",
  "resumption.window":
    "integration/sessions/resumption.test.ts: ends a session whose client does not come back in time",
  "resumption.windowBytes": "unit/protocols/resume/session.test.ts: stops at the window while nobody reads",
  "timeouts.apiServerRequest":
    "integration/listeners/exchange-times.test.ts: a request to an API server that never stops",
  "timeouts.dial": "integration/net/dial.test.ts: covers the TLS handshake with its deadline",
  "timeouts.handshake":
    "integration/ingress/front-door.test.ts: a request head that does not end | integration/listeners/unfinished-heads.test.ts: is closed in the time of a head",
  "timeouts.idle":
    "integration/legs/api-server/heartbeats.test.ts: deadlines of a session | integration/listeners/exchange-times.test.ts: an exchange that may be silent",
  "timeouts.keepAlive": "integration/ingress/keep-alive.test.ts",
  "timeouts.lingerIdle": "integration/net/linger.test.ts",
  "timeouts.lingerMax":
    "integration/legs/api-server/linger.test.ts: lingerMax | integration/net/linger.test.ts: takes its queue in drops",
  "timeouts.nodeMemory": "unit/nodes/known-nodes.test.ts: ends with time",
  "timeouts.peerDial": "integration/peers/replicas.test.ts: hangs: 503 within the dial time",
  "timeouts.peerList": "integration/peers/replicas.test.ts: hangs: 503 within the dial time",
  "timeouts.requestBody": "integration/listeners/exchange-times.test.ts: a client that owes bytes",
  "timeouts.runtimeCall": "integration/cri/cri-runtime.test.ts: gives up a call that is not answered in time",
  "timeouts.shutdownDelay": "integration/legs/api-server/shutdown.test.ts: serves on for shutdownDelay",
  "timeouts.shutdownGracePeriod":
    "integration/legs/api-server/shutdown.test.ts: after the grace period | integration/legs/api-server/shutdown-requests.test.ts | integration/ingress/graceful-stop.test.ts | integration/app/worker-ingress-stop.test.ts | integration/sessions/resumption.test.ts: does not hold up a shutdown",
  "timeouts.spdyPing": "integration/legs/api-server/heartbeats.test.ts: heartbeats towards the node",
  "timeouts.streamCreation":
    "integration/legs/api-server/heartbeats.test.ts: stream creation | integration/legs/api-server/bridge-command.test.ts: a client that does not open its streams",
  "timeouts.streamIdle":
    "integration/listeners/exchange-times.test.ts | integration/listeners/http2-connections.test.ts: a client that stops reading",
  "timeouts.unsolicitedPong": "integration/legs/api-server/heartbeats.test.ts: while stdin is not taken",
  "timeouts.upgradeResponse":
    "integration/legs/api-server/refusals.test.ts: silence: given up after the response time-out",
  "timeouts.webSocketPing": "integration/legs/api-server/heartbeats.test.ts: heartbeats towards the client",
  "tracing.maxQueuedSpans": "integration/sessions/tracing.test.ts",
  "tracing.timeout": "integration/sessions/tracing.test.ts",
  ACCEPT_WAIT_MS:
    "integration/client/port-forward.test.ts: a server that reads no more | integration/cli/client/port-forward.test.ts: serves the next connection by another way",
  AFTER_DATA_MS: "integration/legs/api-server/bridge-port-forward.test.ts: an error stream that stays open",
  AFTER_STATUS_MS: "integration/legs/api-server/bridge-command.test.ts: a node that has said the status",
  ANSWER_TIMEOUT_MS: "integration/kubernetes/live-cluster.test.ts: asks for smaller pages",
  BODY_LOOK_MS:
    "integration/security/fair-shares.test.ts: beside four users that could hold every seat | unit/http/slow-bodies.test.ts",
  BOUNDARY_WAIT_MS:
    "unit/sessions/pass-through-ends.test.ts: is broken off where the node's frame does not end in time | unit/sessions/forward-ends.test.ts: is broken off where that frame",
  BROKEN_OFF_MS: "integration/sessions/resumption.test.ts: tells a client that comes too late the truth",
  BULK_OUTPUT_BYTES: "unit/sessions/input-hold.test.ts | integration/legs/api-server/hasty-node.test.ts",
  CANCELS_AT_ONCE:
    "unit/http/upstream/cancel-shares.test.ts | integration/ingress/h2c-backends.test.ts: fails no other's",
  CLOSE_WAIT_MS: "integration/client/port-forward.test.ts: is sent nothing more",
  COMPLETED_WINDOW_MS: "unit/sessions/resumable-socket.test.ts",
  CONNECTION_WINDOW_BYTES:
    "integration/listeners/http2-connections.test.ts: takes back its requests | integration/listeners/http2-connections.test.ts: a connection without a stream | integration/listeners/http2-connections.test.ts: frames that are wrong",
  CONNECT_MS:
    "integration/access/policy/lying-quota-store.test.ts: an answer without an end | unit/access/policy/quota-leases.test.ts: wait for nothing",
  DEFAULT_BODY_TIMEOUT_MS:
    "integration/ingress/bad-http2.test.ts: slow bodies | unit/ingress/compile-routes.test.ts: is told and not taken",
  DEFAULT_IDLE_TIMEOUT_MS:
    "integration/http/http1-pool.test.ts: keeps no more idle connections | integration/http/http1-pool.test.ts: closes an idle connection | integration/http/http1-pool.test.ts: up to the limit",
  DEFAULT_MAX_CONNECTIONS: "integration/client/port-forward.test.ts: is sent nothing more",
  DEFAULT_MAX_EXCHANGES_PER_CONNECTION:
    "integration/http/http1-pool.test.ts: keeps no more idle connections | integration/http/http1-pool.test.ts: closes an idle connection | integration/http/http1-pool.test.ts: up to the limit",
  DEFAULT_MAX_IDLE_CONNECTIONS:
    "integration/http/http1-pool.test.ts: keeps no more idle connections | integration/http/http1-pool.test.ts: closes an idle connection | integration/http/http1-pool.test.ts: up to the limit",
  DEFAULT_MAX_RESIZE_BYTES:
    "unit/protocols/remotecommand/resize.test.ts: ends at a value longer than its limit",
  DEFAULT_TUNNEL_IDLE_TIMEOUT_MS:
    "integration/ingress/bad-http2.test.ts: slow bodies | unit/ingress/compile-routes.test.ts: is told and not taken",
  DIAL_MS: "integration/legs/agent/agent.test.ts: that is not there is a 503",
  EVENT_TIMEOUT_MS: "integration/kubernetes/shared-event-recorder.test.ts: keeps so many waiting",
  FILES_AT_ONCE: "integration/cli/copy/growing-file.test.ts",
  FIRST_REQUEST_MS:
    "unit/listeners/unused-connections.test.ts | integration/legs/api-server/shutdown-requests.test.ts: connections without a request",
  HTTP2_IDLE_MS:
    "integration/listeners/http2-connections.test.ts: takes back its requests | integration/listeners/http2-connections.test.ts: a connection without a stream | integration/listeners/http2-connections.test.ts: frames that are wrong",
  IDLE_MS: "integration/client/idle-connection.test.ts: is closed after a second",
  INPUT_GRACE_MS:
    "unit/sessions/command-bridge.test.ts: takes a proper Close for the end of input | unit/sessions/translator.test.ts: ends the input of a client that closes properly",
  KEPT_LIST_MS: "integration/peers/peer-server.test.ts: a list that was not kept",
  KEY_SET_FETCHES: "integration/access/authn/oidc.test.ts: so often and no more",
  KILL_AFTER_MS: "integration/app/worker-pool.test.ts: one that does not end is killed",
  KNOWN_POD_ANSWER_MS: "cluster/outage.test.ts: although the API server hangs",
  LEARNED_LIMIT_MS: "integration/ingress/h2c-backends.test.ts: refuses streams past five",
  MAX_ACCEPTED_CREDENTIALS: "unit/legs/api-server/accepted-credentials.test.ts",
  MAX_ACCESS_REVIEWS_IN_FLIGHT:
    "unit/access/authz/webhook/webhook-authorizer.test.ts: are reviewed so many at a time | unit/access/authz/webhook/webhook-authorizer.test.ts: overlong attributes",
  MAX_ALIASED_NODES: "unit/config/yaml-documents.test.ts",
  MAX_ANSWER_BYTES: "integration/kubernetes/live-cluster.test.ts: asks for smaller pages",
  MAX_AUDITED_TEXT_CHARACTERS:
    "integration/access/audit/audited-requests.test.ts: cuts what a client may write | integration/access/audit/audited-requests.test.ts: a longer answer and whatever secrets hold",
  MAX_AUDITED_URI_CHARACTERS:
    "integration/access/audit/audited-requests.test.ts: cuts what a client may write | integration/access/audit/audited-requests.test.ts: a longer answer and whatever secrets hold",
  MAX_BATCH_CHARACTERS:
    "integration/access/audit/audited-requests.test.ts: on a full disk, refuse | unit/access/audit/audit-file.test.ts: is bounded by its characters too",
  MAX_CACHED_ATTRIBUTE_CHARACTERS:
    "unit/access/authz/webhook/webhook-authorizer.test.ts: are reviewed so many at a time | unit/access/authz/webhook/webhook-authorizer.test.ts: overlong attributes",
  MAX_CANCELLED_STREAMS: "integration/ingress/h2c-backends.test.ts: fails no other's",
  MAX_CHAIN_CERTIFICATES: "integration/peers/replicas.test.ts",
  MAX_CHANGES_OF_CALL:
    "unit/access/policy/quota-leases.test.ts: go together with the next call | unit/access/policy/quota-leases.test.ts: wait for nothing",
  MAX_CHECKPOINTS: "integration/cli/copy/running-hash.test.ts",
  MAX_CLIENT_HELLO_BYTES: "integration/ingress/certificates.test.ts: lets go of clients that do not go on",
  MAX_CLOSE_MS:
    "integration/client/websocket-executor.test.ts: resolves though its server keeps the connection open",
  MAX_EARLY_BYTES:
    "integration/legs/api-server/bounds.test.ts: early bytes: a client that does not wait for its answer is not read without end",
  MAX_VIEW_LINE_BYTES: "integration/cli/client/sessions.test.ts: has a line without an end",
  MAX_WATCH_LINE_BYTES: "integration/cli/client/sessions.test.ts: has a line past its bound",
  MAX_LOST_WATCHES: "integration/cli/client/sessions.test.ts: lists again when its watch is cut",
  MAX_DISCOVERY_BYTES: "integration/legs/api-server/merge-discovery.test.ts: past its bound",
  MAX_REMEMBERED_CHANGES: "unit/session-api/session-feed.test.ts: are forgotten past a bound",
  MAX_KEPT_SESSION_LISTS: "unit/session-api/session-pager.test.ts: keep a bounded number",
  KEPT_SESSION_LIST_MS: "unit/session-api/session-pager.test.ts: no longer kept",
  MAX_CONTINUE_AGE_MS: "unit/session-api/session-pager.test.ts: answer 410",
  MAX_MODIFIED_AT_ONCE: "unit/session-api/session-feed.test.ts: past what one list may report",
  MAX_VIEWERS_PER_SESSION: "unit/sessions/session-outputs.test.ts: so many viewers",
  MAX_VIEWED_SESSIONS: "unit/sessions/session-outputs.test.ts: so many sessions",
  MAX_KEPT_OUTPUT: "unit/sessions/session-outputs.test.ts: misses the oldest",
  MAX_OUTPUT_PAGE: "unit/sessions/session-outputs.test.ts: in pages",
  KEPT_OVER_MS: "unit/app/runtime/worker-sessions.test.ts: and no longer",
  MAX_KEPT_OVER: "unit/app/runtime/worker-sessions.test.ts: remembers so many",
  MAX_INPUT_BATCH: "unit/sessions/joined-session.test.ts: each of a bounded size",
  MAX_JOINED_INPUT: "unit/sessions/joined-session.test.ts: so much of its input waits",
  MAX_DEAF_MS: "unit/sessions/joined-session.test.ts: takes no more input",
  MAX_JOIN_REQUEST_BYTES: "integration/peers/peer-server.test.ts: a joiner types into a session",
  MAX_JOINER_SILENCE_MS: "unit/sessions/session-joins.test.ts: silent for too long",
  MAX_JOINED_STATUS_BYTES: "unit/sessions/session-joins.test.ts: are told the node's own Status",
  MAX_PENDING_INPUT: "unit/sessions/joined-input.test.ts: queued for a node that reads nothing",
  OUTPUT_WAIT_MS: "unit/sessions/session-outputs.test.ts: waits for a while",
  MAX_OPEN_SEQUENCE: "unit/sessions/screens/open-sequence.test.ts: ends in the middle of",
  MAX_SCREEN_TAIL: "unit/sessions/screens/screens.test.ts: when its oldest is dropped",
  MAX_TAIL_SIZES: "unit/sessions/screens/screens.test.ts: few of them",
  MAX_SCREENED_SESSIONS: "unit/sessions/screens/screens.test.ts: of terminals up to a size",
  MAX_SCREEN_CELLS: "unit/sessions/screens/screens.test.ts: of terminals up to a size",
  MAX_EMULATED_SCREENS: "unit/sessions/screens/screens.test.ts: the longest emulated one gives way",
  MAX_EMULATED_BYTES_PER_SECOND: "unit/sessions/screens/screens.test.ts: may be incomplete behind a flood",
  MAX_SCREEN_AHEAD_BYTES: "unit/sessions/screens/screens.test.ts: a thread that stands still",
  MAX_SCREEN_WAIT_MS: "unit/sessions/session-outputs.test.ts: not drawn in time",
  MAX_VIEWER_NAME: "unit/sessions/session-outputs.test.ts: is asked for behind",
  MAX_PEER_WORKERS: "unit/peers/peer-protocol.test.ts: by an index that a worker may have",
  MAX_PEER_PROBLEM: "unit/peers/peer-protocol.test.ts: by an index that a worker may have",
  MAX_NAMED_MISSING: "unit/peers/peer-protocol.test.ts: a warning names 16",
  MAX_VIEWER_SILENCE_MS: "unit/sessions/session-outputs.test.ts: is gone",
  MAX_UNANSWERED_MS: "unit/session-api/output-stream.test.ts: gives no answer for too long",
  MAX_REAUTHORIZATIONS_AT_ONCE: "unit/sessions/reauthorizer.test.ts: are checked so many at once",
  MAX_READ_PATCH_BYTES: "unit/legs/ephemeral-containers.test.ts: is marked, and passes unchanged",
  MAX_AGENT_CHARACTERS: "unit/sessions/session-info.test.ts: a long User-Agent cut",
  MAX_LIST_MS: "integration/app/silent-worker.test.ts: name a worker that does not answer",
  MAX_END_MS: "unit/sessions/session-actions.test.ts: that does not come in time",
  END_HOP_MS: "integration/peers/replicas.test.ts: hangs: 503 within the dial time",
  MAX_END_REQUEST_BYTES: "integration/peers/peer-server.test.ts: that is none is refused",
  MAX_END_WAIT_MS: "unit/sessions/lifecycle.test.ts: may delay the report of the end",
  MAX_EVENT_BYTES: "unit/kubernetes/event-lines.test.ts: an endless event",
  MAX_EXTRA_KEYS: "unit/access/authn/impersonation.test.ts: more keys than anybody sends",
  MAX_FILE_BYTES: "integration/cli/load/load.test.ts: refuses a file above the bound before it is read",
  MAX_FORWARDED_HOPS: "integration/security/edge.test.ts: are no more hops than a request makes",
  MAX_ARCHIVE_ENTRIES: "integration/cli/copy/hostile-archives.test.ts: more entries than allowed",
  MAX_HEADER_BYTES: "integration/cli/cp-bad-servers.test.ts: 5 GiB",
  MAX_HEAD_BYTES: "integration/sessions/owner-server.test.ts: refuses a head",
  MAX_HEALTH_CHECKS:
    "integration/security/fair-shares.test.ts: every request of others is served, and health checks",
  MAX_HEALTH_CHECKS_PER_ADDRESS:
    "integration/security/fair-shares.test.ts: every request of others is served, and health checks",
  MAX_HELD_PIECE_BYTES: "unit/sessions/input-hold.test.ts | integration/legs/api-server/hasty-node.test.ts",
  MAX_HTTP2_CONNECTIONS: "integration/ingress/h2c-backends.test.ts: refuses streams past five",
  MAX_INPUT_HOLD_MS: "unit/sessions/input-hold.test.ts | integration/legs/api-server/hasty-node.test.ts",
  MAX_INVALID_FRAMES:
    "integration/listeners/http2-connections.test.ts: takes back its requests | integration/listeners/http2-connections.test.ts: a connection without a stream | integration/listeners/http2-connections.test.ts: frames that are wrong",
  MAX_INTERIM_ANSWERS: "integration/access/hostile-servers.test.ts: interim answers are read to the bound",
  MAX_JSON_ANSWER_BYTES: "integration/http/upstream/ask-json.test.ts: an endless answer",
  MAX_JWT_AUTHENTICATORS: "unit/config/jwt-authenticators.test.ts: are 64 at most",
  MAX_KEPT_BODY_BYTES:
    "integration/ingress/h2c-backends.test.ts: refuses streams past five | integration/ingress/h2c-backends.test.ts: what a GOAWAY leaves out",
  MAX_KEPT_BYTES:
    "integration/conformance/run-cases.test.ts: keeps the first bytes, and counts, hashes and checks all",
  MAX_KEPT_CONNECTIONS: "integration/app/hand-over.test.ts: has a copy here up to a bound",
  MAX_KEPT_LISTS: "integration/peers/peer-server.test.ts: few lists are kept",
  MAX_KNOWN_PROBES: "unit/probes/described-probe.test.ts: no more are known than the bound says",
  MAX_KUBECONFIG_BYTES: "unit/kubernetes/kubeconfig.test.ts: a file past the bound",
  MAX_LINGERING: "integration/probes/close-order.test.ts",
  MAX_LINGER_MS: "integration/probes/close-order.test.ts",
  MAX_LISTED_SESSIONS: "integration/cli/client/changed-answers.test.ts: pages do not end",
  MAX_QUOTED_NAMES: "integration/net/odd-certificates.test.ts: is refused in few words",
  MAX_QUOTED_NAME_CHARACTERS: "integration/net/odd-certificates.test.ts: is refused in few words",
  MAX_VERSION_CHARACTERS:
    "integration/kubernetes/hostile-api-server.test.ts: no version that no honest server's request could hold",
  MAX_LISTED_OBJECTS: "unit/kubernetes/endless-list.test.ts",
  MAX_LOGGED_BAD_OBJECTS: "integration/kubernetes/bad-objects.test.ts: is logged once",
  MAX_LOGGED_CHARACTERS:
    "unit/observability/logger.test.ts: cuts what peers choose | unit/observability/logger.test.ts: bounds what it writes",
  MAX_LOGGED_FAULTS:
    "unit/observability/faults.test.ts: faults are logged so often in a minute | integration/faults/process.test.ts",
  MAX_LOGGED_PATH_CHARACTERS:
    "unit/observability/logger.test.ts: cuts what peers choose | unit/observability/logger.test.ts: bounds what it writes",
  MAX_LOGGED_REFUSALS:
    "integration/security/edge.test.ts: on loopback is not dialled by a gateway that was not told to",
  MAX_LOGGED_STACK_CHARACTERS:
    "unit/observability/logger.test.ts: cuts what peers choose | unit/observability/logger.test.ts: bounds what it writes",
  MAX_MANIFEST_FILES:
    "unit/cluster/manifest-files.test.ts: a folder of more files than allowed is refused before one is read",
  MAX_MANIFEST_FILE_BYTES:
    "unit/cluster/manifest-files.test.ts: a folder of more files than allowed is refused before one is read",
  MAX_MERGED_ENTRIES:
    "unit/config/yaml-documents.test.ts: more aliases than are looked up | unit/config/yaml-documents.test.ts: merges of a large map | unit/config/yaml-documents.test.ts: a long chain of merges",
  MAX_MESSAGE_BYTES: "integration/probes/grpc-probe.test.ts: a message of more than 4 MiB is refused",
  MAX_OBJECT_BYTES: "integration/client/get-object.test.ts: an endless answer",
  MAX_OBJECT_DEPTH:
    "integration/access/audit/audited-requests.test.ts: goes on after an object | unit/access/audit/write-event.test.ts | integration/cli/client/malformed-answers.test.ts: says so",
  MAX_OUTPUT_BYTES: "integration/probes/http-probe.test.ts: TestHTTPProbeChecker_PayloadTruncated",
  MAX_OWED_PINGS: "unit/sessions/pass-through-heartbeats.test.ts: are owed to a client up to a bound",
  MAX_UNTAKEN_BYTES:
    "unit/client/browser-command.test.ts: whose output the page does not take | unit/client/browser-port.test.ts: whose data the page does not take",
  MAX_UNSENT_INPUT_BYTES: "unit/client/browser-command.test.ts: reads no input while",
  MAX_PART_BYTES: "integration/client/bulk-streams.test.ts: input of an iterable",
  MAX_PATH_CERTIFICATES: "integration/access/authn/certificates.test.ts: follows eight certificates",
  MAX_PEER_LIST_BYTES:
    "integration/peers/peer-server.test.ts: are listed page by page | integration/peers/replicas.test.ts: answers with more than is read",
  MAX_WATCHED_RECORDINGS: "unit/session-api/recording-feed.test.ts: is too much past a bound",
  KEPT_RECORDINGS_MS: "unit/session-api/recording-feed.test.ts: forgets them when nobody",
  MAX_PEER_LIST_CHARACTERS:
    "integration/peers/peer-server.test.ts: before they fill the memory | unit/session-api/peer-recordings.test.ts: would fill the memory",
  MAX_PEER_RECORDINGS: "unit/session-api/peer-recordings.test.ts: past a bound",
  MAX_RECORDINGS_PAGE_CHARACTERS: "unit/session-api/peer-recordings.test.ts: with long names",
  MAX_RECORDINGS_QUESTION_BYTES:
    "integration/peers/peer-server.test.ts: a question about recordings that is too long",
  PEER_PAGE_RECORDINGS: "unit/session-api/peer-recordings.test.ts: page by page",
  RECORDING_PART_BYTES: "integration/peers/recordings.test.ts: in parts if they are long",
  MAX_PEER_LIST_TIMES: "integration/peers/peer-server.test.ts: are given up when ten pages' time is over",
  MAX_PEER_PAGES: "integration/peers/peer-server.test.ts: are not collected without end",
  MAX_PENDING_EVENTS: "integration/kubernetes/shared-event-recorder.test.ts: keeps so many waiting",
  MAX_PIPELINED_REQUESTS: "integration/legs/api-server/pipelining.test.ts: are served one at a time",
  MAX_PLUGIN_OUTPUT_BYTES: "integration/kubernetes/exec-plugin.test.ts: is killed when it prints without end",
  MAX_PORTS: "unit/protocols/portforward/stream-headers.test.ts",
  MAX_FORWARD_CONNECTIONS: "integration/legs/api-server/separate-forwards.test.ts: are at most so many",
  MAX_UNUSED_FORWARD_CONNECTIONS:
    "integration/legs/api-server/separate-forwards.test.ts: are kept for the next ones",
  MAX_FORWARD_BUFFER_BYTES:
    "integration/legs/api-server/separate-forwards.test.ts: stop the client once one takes no more",
  FORWARD_STALL_MS:
    "integration/legs/api-server/separate-forwards.test.ts: stop the client once one takes no more",
  MAX_PROXY_HEADER_BYTES:
    "unit/protocols/proxy-protocol/text-header.test.ts: reads a line of the bound's length | unit/protocols/proxy-protocol/decode-header.test.ts: refuses a header past the bound | integration/ingress/proxy-protocol.test.ts: whose header does not end",
  MAX_PROXY_HEAD_BYTES: "integration/net/egress-proxy.test.ts: whose headers do not end",
  MAX_PROXY_LINE_BYTES:
    "unit/protocols/proxy-protocol/text-header.test.ts: reads a line of the bound's length | unit/protocols/proxy-protocol/decode-header.test.ts: refuses a header past the bound | integration/ingress/proxy-protocol.test.ts: whose header does not end",
  MAX_PUBLISHED_FEATURES: "unit/cluster/locate.test.ts: up to a bound",
  MAX_QUEUED_CHARACTERS:
    "integration/access/audit/audited-requests.test.ts: on a full disk, refuse | unit/access/audit/audit-file.test.ts: is bounded by its characters too | unit/ingress/access-log.test.ts: past the bound",
  MAX_QUEUED_FOR_FILE:
    "integration/access/audit/audited-requests.test.ts: on a full disk, refuse | unit/access/audit/audit-file.test.ts: is bounded by its characters too",
  MAX_QUEUED_LINES: "unit/ingress/access-log.test.ts: past the bound",
  MAX_QUOTA_ANSWER_BYTES: "integration/access/policy/lying-quota-store.test.ts: an answer without an end",
  MAX_QUOTED_REFUSAL_CHARACTERS: "integration/client/connect.test.ts: shows only the start of a page of HTML",
  MAX_READS_AT_ONCE:
    "integration/kubernetes/read-through.test.ts: asks for so many at once | integration/kubernetes/read-through.test.ts: lets a namespace",
  MAX_READ_AHEAD_BYTES_PER_USER:
    "unit/sessions/input-hold.test.ts: reading ahead | integration/legs/api-server/stalls.test.ts: still sends input",
  MAX_REASON_CHARACTERS: "unit/access/policy/require-policy.test.ts: a reason",
  MAX_REFUSAL_BYTES: "integration/client/connect.test.ts: shows only the start of a page of HTML",
  MAX_REFUSAL_LINGER_MS:
    "integration/http/downstream/client-error.test.ts: a client that neither reads on nor closes",
  MAX_REJECTED_STREAMS:
    "integration/listeners/http2-connections.test.ts: takes back its requests | integration/listeners/http2-connections.test.ts: a connection without a stream | integration/listeners/http2-connections.test.ts: frames that are wrong",
  MAX_REMEMBERED:
    "unit/kubernetes/event-recorder.test.ts: a pod is heard 25 times, then once in five minutes",
  MAX_REMEMBERED_CALLERS: "unit/access/authn/impersonation.test.ts: forgets the modes of the first callers",
  MAX_REMEMBERED_MISSING:
    "integration/kubernetes/read-through.test.ts: asks for so many at once | integration/kubernetes/read-through.test.ts: lets a namespace",
  MAX_REMEMBERED_SESSIONS: "integration/net/dial.test.ts: remembers a bounded number of sessions",
  MAX_RESENDS:
    "integration/ingress/h2c-backends.test.ts: refuses streams past five | integration/ingress/h2c-backends.test.ts: what a GOAWAY leaves out",
  PARTS_A_TURN: "integration/listeners/small-parts.test.ts: are read in many turns",
  MAX_OTHER_FRAME_BYTES:
    "integration/listeners/frame-floods.test.ts: ends its connection | integration/listeners/frame-floods.test.ts: sends such frames as clients do",
  ADMIN_TAKING_MS: "integration/admin/unread-answers.test.ts: takes no byte of an answer",
  REFUSAL_DEADLINE_MS:
    "integration/ingress/unread-refusals.test.ts: ends within its time for clients that read nothing",
  MAX_UNREAD_PARTS: "integration/listeners/small-parts.test.ts: are not read is ended past a bound",
  SPARE_HEADER_PAIRS: "integration/listeners/http2-connections.test.ts: a head has so many lines at most",
  MAX_RESETS_A_SECOND: "integration/listeners/http2-connections.test.ts: takes back its requests",
  MAX_RESPONSE_HEAD_BYTES:
    "integration/probes/bad-servers.test.ts: a head without end is given up at its bound",
  MAX_RESPONSE_OBJECT_BYTES:
    "integration/access/audit/audited-requests.test.ts: cuts what a client may write | integration/access/audit/audited-requests.test.ts: a longer answer and whatever secrets hold",
  MAX_REVIEWS_IN_FLIGHT:
    "unit/access/authn/token-review.test.ts: are reviewed so many at a time | unit/access/authn/token-review.test.ts: do not keep a token from",
  MAX_REVIEW_BYTES: "integration/legs/api-server/access/reviews.test.ts: an oversized review",
  MAX_ROUTE_PROBLEMS: "unit/ingress/route-problems.test.ts: has a bound",
  MAX_SEARCHED_CHARACTERS:
    "unit/observability/logger.test.ts: cuts what peers choose | unit/observability/logger.test.ts: bounds what it writes",
  MAX_SENT_HEADER_BLOCK_BYTES: "fuzz/any-answer.test.ts",
  MAX_SESSION_KEYS: "integration/peers/replicas.test.ts: are session keys that follow their file",
  MAX_SILENT_BEATS: "integration/app/prober-watch.test.ts",
  MAX_STATE_CHARACTERS: "unit/observability/trace-context.test.ts: keeps the state of vendors",
  MAX_STATUS_BYTES:
    "unit/sessions/end-observer.test.ts: a status that is too large | unit/sessions/command-result.test.ts: that is larger | unit/sessions/first-message-observer.test.ts: keeps no more of a Status than its bound | integration/client/websocket-executor.test.ts: a status of 65 KiB",
  MAX_STOP_MS:
    "unit/lifecycle/supervisor.test.ts: fails to stop or never does | unit/lifecycle/supervisor.test.ts: stops what does not drain",
  MAX_STREAM_BUFFER_BYTES:
    "integration/client/port-forward.test.ts: a server that reads no more | integration/cli/client/port-forward.test.ts: serves the next connection by another way",
  MAX_SUCCESSOR_START_MS: "integration/cli/successor.test.ts: does not serve in time",
  MAX_TERMINAL_HOLD_MS: "unit/sessions/input-hold.test.ts | integration/legs/api-server/hasty-node.test.ts",
  MAX_TEXT_CHARACTERS: "unit/config/jwt-authenticators.test.ts: have prefixes of 1,024 characters at most",
  MAX_TOTAL_READ_AHEAD_BYTES:
    "unit/sessions/input-hold.test.ts: reading ahead | integration/legs/api-server/stalls.test.ts: still sends input",
  MAX_TRIES: "unit/ingress/sticky-endpoints.test.ts: stays with that one",
  MAX_TURNS: "integration/legs/api-server/shutdown-requests.test.ts: only the system had accepted them",
  MAX_UNCAUGHT_EXCEPTIONS: "integration/faults/process.test.ts",
  MAX_UNKNOWN_FIELDS:
    "unit/api/validation/kubernetes-shapes.test.ts: end at a hundred | unit/config/configuration.test.ts: is read in linear time",
  MAX_UNSENT_BYTES: "integration/probes/bad-servers.test.ts",
  MAX_UPGRADE_STATUS_BYTES: "unit/api/status.test.ts: statusBody with a bound",
  MAX_VALUE_CHARACTERS: "unit/protocols/resume/negotiation.test.ts: refuses the request",
  MAX_WAIT_FOR_WORKER_MS:
    "integration/app/hand-over.test.ts: is answered with 503 over plain HTTP | integration/app/hand-over.test.ts: is answered with the alert",
  MAX_WAITING: "integration/cli/copy/file-pieces.test.ts: holds its source up",
  MAX_WAITING_ACCESS_REVIEWS:
    "unit/access/authz/webhook/webhook-authorizer.test.ts: are reviewed so many at a time | unit/access/authz/webhook/webhook-authorizer.test.ts: overlong attributes",
  MAX_WAITING_CONNECTIONS:
    "integration/app/hand-over.test.ts: waiting for a worker | integration/app/hand-over.test.ts: has a copy here up to a bound",
  MAX_WAITING_READS:
    "integration/kubernetes/read-through.test.ts: asks for so many at once | integration/kubernetes/read-through.test.ts: lets a namespace",
  MAX_WAITING_REVIEWS:
    "unit/access/authn/token-review.test.ts: are reviewed so many at a time | unit/access/authn/token-review.test.ts: do not keep a token from",
  MAX_WANTED: "unit/access/authn/impersonation.test.ts: the headers are too many",
  MAX_WATCHED_SECRETS: "unit/kubernetes/named-secrets.test.ts: so many and no more",
  MAX_WEBHOOK_CONNECTIONS:
    "unit/access/authz/webhook/webhook-authorizer.test.ts: are reviewed so many at a time",
  MAX_WORKERS: "unit/config/sections/workers.test.ts",
  MAX_WRONG_PROOFS: "integration/sessions/resumption.test.ts: looks at 8 wrong proofs",
  MAX_YAML_ALIASES:
    "unit/config/yaml-documents.test.ts: more aliases than are looked up | unit/config/yaml-documents.test.ts: merges of a large map | unit/config/yaml-documents.test.ts: a long chain of merges",
  MAX_CONFIGURATION_CHARACTERS: "unit/config/yaml-documents.test.ts: a configuration past its bound",
  MAX_NAMED_FILE_BYTES: "unit/config/named-files.test.ts: the file has more than 16777216 bytes",
  MAX_YAML_CHARACTERS: "unit/config/yaml-documents.test.ts",
  MAX_YAML_DEPTH: "unit/config/yaml-documents.test.ts",
  OFFERED_WINDOW_BYTES:
    "integration/sessions/resumption.test.ts: finds out on both sides that a connection is dead | integration/sessions/resumption-http2.test.ts",
  PEER_PAGE_SESSIONS: "integration/peers/peer-server.test.ts: are listed page by page",
  PLUGIN_PIPE_MS:
    "integration/kubernetes/exec-plugin.test.ts: that ends while what it started holds the pipe",
  EXPLAIN_PLUGIN_TIMEOUT_MS: "integration/cli/explain/explain-user.test.ts: a plugin that does not answer",
  PLUGIN_TIMEOUT_MS:
    "integration/kubernetes/exec-plugin.test.ts: that says nothing is waited for only so long",
  PROVIDER_TIMEOUT_MS: "integration/kubernetes/oidc-provider.test.ts: waits for a provider only so long",
  QUEUE_WAIT_MS:
    "unit/net/fair-queue.test.ts: ends every wait | unit/access/authn/token-review.test.ts: waits so long for its turn | unit/access/authz/webhook/webhook-authorizer.test.ts: a question waits so long | integration/security/fair-shares.test.ts: every request of others is served, and health checks",
  READ_AHEAD_BYTES:
    "unit/sessions/input-hold.test.ts: reading ahead | integration/legs/api-server/stalls.test.ts: still sends input",
  RECONNECT_WINDOW_MS:
    "integration/client/port-forward.test.ts: a server that reads no more | integration/cli/client/port-forward.test.ts: serves the next connection by another way | integration/cli/client/port-forward.test.ts: survives the replacement",
  REFUSAL_BODY_DEADLINE_MS: "integration/http/upstream/response-body.test.ts: is given up at its deadline",
  REFUSAL_LINGER_MS:
    "integration/http/downstream/client-error.test.ts: a client that neither reads on nor closes",
  REFUSAL_LOG_INTERVAL_MS: "integration/ingress/proxy-protocol.test.ts: once a minute in the log",
  REPLACED_DELAY_MS: "integration/cli/serve/replace-program.test.ts",
  REQUESTS_A_TURN: "integration/listeners/request-turns.test.ts",
  REFUSED_REQUESTS_A_TURN: "integration/listeners/request-turns.test.ts: begin few requests beside others",
  MAX_REFUSED_ADDRESSES: "unit/listeners/request-turns.test.ts: so many refused addresses are known",
  RESET_DELAY_MS: "integration/client/port-forward.test.ts: is sent nothing more",
  SPARE_MS:
    "integration/net/spare-connections.test.ts: is closed when no session wants it | unit/net/freed-memory.test.ts: are dropped if nobody took them",
  STREAM_STALL_TIMEOUT_MS:
    "integration/client/port-forward.test.ts: a server that reads no more | integration/cli/client/port-forward.test.ts: serves the next connection by another way",
  TLS_FAILURE_INTERVAL_MS: "integration/ingress/tls-backends.test.ts: a log line says why, once",
  WATCH_END_GRACE_MS:
    "integration/kubernetes/live-cluster.test.ts: gives up a watch | integration/kubernetes/live-cluster.test.ts: begins a silent watch again",
  WATCH_OPEN_MS:
    "integration/kubernetes/live-cluster.test.ts: gives up a watch | integration/kubernetes/live-cluster.test.ts: begins a silent watch again",
  WATCH_SILENCE_MS: "integration/kubernetes/live-cluster.test.ts: begins a silent watch again",
  WITHDRAW_TIMEOUT_MS: "unit/kubernetes/feature-publisher.test.ts: at most once in an interval",
  maxChunkLineBytes:
    "unit/protocols/http1/response-decoder.test.ts: heads that are too long | unit/protocols/http1/response-decoder.test.ts: chunk lines that are too long | integration/http/upstream/response-body.test.ts",
  maxContinuationFrames:
    "unit/protocols/http2/client-connection.test.ts: a header block in endless small frames",
  maxForwardBufferBytes: "integration/fake-node/refusals.test.ts: a head as long as a kubelet takes",
  maxFrameBytes: "unit/protocols/http2/frame-decoder.test.ts: refuses a frame by its header",
  maxHeadBytes:
    "unit/protocols/http1/response-decoder.test.ts: heads that are too long | unit/protocols/http1/response-decoder.test.ts: chunk lines that are too long | integration/http/upstream/response-body.test.ts",
  maxHeaderListBytes: "unit/protocols/http2/client-connection.test.ts",
  maxHeaders:
    "unit/protocols/http1/response-decoder.test.ts: heads that are too long | unit/protocols/http1/response-decoder.test.ts: chunk lines that are too long | integration/http/upstream/response-body.test.ts",
  maxLogBytes: "integration/fake-node/refusals.test.ts: a head as long as a kubelet takes",
  maxQueuedBytes: "integration/fake-node/refusals.test.ts: a head as long as a kubelet takes",
  maxStdinBufferBytes: "integration/fake-node/refusals.test.ts: a head as long as a kubelet takes",
  streamCreationTimeoutMs: "integration/fake-node/refusals.test.ts: a head as long as a kubelet takes",
  streamStallTimeoutMs: "integration/fake-node/refusals.test.ts: a head as long as a kubelet takes",
};
