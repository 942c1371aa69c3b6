{{- /* The Indexed Job of a load. Jobs are immutable: one with another load has another name. */ -}}

{{- define "sluice.load.jobName" -}}
{{ include "sluice.componentName" . }}-{{ include "sluice.load.spec" . | sha256sum | trunc 8 }}
{{- end }}

{{- define "sluice.load.spec" -}}
completionMode: Indexed
completions: {{ .values.parts }}
# All at once: parts that follow each other are no load of all.
parallelism: {{ .values.parts }}
# A part that failed is not repeated alone.
backoffLimitPerIndex: 0
activeDeadlineSeconds: {{ .values.activeDeadlineSeconds }}
{{- with .values.ttlSecondsAfterFinished }}
ttlSecondsAfterFinished: {{ . }}
{{- end }}
template:
  metadata:
    labels: {{- include "sluice.labels" . | nindent 6 }}
      {{- with .values.podLabels }}{{ toYaml . | nindent 6 }}{{ end }}
    {{- with .values.podAnnotations }}
    annotations: {{- toYaml . | nindent 6 }}
    {{- end }}
  spec:
    serviceAccountName: {{ include "sluice.serviceAccountName" . }}
    {{- with .root.Values.imagePullSecrets }}
    imagePullSecrets: {{- range . }}
      - name: {{ . }}
    {{- end }}
    {{- end }}
    restartPolicy: Never
    securityContext: {{- include "sluice.podSecurityContext" .root | nindent 6 }}
    {{- with .values.priorityClassName }}
    priorityClassName: {{ . }}
    {{- end }}
    {{- with .values.nodeSelector }}
    nodeSelector: {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .values.tolerations }}
    tolerations: {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .values.affinity }}
    affinity: {{- toYaml . | nindent 6 }}
    {{- end }}
    topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector:
          matchLabels: {{- include "sluice.selectorLabels" . | nindent 12 }}
    containers:
      - name: load
        image: {{ include "sluice.image" .root }}
        imagePullPolicy: {{ .root.Values.image.pullPolicy }}
        args:
          {{- range fromYamlArray (include "sluice.load.arguments" .) }}
          - {{ . | quote }}
          {{- end }}
        securityContext: {{- include "sluice.containerSecurityContext" .root | nindent 10 }}
        resources: {{- toYaml .values.resources | nindent 10 }}
        volumeMounts:
          - { name: files, mountPath: /etc/sluice-load, readOnly: true }
    volumes:
      # A kubeconfig, or authorities of the server's certificate.
      - name: files
        secret: { secretName: {{ default (include "sluice.componentName" .) .values.existingSecret }}, optional: {{ empty .values.existingSecret }} }
{{- end }}

{{- /* As `sluice load job` has them: where the load goes decides what the pods authenticate by. */ -}}
{{- define "sluice.load.arguments" -}}
{{- $given := .values.arguments -}}
{{- if not $given }}{{ fail "load.arguments is required, such as [exec, web, --sessions=100]" }}{{ end }}
{{- if has (first $given) (list "http" "merge" "job") }}{{ fail (printf "load.arguments: %s is not for a job" (first $given)) }}{{ end }}
{{- $flags := dict }}
{{- $isOver := false }}
{{- range $given }}
{{- if eq . "--" }}{{ $isOver = true }}{{ end }}
{{- if not $isOver }}{{ $_ := set $flags (regexReplaceAll "=.*" . "") true }}{{ end }}
{{- end }}
{{- if regexMatch "(^| )--start-at[= ]\\+" (join " " $given) }}{{ fail "load.arguments: --start-at needs a time: each pod would count from its own start" }}{{ end }}
{{- range list "--part" "--json" "--html" "--threshold" "--token" }}
{{- if hasKey $flags . }}{{ fail (printf "load.arguments: %s is not for the pods of a job" .) }}{{ end }}
{{- end }}
{{- $own := list "load" (printf "--part=$(JOB_COMPLETION_INDEX)/%d" (int .values.parts)) "--json=-" }}
{{- if not (hasKey $flags "--seed") }}{{ $own = append $own "--seed=1" }}{{ end }}
{{- if or (hasKey $flags "--server") (hasKey $flags "--streaming-url") }}
{{- if not (or (hasKey $flags "--token-file") (hasKey $flags "--client-certificate")) }}
{{- $own = append $own "--token-file=/var/run/secrets/kubernetes.io/serviceaccount/token" }}
{{- end }}
{{- else if not (hasKey $flags "--kubeconfig") }}
{{- $own = append $own "--kubeconfig=/etc/sluice-load/kubeconfig" }}
{{- end }}
{{- concat $own $given | toYaml }}
{{- end }}
