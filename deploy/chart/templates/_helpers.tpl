{{- /* What every template shares. A component is called with (dict "root" $ "name" "gateway" "values" .Values.gateway). */ -}}

{{- define "sluice.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "sluice.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "sluice.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "sluice.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "sluice.componentName" -}}
{{ include "sluice.fullname" .root }}-{{ .name }}
{{- end }}

{{- /* Immutable in a Deployment: no version and no chart here. */ -}}
{{- define "sluice.selectorLabels" -}}
app.kubernetes.io/name: {{ include "sluice.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "sluice.labels" -}}
{{ include "sluice.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: sluice
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sluice.serviceAccountName" -}}
{{- if .values.serviceAccount.create -}}
{{- default (include "sluice.componentName" .) .values.serviceAccount.name -}}
{{- else -}}
{{- required (printf "%s.serviceAccount.name is required where %s.serviceAccount.create is false" .name .name) .values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- define "sluice.image" -}}
{{- $image := .Values.image -}}
{{- with $image.registry }}{{ . }}/{{ end -}}
{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default .Chart.AppVersion $image.tag }}{{ end -}}
{{- end }}

{{- /* The chart's configuration with the user's merged over it, as YAML. Called with "base" besides. */ -}}
{{- define "sluice.configuration" -}}
{{- $merged := mergeOverwrite (fromYaml .base) (deepCopy .values.config) -}}
apiVersion: sluice.dev/v1alpha1
kind: GatewayConfiguration
{{ toYaml (omit $merged "apiVersion" "kind") }}
{{- end }}

{{- /* A port of the merged configuration. Called with "base", "listener" and, unless it is "port", "field" besides. */ -}}
{{- define "sluice.listenerPort" -}}
{{- $merged := mergeOverwrite (fromYaml .base) (deepCopy .values.config) -}}
{{- index $merged.listeners .listener (default "port" .field) -}}
{{- end }}

{{- define "sluice.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "sluice.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}
