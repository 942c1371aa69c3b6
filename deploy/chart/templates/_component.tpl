{{- /* The objects of one component. Called with (dict "root" $ "name" "gateway" "values" .Values.gateway "base" <its configuration> "ports" (list of
dicts with name, port, servicePort, appProtocol) "volumes" "volumeMounts" "metrics" <what autoscaling goes by> "peerPort" <of replicas to each other>
"egress" <rules for its own connections>). */ -}}

{{- define "sluice.component" -}}
{{- $root := .root -}}
{{- $values := .values -}}
{{- $preStop := 15 -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "sluice.componentName" . }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
data:
  config.yaml: | {{- include "sluice.configuration" . | nindent 4 }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "sluice.componentName" . }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
spec:
  {{- if not $values.autoscaling.enabled }}
  replicas: {{ $values.replicaCount }}
  {{- end }}
  revisionHistoryLimit: 3
  # A pod that drains keeps its sessions, while its successor is ready already.
  strategy: { type: RollingUpdate, rollingUpdate: { maxSurge: 25%, maxUnavailable: 0 } }
  minReadySeconds: 10
  selector:
    matchLabels: {{- include "sluice.selectorLabels" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "sluice.labels" . | nindent 8 }}
        {{- with $values.podLabels }}{{ toYaml . | nindent 8 }}{{ end }}
      annotations:
        checksum/config: {{ include "sluice.configuration" . | sha256sum }}
        {{- with $values.podAnnotations }}{{ toYaml . | nindent 8 }}{{ end }}
    spec:
      serviceAccountName: {{ include "sluice.serviceAccountName" . }}
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets: {{- range . }}
        - name: {{ . }}
      {{- end }}
      {{- end }}
      securityContext: {{- include "sluice.podSecurityContext" $root | nindent 8 }}
      # preStop, the sessions' own time, and what the last words take.
      terminationGracePeriodSeconds: {{ add $preStop $values.shutdownGracePeriodSeconds 10 }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
        - maxSkew: 1
          topologyKey: {{ . }}
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- include "sluice.selectorLabels" $ | nindent 14 }}
          matchLabelKeys: [pod-template-hash]
        {{- end }}
      containers:
        - name: sluice
          image: {{ include "sluice.image" $root }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          args:
            - serve
            - --config
            - /etc/sluice/config.yaml
            {{- range $values.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          {{- $writesCost := dig "cluster" "podDeletionCost" false $values.config }}
          {{- if or $writesCost $values.extraEnv }}
          env:
            {{- if $writesCost }}
            - { name: POD_NAME, valueFrom: { fieldRef: { fieldPath: metadata.name } } }
            {{- end }}
            {{- with $values.extraEnv }}{{ toYaml . | nindent 12 }}{{ end }}
          {{- end }}
          ports:
            {{- range .ports }}
            - { name: {{ .name }}, containerPort: {{ .port }} }
            {{- end }}
            - { name: admin, containerPort: {{ include "sluice.listenerPort" (merge (dict "listener" "admin") .) }} }
            {{- with .peerPort }}
            - { name: peer, containerPort: {{ . }} }
            {{- end }}
          startupProbe:
            httpGet: { path: /livez, port: admin }
            periodSeconds: 2
            failureThreshold: 60
          livenessProbe:
            httpGet: { path: /livez, port: admin }
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet: { path: /readyz, port: admin }
            periodSeconds: 5
            timeoutSeconds: 5
          # Load balancers learn of the end while connections are still accepted.
          lifecycle: { preStop: { sleep: { seconds: {{ $preStop }} } } }
          securityContext: {{- include "sluice.containerSecurityContext" $root | nindent 12 }}
          resources: {{- toYaml $values.resources | nindent 12 }}
          volumeMounts:
            - { name: config, mountPath: /etc/sluice, readOnly: true }
            # Sockets between the workers.
            - { name: tmp, mountPath: /tmp }
            {{- with .volumeMounts }}{{ toYaml . | nindent 12 }}{{ end }}
            {{- with $values.extraVolumeMounts }}{{ toYaml . | nindent 12 }}{{ end }}
      volumes:
        - { name: config, configMap: { name: {{ include "sluice.componentName" . }} } }
        - { name: tmp, emptyDir: { medium: Memory, sizeLimit: 16Mi } }
        {{- with .volumes }}{{ toYaml . | nindent 8 }}{{ end }}
        {{- with $values.extraVolumes }}{{ toYaml . | nindent 8 }}{{ end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "sluice.componentName" . }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
  {{- with $values.service.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ $values.service.type }}
  {{- with $values.service.externalTrafficPolicy }}
  {{- if ne $values.service.type "ClusterIP" }}
  externalTrafficPolicy: {{ . }}
  {{- end }}
  {{- end }}
  {{- with $values.service.loadBalancerSourceRanges }}
  loadBalancerSourceRanges: {{- toYaml . | nindent 4 }}
  {{- end }}
  selector: {{- include "sluice.selectorLabels" . | nindent 4 }}
  ports:
    {{- range .ports }}
    - { name: {{ .name }}, port: {{ .servicePort }}, targetPort: {{ .name }}, appProtocol: {{ .appProtocol }} }
    {{- end }}
---
# The admin listener is never on the Service above.
apiVersion: v1
kind: Service
metadata:
  name: {{ include "sluice.componentName" . }}-admin
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
    sluice.dev/listener: admin
spec:
  type: ClusterIP
  clusterIP: None
  # A pod that drains is scraped to its end.
  publishNotReadyAddresses: true
  selector: {{- include "sluice.selectorLabels" . | nindent 4 }}
  ports:
    - { name: admin, port: 8081, targetPort: admin, appProtocol: http }
{{- if and $values.rbac.create (include "sluice.prober.areNodesGiven" .) }}
---
{{ include "sluice.prober.rbac" . }}
{{- end }}
{{- if and $values.rbac.create (dig "cluster" "podDeletionCost" false $values.config) }}
---
# cluster.podDeletionCost: the replicas annotate themselves.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ include "sluice.componentName" . }}-deletion-cost
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
rules:
  - { apiGroups: [""], resources: [pods], verbs: [patch] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ include "sluice.componentName" . }}-deletion-cost
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "sluice.componentName" . }}-deletion-cost
subjects:
  - kind: ServiceAccount
    name: {{ include "sluice.serviceAccountName" . }}
    namespace: {{ $root.Release.Namespace }}
---
{{ include "sluice.deletionCost.policy" . }}
{{- end }}
{{- if $values.serviceAccount.create }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "sluice.serviceAccountName" . }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
  {{- with $values.serviceAccount.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- if or $values.autoscaling.enabled (gt (int $values.replicaCount) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "sluice.componentName" . }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "sluice.selectorLabels" . | nindent 6 }}
{{- end }}
{{- if and $values.autoscaling.enabled $values.autoscaling.horizontalPodAutoscaler }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ include "sluice.componentName" . }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: {{ include "sluice.componentName" . }} }
  minReplicas: {{ $values.autoscaling.minReplicas }}
  maxReplicas: {{ $values.autoscaling.maxReplicas }}
  metrics: {{- .metrics | nindent 4 }}
  behavior:
    # Sessions stay where they are: scale in slowly, one replica at a time.
    scaleDown:
      stabilizationWindowSeconds: {{ $values.autoscaling.scaleDown.stabilizationWindowSeconds }}
      selectPolicy: Min
      policies: [{ type: Pods, value: 1, periodSeconds: {{ $values.autoscaling.scaleDown.periodSeconds }} }]
{{- end }}
{{- if $root.Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "sluice.componentName" . }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- include "sluice.selectorLabels" . | nindent 6 }}
  {{- $limitsEgress := and .egress $root.Values.networkPolicy.egress.enabled }}
  policyTypes: [Ingress{{ if $limitsEgress }}, Egress{{ end }}]
  ingress:
    - ports:
        {{- range .ports }}
        - { port: {{ .name }} }
        {{- end }}
    # It names users and pods. The kubelet's probes come from the node, which policies let through.
    - from:
        - podSelector: {}
        {{- with $root.Values.networkPolicy.metricsNamespaceSelector }}
        - namespaceSelector: {{- toYaml . | nindent 12 }}
        {{- end }}
      ports:
        - { port: admin }
    {{- if .peerPort }}
    - from:
        - podSelector:
            matchLabels: {{- include "sluice.selectorLabels" . | nindent 14 }}
      ports:
        - { port: peer }
    {{- end }}
  {{- if $limitsEgress }}
  egress: {{- .egress | nindent 4 }}
  {{- end }}
{{- end }}
{{- if $root.Values.monitoring.serviceMonitor.enabled }}
{{- if not ($root.Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor") }}
{{- fail "monitoring.serviceMonitor.enabled needs the CRDs of the Prometheus operator (rendering without a cluster: --api-versions monitoring.coreos.com/v1/ServiceMonitor)" }}
{{- end }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ include "sluice.componentName" . }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
    {{- with $root.Values.monitoring.serviceMonitor.labels }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  selector:
    matchLabels: {{- include "sluice.selectorLabels" . | nindent 6 }}
      sluice.dev/listener: admin
  endpoints:
    - { port: admin, interval: {{ $root.Values.monitoring.serviceMonitor.interval }} }
{{- end }}
{{- end }}
