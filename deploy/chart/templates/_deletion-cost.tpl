{{- /* RBAC knows no "own pod": a role with patch on pods may change the image of any pod of the namespace. Admission of the cluster may compare. */ -}}

{{- define "sluice.deletionCost.policy" -}}
{{- $name := printf "%s-%s-deletion-cost" .root.Release.Namespace (include "sluice.componentName" .) -}}
{{- $cost := "controller.kubernetes.io/pod-deletion-cost" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - { apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods] }
  matchConditions:
    - name: own-account
      expression: request.userInfo.username == "system:serviceaccount:{{ .root.Release.Namespace }}:{{ include "sluice.serviceAccountName" . }}"
  variables:
    - { name: before, expression: "has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}" }
    - { name: after, expression: "has(object.metadata.annotations) ? object.metadata.annotations : {}" }
  validations:
    # The token of a pod names the pod.
    - expression: >-
        has(request.userInfo.extra) && "authentication.kubernetes.io/pod-name" in request.userInfo.extra &&
        object.metadata.name in request.userInfo.extra["authentication.kubernetes.io/pod-name"]
      message: a replica of Sluice annotates its own pod alone
    - expression: >-
        object.spec == oldObject.spec &&
        (has(object.metadata.labels) ? object.metadata.labels : {}) == (has(oldObject.metadata.labels) ? oldObject.metadata.labels : {}) &&
        (has(object.metadata.finalizers) ? object.metadata.finalizers : []) == (has(oldObject.metadata.finalizers) ? oldObject.metadata.finalizers : []) &&
        (has(object.metadata.ownerReferences) ? object.metadata.ownerReferences : []) == (has(oldObject.metadata.ownerReferences) ? oldObject.metadata.ownerReferences : []) &&
        variables.after.all(key, key == "{{ $cost }}" || (key in variables.before && variables.before[key] == variables.after[key])) &&
        variables.before.all(key, key == "{{ $cost }}" || key in variables.after)
      message: a replica of Sluice changes nothing of its pod but {{ $cost }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels: {{- include "sluice.labels" . | nindent 4 }}
spec:
  policyName: {{ $name }}
  validationActions: [Deny]
  matchResources:
    namespaceSelector:
      matchLabels: { kubernetes.io/metadata.name: {{ .root.Release.Namespace }} }
{{- end }}
