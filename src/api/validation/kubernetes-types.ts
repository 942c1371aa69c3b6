/**
 * Written by scripts/build-kubernetes-types.mjs, not by hand: every type of Kubernetes 1.37.2
 * of the kinds that Sluice reads, one a line. src/api/validation/kubernetes-shapes.ts
 * reads them.
 */
export const KUBERNETES_TYPES = `
any: v1.FieldsV1
integerOrString: intstr.IntOrString
map[][]uint8: map[string][]uint8
map[]resource.Quantity: v1.ResourceList
map[]string: map[string]string
map[]v1.ClaimResourceStatus: map[v1.ResourceName]v1.ClaimResourceStatus
microtime: v1.MicroTime
quantity: resource.Quantity
string: types.UID v1.AddressType v1.AppArmorProfileType v1.AzureDataDiskCachingMode v1.AzureDataDiskKind v1.Capability v1.ClaimResourceStatus v1.CompletionMode v1.ConcurrencyPolicy v1.ConditionStatus v1.ContainerRestartPolicy v1.ContainerRestartRuleAction v1.ContainerRestartRuleOnExitCodesOperator v1.CoordinatedLeaseStrategy v1.DNSPolicy v1.DaemonSetConditionType v1.DaemonSetUpdateStrategyType v1.DeploymentConditionType v1.DeploymentStrategyType v1.FinalizerName v1.GRPCProbeMode v1.HTTPProtocol v1.HostPathType v1.IPFamily v1.IPFamilyPolicy v1.JobConditionType v1.LabelSelectorOperator v1.LoadBalancerIPMode v1.ManagedFieldsOperationType v1.MountPropagationMode v1.NamespaceConditionType v1.NamespacePhase v1.NodeAddressType v1.NodeConditionType v1.NodeInclusionPolicy v1.NodePhase v1.NodeSelectorOperator v1.OSName v1.PathType v1.PersistentVolumeAccessMode v1.PersistentVolumeClaimConditionType v1.PersistentVolumeClaimModifyVolumeStatus v1.PersistentVolumeClaimPhase v1.PersistentVolumeClaimRetentionPolicyType v1.PersistentVolumeMode v1.PodConditionType v1.PodFSGroupChangePolicy v1.PodFailurePolicyAction v1.PodFailurePolicyOnExitCodesOperator v1.PodManagementPolicyType v1.PodPhase v1.PodQOSClass v1.PodReplacementPolicy v1.PodResizeStatus v1.PodSELinuxChangePolicy v1.PreemptionPolicy v1.ProcMountType v1.Protocol v1.PullPolicy v1.RecursiveReadOnlyMode v1.ReplicaSetConditionType v1.ReplicationControllerConditionType v1.ResourceHealthStatus v1.ResourceID v1.ResourceName v1.ResourceResizeRestartPolicy v1.RestartPolicy v1.SeccompProfileType v1.SecretType v1.ServiceAffinity v1.ServiceExternalTrafficPolicy v1.ServiceInternalTrafficPolicy v1.ServiceType v1.Signal v1.StatefulSetConditionType v1.StatefulSetUpdateStrategyType v1.StorageMedium v1.SupplementalGroupsPolicy v1.TaintEffect v1.TerminationMessagePolicy v1.TolerationOperator v1.URIScheme v1.UniqueVolumeName v1.UnsatisfiableConstraintAction v1.VolumeHealthStatusType v1beta1.PathType
time: v1.Time
v1.AWSElasticBlockStoreVolumeSource fsType=string partition=int32 readOnly=bool volumeID=string
v1.Affinity nodeAffinity=v1.NodeAffinity podAffinity=v1.PodAffinity podAntiAffinity=v1.PodAntiAffinity
v1.AggregationRule clusterRoleSelectors=[]v1.LabelSelector
v1.AppArmorProfile localhostProfile=string type=v1.AppArmorProfileType
v1.AttachedVolume devicePath=string name=v1.UniqueVolumeName
v1.AzureDiskVolumeSource cachingMode=v1.AzureDataDiskCachingMode diskName=string diskURI=string fsType=string kind=v1.AzureDataDiskKind readOnly=bool
v1.AzureFileVolumeSource readOnly=bool secretName=string shareName=string
v1.CSIVolumeSource driver=string fsType=string nodePublishSecretRef=v1.LocalObjectReference readOnly=bool volumeAttributes=map[string]string
v1.Capabilities add=[]v1.Capability drop=[]v1.Capability
v1.CephFSVolumeSource monitors=[]string path=string readOnly=bool secretFile=string secretRef=v1.LocalObjectReference user=string
v1.CinderVolumeSource fsType=string readOnly=bool secretRef=v1.LocalObjectReference volumeID=string
v1.ClientIPConfig timeoutSeconds=int32
v1.ClusterRole TypeMeta.apiVersion=string TypeMeta.kind=string aggregationRule=v1.AggregationRule metadata=v1.ObjectMeta rules=[]v1.PolicyRule
v1.ClusterRoleBinding TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta roleRef=v1.RoleRef subjects=[]v1.Subject
v1.ClusterTrustBundleProjection labelSelector=v1.LabelSelector name=string optional=bool path=string signerName=string user=int64
v1.Condition lastTransitionTime=v1.Time message=string observedGeneration=int64 reason=string status=v1.ConditionStatus type=string
v1.ConfigMapEnvSource LocalObjectReference.name=string optional=bool
v1.ConfigMapKeySelector LocalObjectReference.name=string key=string optional=bool
v1.ConfigMapNodeConfigSource kubeletConfigKey=string name=string namespace=string resourceVersion=string uid=types.UID
v1.ConfigMapProjection LocalObjectReference.name=string items=[]v1.KeyToPath optional=bool
v1.ConfigMapVolumeSource LocalObjectReference.name=string defaultMode=int32 defaultUser=int64 items=[]v1.KeyToPath optional=bool
v1.Container args=[]string command=[]string env=[]v1.EnvVar envFrom=[]v1.EnvFromSource image=string imagePullPolicy=v1.PullPolicy lifecycle=v1.Lifecycle livenessProbe=v1.Probe name=string ports=[]v1.ContainerPort readinessProbe=v1.Probe resizePolicy=[]v1.ContainerResizePolicy resources=v1.ResourceRequirements restartPolicy=v1.ContainerRestartPolicy restartPolicyRules=[]v1.ContainerRestartRule securityContext=v1.SecurityContext startupProbe=v1.Probe stdin=bool stdinOnce=bool terminationMessagePath=string terminationMessagePolicy=v1.TerminationMessagePolicy tty=bool volumeDevices=[]v1.VolumeDevice volumeMounts=[]v1.VolumeMount workingDir=string
v1.ContainerExtendedResourceRequest containerName=string requestName=string resourceName=string
v1.ContainerImage names=[]string sizeBytes=int64
v1.ContainerPort containerPort=int32 hostIP=string hostPort=int32 name=string protocol=v1.Protocol
v1.ContainerResizePolicy resourceName=v1.ResourceName restartPolicy=v1.ResourceResizeRestartPolicy
v1.ContainerRestartRule action=v1.ContainerRestartRuleAction exitCodes=v1.ContainerRestartRuleOnExitCodes
v1.ContainerRestartRuleOnExitCodes operator=v1.ContainerRestartRuleOnExitCodesOperator values=[]int32
v1.ContainerState running=v1.ContainerStateRunning terminated=v1.ContainerStateTerminated waiting=v1.ContainerStateWaiting
v1.ContainerStateRunning startedAt=v1.Time
v1.ContainerStateTerminated containerID=string exitCode=int32 finishedAt=v1.Time message=string reason=string signal=int32 startedAt=v1.Time
v1.ContainerStateWaiting message=string reason=string
v1.ContainerStatus allocatedResources=v1.ResourceList allocatedResourcesStatus=[]v1.ResourceStatus containerID=string image=string imageID=string lastState=v1.ContainerState name=string ready=bool resources=v1.ResourceRequirements restartCount=int32 started=bool state=v1.ContainerState stopSignal=v1.Signal user=v1.ContainerUser volumeMounts=[]v1.VolumeMountStatus
v1.ContainerUser linux=v1.LinuxContainerUser
v1.CronJob TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1.CronJobSpec status=v1.CronJobStatus
v1.CronJobSpec concurrencyPolicy=v1.ConcurrencyPolicy failedJobsHistoryLimit=int32 jobTemplate=v1.JobTemplateSpec schedule=string startingDeadlineSeconds=int64 successfulJobsHistoryLimit=int32 suspend=bool timeZone=string
v1.CronJobStatus active=[]v1.ObjectReference lastScheduleTime=v1.Time lastSuccessfulTime=v1.Time
v1.DaemonEndpoint Port=int32
v1.DaemonSet TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1.DaemonSetSpec status=v1.DaemonSetStatus
v1.DaemonSetCondition lastTransitionTime=v1.Time message=string reason=string status=v1.ConditionStatus type=v1.DaemonSetConditionType
v1.DaemonSetSpec minReadySeconds=int32 revisionHistoryLimit=int32 selector=v1.LabelSelector template=v1.PodTemplateSpec updateStrategy=v1.DaemonSetUpdateStrategy
v1.DaemonSetStatus collisionCount=int32 conditions=[]v1.DaemonSetCondition currentNumberScheduled=int32 desiredNumberScheduled=int32 numberAvailable=int32 numberMisscheduled=int32 numberReady=int32 numberUnavailable=int32 observedGeneration=int64 updatedNumberScheduled=int32
v1.DaemonSetUpdateStrategy rollingUpdate=v1.RollingUpdateDaemonSet type=v1.DaemonSetUpdateStrategyType
v1.Deployment TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1.DeploymentSpec status=v1.DeploymentStatus
v1.DeploymentCondition lastTransitionTime=v1.Time lastUpdateTime=v1.Time message=string reason=string status=v1.ConditionStatus type=v1.DeploymentConditionType
v1.DeploymentSpec minReadySeconds=int32 paused=bool progressDeadlineSeconds=int32 replicas=int32 revisionHistoryLimit=int32 selector=v1.LabelSelector strategy=v1.DeploymentStrategy template=v1.PodTemplateSpec
v1.DeploymentStatus availableReplicas=int32 collisionCount=int32 conditions=[]v1.DeploymentCondition observedGeneration=int64 readyReplicas=int32 replicas=int32 terminatingReplicas=int32 unavailableReplicas=int32 updatedReplicas=int32
v1.DeploymentStrategy rollingUpdate=v1.RollingUpdateDeployment type=v1.DeploymentStrategyType
v1.DownwardAPIProjection items=[]v1.DownwardAPIVolumeFile
v1.DownwardAPIVolumeFile fieldRef=v1.ObjectFieldSelector mode=int32 path=string resourceFieldRef=v1.ResourceFieldSelector user=int64
v1.DownwardAPIVolumeSource defaultMode=int32 defaultUser=int64 items=[]v1.DownwardAPIVolumeFile
v1.EmptyDirVolumeSource medium=v1.StorageMedium mode=int32 sizeLimit=resource.Quantity
v1.Endpoint addresses=[]string conditions=v1.EndpointConditions deprecatedTopology=map[string]string hints=v1.EndpointHints hostname=string nodeName=string targetRef=v1.ObjectReference zone=string
v1.EndpointConditions ready=bool serving=bool terminating=bool
v1.EndpointHints forNodes=[]v1.ForNode forZones=[]v1.ForZone
v1.EndpointPort appProtocol=string name=string port=int32 protocol=v1.Protocol
v1.EndpointSlice TypeMeta.apiVersion=string TypeMeta.kind=string addressType=v1.AddressType endpoints=[]v1.Endpoint metadata=v1.ObjectMeta ports=[]v1.EndpointPort
v1.EnvFromSource configMapRef=v1.ConfigMapEnvSource prefix=string secretRef=v1.SecretEnvSource
v1.EnvVar name=string value=string valueFrom=v1.EnvVarSource
v1.EnvVarSource configMapKeyRef=v1.ConfigMapKeySelector fieldRef=v1.ObjectFieldSelector fileKeyRef=v1.FileKeySelector resourceFieldRef=v1.ResourceFieldSelector secretKeyRef=v1.SecretKeySelector
v1.EphemeralContainer EphemeralContainerCommon.args=[]string EphemeralContainerCommon.command=[]string EphemeralContainerCommon.env=[]v1.EnvVar EphemeralContainerCommon.envFrom=[]v1.EnvFromSource EphemeralContainerCommon.image=string EphemeralContainerCommon.imagePullPolicy=v1.PullPolicy EphemeralContainerCommon.lifecycle=v1.Lifecycle EphemeralContainerCommon.livenessProbe=v1.Probe EphemeralContainerCommon.name=string EphemeralContainerCommon.ports=[]v1.ContainerPort EphemeralContainerCommon.readinessProbe=v1.Probe EphemeralContainerCommon.resizePolicy=[]v1.ContainerResizePolicy EphemeralContainerCommon.resources=v1.ResourceRequirements EphemeralContainerCommon.restartPolicy=v1.ContainerRestartPolicy EphemeralContainerCommon.restartPolicyRules=[]v1.ContainerRestartRule EphemeralContainerCommon.securityContext=v1.SecurityContext EphemeralContainerCommon.startupProbe=v1.Probe EphemeralContainerCommon.stdin=bool EphemeralContainerCommon.stdinOnce=bool EphemeralContainerCommon.terminationMessagePath=string EphemeralContainerCommon.terminationMessagePolicy=v1.TerminationMessagePolicy EphemeralContainerCommon.tty=bool EphemeralContainerCommon.volumeDevices=[]v1.VolumeDevice EphemeralContainerCommon.volumeMounts=[]v1.VolumeMount EphemeralContainerCommon.workingDir=string targetContainerName=string
v1.EphemeralVolumeSource volumeClaimTemplate=v1.PersistentVolumeClaimTemplate
v1.EvictionResponder name=string priority=int32
v1.ExecAction command=[]string
v1.FCVolumeSource fsType=string lun=int32 readOnly=bool targetWWNs=[]string wwids=[]string
v1.FileKeySelector key=string optional=bool path=string volumeName=string
v1.FlexVolumeSource driver=string fsType=string options=map[string]string readOnly=bool secretRef=v1.LocalObjectReference
v1.FlockerVolumeSource datasetName=string datasetUUID=string
v1.ForNode name=string
v1.ForZone name=string
v1.GCEPersistentDiskVolumeSource fsType=string partition=int32 pdName=string readOnly=bool
v1.GRPCAction mode=v1.GRPCProbeMode port=int32 service=string
v1.GitRepoVolumeSource directory=string repository=string revision=string
v1.GlusterfsVolumeSource endpoints=string path=string readOnly=bool
v1.HTTPGetAction host=string httpHeaders=[]v1.HTTPHeader path=string port=intstr.IntOrString protocol=v1.HTTPProtocol scheme=v1.URIScheme
v1.HTTPHeader name=string value=string
v1.HTTPIngressPath backend=v1.IngressBackend path=string pathType=v1.PathType
v1.HTTPIngressRuleValue paths=[]v1.HTTPIngressPath
v1.HostAlias hostnames=[]string ip=string
v1.HostIP ip=string
v1.HostPathVolumeSource path=string type=v1.HostPathType
v1.ISCSIVolumeSource chapAuthDiscovery=bool chapAuthSession=bool fsType=string initiatorName=string iqn=string iscsiInterface=string lun=int32 portals=[]string readOnly=bool secretRef=v1.LocalObjectReference targetPortal=string
v1.ImageVolumeSource pullPolicy=v1.PullPolicy reference=string
v1.ImageVolumeStatus imageRef=string
v1.Ingress TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1.IngressSpec status=v1.IngressStatus
v1.IngressBackend resource=v1.TypedLocalObjectReference service=v1.IngressServiceBackend
v1.IngressClass TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1.IngressClassSpec
v1.IngressClassParametersReference apiGroup=string kind=string name=string namespace=string scope=string
v1.IngressClassSpec controller=string parameters=v1.IngressClassParametersReference
v1.IngressLoadBalancerIngress hostname=string ip=string ports=[]v1.IngressPortStatus
v1.IngressLoadBalancerStatus ingress=[]v1.IngressLoadBalancerIngress
v1.IngressPortStatus error=string port=int32 protocol=v1.Protocol
v1.IngressRule IngressRuleValue.http=v1.HTTPIngressRuleValue host=string
v1.IngressServiceBackend name=string port=v1.ServiceBackendPort
v1.IngressSpec defaultBackend=v1.IngressBackend ingressClassName=string rules=[]v1.IngressRule tls=[]v1.IngressTLS
v1.IngressStatus loadBalancer=v1.IngressLoadBalancerStatus
v1.IngressTLS hosts=[]string secretName=string
v1.Job TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1.JobSpec status=v1.JobStatus
v1.JobCondition lastProbeTime=v1.Time lastTransitionTime=v1.Time message=string reason=string status=v1.ConditionStatus type=v1.JobConditionType
v1.JobSchedulingConfiguration disruptionMode=v1alpha3.WorkloadPodGroupDisruptionMode resourceClaims=[]v1alpha3.WorkloadPodGroupResourceClaim schedulingConstraints=v1alpha3.WorkloadPodGroupSchedulingConstraints schedulingPolicy=v1alpha3.WorkloadPodGroupSchedulingPolicy
v1.JobSpec activeDeadlineSeconds=int64 backoffLimit=int32 backoffLimitPerIndex=int32 completionMode=v1.CompletionMode completions=int32 managedBy=string manualSelector=bool maxFailedIndexes=int32 parallelism=int32 podFailurePolicy=v1.PodFailurePolicy podReplacementPolicy=v1.PodReplacementPolicy scheduling=v1.JobSchedulingConfiguration selector=v1.LabelSelector successPolicy=v1.SuccessPolicy suspend=bool template=v1.PodTemplateSpec ttlSecondsAfterFinished=int32
v1.JobStatus active=int32 completedIndexes=string completionTime=v1.Time conditions=[]v1.JobCondition failed=int32 failedIndexes=string ready=int32 startTime=v1.Time succeeded=int32 terminating=int32 uncountedTerminatedPods=v1.UncountedTerminatedPods
v1.JobTemplateSpec metadata=v1.ObjectMeta spec=v1.JobSpec
v1.KeyToPath key=string mode=int32 path=string user=int64
v1.LabelSelector matchExpressions=[]v1.LabelSelectorRequirement matchLabels=map[string]string
v1.LabelSelectorRequirement key=string operator=v1.LabelSelectorOperator values=[]string
v1.Lease TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1.LeaseSpec
v1.LeaseSpec acquireTime=v1.MicroTime holderIdentity=string leaseDurationSeconds=int32 leaseTransitions=int32 preferredHolder=string renewTime=v1.MicroTime strategy=v1.CoordinatedLeaseStrategy
v1.Lifecycle postStart=v1.LifecycleHandler preStop=v1.LifecycleHandler stopSignal=v1.Signal
v1.LifecycleHandler exec=v1.ExecAction httpGet=v1.HTTPGetAction sleep=v1.SleepAction tcpSocket=v1.TCPSocketAction
v1.LinuxContainerUser gid=int64 supplementalGroups=[]int64 uid=int64
v1.LoadBalancerIngress hostname=string ip=string ipMode=v1.LoadBalancerIPMode ports=[]v1.PortStatus
v1.LoadBalancerStatus ingress=[]v1.LoadBalancerIngress
v1.LocalObjectReference name=string
v1.ManagedFieldsEntry apiVersion=string fieldsType=string fieldsV1=v1.FieldsV1 manager=string operation=v1.ManagedFieldsOperationType subresource=string time=v1.Time
v1.ModifyVolumeStatus status=v1.PersistentVolumeClaimModifyVolumeStatus targetVolumeAttributesClassName=string
v1.NFSVolumeSource path=string readOnly=bool server=string
v1.Namespace TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1.NamespaceSpec status=v1.NamespaceStatus
v1.NamespaceCondition lastTransitionTime=v1.Time message=string reason=string status=v1.ConditionStatus type=v1.NamespaceConditionType
v1.NamespaceSpec finalizers=[]v1.FinalizerName
v1.NamespaceStatus conditions=[]v1.NamespaceCondition phase=v1.NamespacePhase
v1.Node TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1.NodeSpec status=v1.NodeStatus
v1.NodeAddress address=string type=v1.NodeAddressType
v1.NodeAffinity preferredDuringSchedulingIgnoredDuringExecution=[]v1.PreferredSchedulingTerm requiredDuringSchedulingIgnoredDuringExecution=v1.NodeSelector
v1.NodeAllocatableMappedResources name=v1.ResourceName quantity=resource.Quantity
v1.NodeAllocatableOverheadResources name=v1.ResourceName perContainer=resource.Quantity perPod=resource.Quantity
v1.NodeAllocatableResourceClaimStatus containers=[]string mapping=[]v1.NodeAllocatableMappedResources overhead=[]v1.NodeAllocatableOverheadResources resourceClaimName=string
v1.NodeCondition lastHeartbeatTime=v1.Time lastTransitionTime=v1.Time message=string reason=string status=v1.ConditionStatus type=v1.NodeConditionType
v1.NodeConfigSource configMap=v1.ConfigMapNodeConfigSource
v1.NodeConfigStatus active=v1.NodeConfigSource assigned=v1.NodeConfigSource error=string lastKnownGood=v1.NodeConfigSource
v1.NodeDaemonEndpoints kubeletEndpoint=v1.DaemonEndpoint
v1.NodeFeatures supplementalGroupsPolicy=bool
v1.NodePodPreemptionPolicy disableResizePreemption=[]string
v1.NodeRuntimeHandler features=v1.NodeRuntimeHandlerFeatures name=string
v1.NodeRuntimeHandlerFeatures recursiveReadOnlyMounts=bool userNamespaces=bool
v1.NodeSelector nodeSelectorTerms=[]v1.NodeSelectorTerm
v1.NodeSelectorRequirement key=string operator=v1.NodeSelectorOperator values=[]string
v1.NodeSelectorTerm matchExpressions=[]v1.NodeSelectorRequirement matchFields=[]v1.NodeSelectorRequirement
v1.NodeSpec configSource=v1.NodeConfigSource externalID=string podCIDR=string podCIDRs=[]string podPreemptionPolicy=v1.NodePodPreemptionPolicy providerID=string taints=[]v1.Taint unschedulable=bool
v1.NodeStatus addresses=[]v1.NodeAddress allocatable=v1.ResourceList capacity=v1.ResourceList conditions=[]v1.NodeCondition config=v1.NodeConfigStatus daemonEndpoints=v1.NodeDaemonEndpoints declaredFeatures=[]string features=v1.NodeFeatures images=[]v1.ContainerImage nodeInfo=v1.NodeSystemInfo phase=v1.NodePhase runtimeHandlers=[]v1.NodeRuntimeHandler volumesAttached=[]v1.AttachedVolume volumesInUse=[]v1.UniqueVolumeName
v1.NodeSwapStatus capacity=int64
v1.NodeSystemInfo architecture=string bootID=string containerRuntimeVersion=string kernelVersion=string kubeProxyVersion=string kubeletVersion=string machineID=string operatingSystem=string osImage=string runningInUserNamespace=bool swap=v1.NodeSwapStatus systemUUID=string
v1.ObjectFieldSelector apiVersion=string fieldPath=string
v1.ObjectMeta annotations=map[string]string creationTimestamp=v1.Time deletionGracePeriodSeconds=int64 deletionTimestamp=v1.Time finalizers=[]string generateName=string generation=int64 labels=map[string]string managedFields=[]v1.ManagedFieldsEntry name=string namespace=string ownerReferences=[]v1.OwnerReference resourceVersion=string selfLink=string uid=types.UID
v1.ObjectReference apiVersion=string fieldPath=string kind=string name=string namespace=string resourceVersion=string uid=types.UID
v1.OwnerReference apiVersion=string blockOwnerDeletion=bool controller=bool kind=string name=string uid=types.UID
v1.PersistentVolumeClaim TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1.PersistentVolumeClaimSpec status=v1.PersistentVolumeClaimStatus
v1.PersistentVolumeClaimCondition lastProbeTime=v1.Time lastTransitionTime=v1.Time message=string reason=string status=v1.ConditionStatus type=v1.PersistentVolumeClaimConditionType
v1.PersistentVolumeClaimSpec accessModes=[]v1.PersistentVolumeAccessMode dataSource=v1.TypedLocalObjectReference dataSourceRef=v1.TypedObjectReference resources=v1.VolumeResourceRequirements selector=v1.LabelSelector storageClassName=string volumeAttributesClassName=string volumeMode=v1.PersistentVolumeMode volumeName=string
v1.PersistentVolumeClaimStatus accessModes=[]v1.PersistentVolumeAccessMode allocatedResourceStatuses=map[v1.ResourceName]v1.ClaimResourceStatus allocatedResources=v1.ResourceList capacity=v1.ResourceList conditions=[]v1.PersistentVolumeClaimCondition currentVolumeAttributesClassName=string healthStatus=v1.VolumeHealthStatus modifyVolumeStatus=v1.ModifyVolumeStatus phase=v1.PersistentVolumeClaimPhase
v1.PersistentVolumeClaimTemplate metadata=v1.ObjectMeta spec=v1.PersistentVolumeClaimSpec
v1.PersistentVolumeClaimVolumeSource claimName=string readOnly=bool
v1.PhotonPersistentDiskVolumeSource fsType=string pdID=string
v1.Pod TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1.PodSpec status=v1.PodStatus
v1.PodAffinity preferredDuringSchedulingIgnoredDuringExecution=[]v1.WeightedPodAffinityTerm requiredDuringSchedulingIgnoredDuringExecution=[]v1.PodAffinityTerm
v1.PodAffinityTerm labelSelector=v1.LabelSelector matchLabelKeys=[]string mismatchLabelKeys=[]string namespaceSelector=v1.LabelSelector namespaces=[]string topologyKey=string
v1.PodAntiAffinity preferredDuringSchedulingIgnoredDuringExecution=[]v1.WeightedPodAffinityTerm requiredDuringSchedulingIgnoredDuringExecution=[]v1.PodAffinityTerm
v1.PodCertificateProjection certificateChainPath=string credentialBundlePath=string keyPath=string keyType=string maxExpirationSeconds=int32 signerName=string user=int64 userAnnotations=map[string]string
v1.PodCondition lastProbeTime=v1.Time lastTransitionTime=v1.Time message=string observedGeneration=int64 reason=string status=v1.ConditionStatus type=v1.PodConditionType
v1.PodDNSConfig nameservers=[]string options=[]v1.PodDNSConfigOption searches=[]string
v1.PodDNSConfigOption name=string value=string
v1.PodExtendedResourceClaimStatus requestMappings=[]v1.ContainerExtendedResourceRequest resourceClaimName=string
v1.PodFailurePolicy rules=[]v1.PodFailurePolicyRule
v1.PodFailurePolicyOnExitCodesRequirement containerName=string operator=v1.PodFailurePolicyOnExitCodesOperator values=[]int32
v1.PodFailurePolicyOnPodConditionsPattern status=v1.ConditionStatus type=v1.PodConditionType
v1.PodFailurePolicyRule action=v1.PodFailurePolicyAction onExitCodes=v1.PodFailurePolicyOnExitCodesRequirement onPodConditions=[]v1.PodFailurePolicyOnPodConditionsPattern
v1.PodIP ip=string
v1.PodOS name=v1.OSName
v1.PodReadinessGate conditionType=v1.PodConditionType
v1.PodResourceClaim name=string resourceClaimName=string resourceClaimTemplateName=string
v1.PodResourceClaimStatus name=string resourceClaimName=string
v1.PodSchedulingGate name=string
v1.PodSchedulingGroup podGroupName=string
v1.PodSecurityContext appArmorProfile=v1.AppArmorProfile fsGroup=int64 fsGroupChangePolicy=v1.PodFSGroupChangePolicy runAsGroup=int64 runAsNonRoot=bool runAsUser=int64 seLinuxChangePolicy=v1.PodSELinuxChangePolicy seLinuxOptions=v1.SELinuxOptions seccompProfile=v1.SeccompProfile supplementalGroups=[]int64 supplementalGroupsPolicy=v1.SupplementalGroupsPolicy sysctls=[]v1.Sysctl windowsOptions=v1.WindowsSecurityContextOptions
v1.PodSpec activeDeadlineSeconds=int64 affinity=v1.Affinity automountServiceAccountToken=bool containers=[]v1.Container dnsConfig=v1.PodDNSConfig dnsPolicy=v1.DNSPolicy enableServiceLinks=bool ephemeralContainers=[]v1.EphemeralContainer evictionResponders=[]v1.EvictionResponder hostAliases=[]v1.HostAlias hostIPC=bool hostNetwork=bool hostPID=bool hostUsers=bool hostname=string hostnameOverride=string imagePullSecrets=[]v1.LocalObjectReference initContainers=[]v1.Container nodeName=string nodeSelector=map[string]string os=v1.PodOS overhead=v1.ResourceList preemptionPolicy=v1.PreemptionPolicy priority=int32 priorityClassName=string readinessGates=[]v1.PodReadinessGate resourceClaims=[]v1.PodResourceClaim resources=v1.ResourceRequirements restartPolicy=v1.RestartPolicy runtimeClassName=string schedulerName=string schedulingGates=[]v1.PodSchedulingGate schedulingGroup=v1.PodSchedulingGroup securityContext=v1.PodSecurityContext serviceAccount=string serviceAccountName=string setHostnameAsFQDN=bool shareProcessNamespace=bool subdomain=string terminationGracePeriodSeconds=int64 tolerations=[]v1.Toleration topologySpreadConstraints=[]v1.TopologySpreadConstraint volumes=[]v1.Volume
v1.PodStatus allocatedResources=v1.ResourceList conditions=[]v1.PodCondition containerStatuses=[]v1.ContainerStatus ephemeralContainerStatuses=[]v1.ContainerStatus extendedResourceClaimStatus=v1.PodExtendedResourceClaimStatus hostIP=string hostIPs=[]v1.HostIP initContainerStatuses=[]v1.ContainerStatus message=string nodeAllocatableResourceClaimStatuses=[]v1.NodeAllocatableResourceClaimStatus nominatedNodeName=string observedGeneration=int64 phase=v1.PodPhase podIP=string podIPs=[]v1.PodIP qosClass=v1.PodQOSClass reason=string resize=v1.PodResizeStatus resourceClaimStatuses=[]v1.PodResourceClaimStatus resources=v1.ResourceRequirements startTime=v1.Time volumeHealth=[]v1.PodVolumeHealth
v1.PodTemplate TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta template=v1.PodTemplateSpec
v1.PodTemplateSpec metadata=v1.ObjectMeta spec=v1.PodSpec
v1.PodVolumeHealth healthConditions=[]v1.VolumeHealthCondition lastTransitionTime=v1.Time name=string
v1.PolicyRule apiGroups=[]string nonResourceURLs=[]string resourceNames=[]string resources=[]string verbs=[]string
v1.PortStatus error=string port=int32 protocol=v1.Protocol
v1.PortworxVolumeSource fsType=string readOnly=bool volumeID=string
v1.PreferredSchedulingTerm preference=v1.NodeSelectorTerm weight=int32
v1.Probe ProbeHandler.exec=v1.ExecAction ProbeHandler.grpc=v1.GRPCAction ProbeHandler.httpGet=v1.HTTPGetAction ProbeHandler.tcpSocket=v1.TCPSocketAction failureThreshold=int32 initialDelaySeconds=int32 periodSeconds=int32 successThreshold=int32 terminationGracePeriodSeconds=int64 timeoutSeconds=int32
v1.ProjectedVolumeSource defaultMode=int32 defaultUser=int64 sources=[]v1.VolumeProjection
v1.QuobyteVolumeSource group=string readOnly=bool registry=string tenant=string user=string volume=string
v1.RBDVolumeSource fsType=string image=string keyring=string monitors=[]string pool=string readOnly=bool secretRef=v1.LocalObjectReference user=string
v1.ReplicaSet TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1.ReplicaSetSpec status=v1.ReplicaSetStatus
v1.ReplicaSetCondition lastTransitionTime=v1.Time message=string reason=string status=v1.ConditionStatus type=v1.ReplicaSetConditionType
v1.ReplicaSetSpec minReadySeconds=int32 replicas=int32 selector=v1.LabelSelector template=v1.PodTemplateSpec
v1.ReplicaSetStatus availableReplicas=int32 conditions=[]v1.ReplicaSetCondition fullyLabeledReplicas=int32 observedGeneration=int64 readyReplicas=int32 replicas=int32 terminatingReplicas=int32
v1.ReplicationController TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1.ReplicationControllerSpec status=v1.ReplicationControllerStatus
v1.ReplicationControllerCondition lastTransitionTime=v1.Time message=string reason=string status=v1.ConditionStatus type=v1.ReplicationControllerConditionType
v1.ReplicationControllerSpec minReadySeconds=int32 replicas=int32 selector=map[string]string template=v1.PodTemplateSpec
v1.ReplicationControllerStatus availableReplicas=int32 conditions=[]v1.ReplicationControllerCondition fullyLabeledReplicas=int32 observedGeneration=int64 readyReplicas=int32 replicas=int32
v1.ResourceClaim name=string request=string
v1.ResourceFieldSelector containerName=string divisor=resource.Quantity resource=string
v1.ResourceHealth health=v1.ResourceHealthStatus message=string resourceID=v1.ResourceID
v1.ResourceRequirements claims=[]v1.ResourceClaim limits=v1.ResourceList requests=v1.ResourceList
v1.ResourceStatus name=v1.ResourceName resources=[]v1.ResourceHealth
v1.Role TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta rules=[]v1.PolicyRule
v1.RoleBinding TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta roleRef=v1.RoleRef subjects=[]v1.Subject
v1.RoleRef apiGroup=string kind=string name=string
v1.RollingUpdateDaemonSet maxSurge=intstr.IntOrString maxUnavailable=intstr.IntOrString
v1.RollingUpdateDeployment maxSurge=intstr.IntOrString maxUnavailable=intstr.IntOrString
v1.RollingUpdateStatefulSetStrategy maxUnavailable=intstr.IntOrString partition=int32
v1.SELinuxOptions level=string role=string type=string user=string
v1.ScaleIOVolumeSource fsType=string gateway=string protectionDomain=string readOnly=bool secretRef=v1.LocalObjectReference sslEnabled=bool storageMode=string storagePool=string system=string volumeName=string
v1.SeccompProfile localhostProfile=string type=v1.SeccompProfileType
v1.Secret TypeMeta.apiVersion=string TypeMeta.kind=string data=map[string][]uint8 immutable=bool metadata=v1.ObjectMeta stringData=map[string]string type=v1.SecretType
v1.SecretEnvSource LocalObjectReference.name=string optional=bool
v1.SecretKeySelector LocalObjectReference.name=string key=string optional=bool
v1.SecretProjection LocalObjectReference.name=string items=[]v1.KeyToPath optional=bool
v1.SecretVolumeSource defaultMode=int32 defaultUser=int64 items=[]v1.KeyToPath optional=bool secretName=string
v1.SecurityContext allowPrivilegeEscalation=bool appArmorProfile=v1.AppArmorProfile capabilities=v1.Capabilities privileged=bool procMount=v1.ProcMountType readOnlyRootFilesystem=bool runAsGroup=int64 runAsNonRoot=bool runAsUser=int64 seLinuxOptions=v1.SELinuxOptions seccompProfile=v1.SeccompProfile windowsOptions=v1.WindowsSecurityContextOptions
v1.Service TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1.ServiceSpec status=v1.ServiceStatus
v1.ServiceAccountTokenProjection audience=string expirationSeconds=int64 path=string user=int64
v1.ServiceBackendPort name=string number=int32
v1.ServicePort appProtocol=string name=string nodePort=int32 port=int32 protocol=v1.Protocol targetPort=intstr.IntOrString
v1.ServiceSpec allocateLoadBalancerNodePorts=bool clusterIP=string clusterIPs=[]string externalIPs=[]string externalName=string externalTrafficPolicy=v1.ServiceExternalTrafficPolicy healthCheckNodePort=int32 internalTrafficPolicy=v1.ServiceInternalTrafficPolicy ipFamilies=[]v1.IPFamily ipFamilyPolicy=v1.IPFamilyPolicy loadBalancerClass=string loadBalancerIP=string loadBalancerSourceRanges=[]string ports=[]v1.ServicePort publishNotReadyAddresses=bool selector=map[string]string sessionAffinity=v1.ServiceAffinity sessionAffinityConfig=v1.SessionAffinityConfig trafficDistribution=string type=v1.ServiceType
v1.ServiceStatus conditions=[]v1.Condition loadBalancer=v1.LoadBalancerStatus
v1.SessionAffinityConfig clientIP=v1.ClientIPConfig
v1.SleepAction seconds=int64
v1.StatefulSet TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1.StatefulSetSpec status=v1.StatefulSetStatus
v1.StatefulSetCondition lastTransitionTime=v1.Time message=string reason=string status=v1.ConditionStatus type=v1.StatefulSetConditionType
v1.StatefulSetOrdinals start=int32
v1.StatefulSetPersistentVolumeClaimRetentionPolicy whenDeleted=v1.PersistentVolumeClaimRetentionPolicyType whenScaled=v1.PersistentVolumeClaimRetentionPolicyType
v1.StatefulSetSpec minReadySeconds=int32 ordinals=v1.StatefulSetOrdinals persistentVolumeClaimRetentionPolicy=v1.StatefulSetPersistentVolumeClaimRetentionPolicy podManagementPolicy=v1.PodManagementPolicyType replicas=int32 revisionHistoryLimit=int32 selector=v1.LabelSelector serviceName=string template=v1.PodTemplateSpec updateStrategy=v1.StatefulSetUpdateStrategy volumeClaimTemplates=[]v1.PersistentVolumeClaim
v1.StatefulSetStatus availableReplicas=int32 collisionCount=int32 conditions=[]v1.StatefulSetCondition currentReplicas=int32 currentRevision=string observedGeneration=int64 readyReplicas=int32 replicas=int32 updateRevision=string updatedReplicas=int32
v1.StatefulSetUpdateStrategy rollingUpdate=v1.RollingUpdateStatefulSetStrategy type=v1.StatefulSetUpdateStrategyType
v1.StorageOSVolumeSource fsType=string readOnly=bool secretRef=v1.LocalObjectReference volumeName=string volumeNamespace=string
v1.Subject apiGroup=string kind=string name=string namespace=string
v1.SuccessPolicy rules=[]v1.SuccessPolicyRule
v1.SuccessPolicyRule succeededCount=int32 succeededIndexes=string
v1.Sysctl name=string value=string
v1.TCPSocketAction host=string port=intstr.IntOrString
v1.Taint effect=v1.TaintEffect key=string timeAdded=v1.Time value=string
v1.Toleration effect=v1.TaintEffect key=string operator=v1.TolerationOperator tolerationSeconds=int64 value=string
v1.TopologySpreadConstraint labelSelector=v1.LabelSelector matchLabelKeys=[]string maxSkew=int32 minDomains=int32 nodeAffinityPolicy=v1.NodeInclusionPolicy nodeTaintsPolicy=v1.NodeInclusionPolicy topologyKey=string whenUnsatisfiable=v1.UnsatisfiableConstraintAction
v1.TypedLocalObjectReference apiGroup=string kind=string name=string
v1.TypedObjectReference apiGroup=string kind=string name=string namespace=string
v1.UncountedTerminatedPods failed=[]types.UID succeeded=[]types.UID
v1.Volume VolumeSource.awsElasticBlockStore=v1.AWSElasticBlockStoreVolumeSource VolumeSource.azureDisk=v1.AzureDiskVolumeSource VolumeSource.azureFile=v1.AzureFileVolumeSource VolumeSource.cephfs=v1.CephFSVolumeSource VolumeSource.cinder=v1.CinderVolumeSource VolumeSource.configMap=v1.ConfigMapVolumeSource VolumeSource.csi=v1.CSIVolumeSource VolumeSource.downwardAPI=v1.DownwardAPIVolumeSource VolumeSource.emptyDir=v1.EmptyDirVolumeSource VolumeSource.ephemeral=v1.EphemeralVolumeSource VolumeSource.fc=v1.FCVolumeSource VolumeSource.flexVolume=v1.FlexVolumeSource VolumeSource.flocker=v1.FlockerVolumeSource VolumeSource.gcePersistentDisk=v1.GCEPersistentDiskVolumeSource VolumeSource.gitRepo=v1.GitRepoVolumeSource VolumeSource.glusterfs=v1.GlusterfsVolumeSource VolumeSource.hostPath=v1.HostPathVolumeSource VolumeSource.image=v1.ImageVolumeSource VolumeSource.iscsi=v1.ISCSIVolumeSource VolumeSource.nfs=v1.NFSVolumeSource VolumeSource.persistentVolumeClaim=v1.PersistentVolumeClaimVolumeSource VolumeSource.photonPersistentDisk=v1.PhotonPersistentDiskVolumeSource VolumeSource.portworxVolume=v1.PortworxVolumeSource VolumeSource.projected=v1.ProjectedVolumeSource VolumeSource.quobyte=v1.QuobyteVolumeSource VolumeSource.rbd=v1.RBDVolumeSource VolumeSource.scaleIO=v1.ScaleIOVolumeSource VolumeSource.secret=v1.SecretVolumeSource VolumeSource.storageos=v1.StorageOSVolumeSource VolumeSource.vsphereVolume=v1.VsphereVirtualDiskVolumeSource name=string
v1.VolumeDevice devicePath=string name=string
v1.VolumeHealthCondition message=string reason=string status=v1.VolumeHealthStatusType
v1.VolumeHealthStatus healthConditions=[]v1.VolumeHealthCondition lastTransitionTime=v1.Time
v1.VolumeMount bindMountOptions=[]string mountPath=string mountPropagation=v1.MountPropagationMode name=string readOnly=bool recursiveReadOnly=v1.RecursiveReadOnlyMode subPath=string subPathExpr=string
v1.VolumeMountStatus mountPath=string name=string readOnly=bool recursiveReadOnly=v1.RecursiveReadOnlyMode volumeStatus=v1.VolumeStatus
v1.VolumeProjection clusterTrustBundle=v1.ClusterTrustBundleProjection configMap=v1.ConfigMapProjection downwardAPI=v1.DownwardAPIProjection podCertificate=v1.PodCertificateProjection secret=v1.SecretProjection serviceAccountToken=v1.ServiceAccountTokenProjection
v1.VolumeResourceRequirements limits=v1.ResourceList requests=v1.ResourceList
v1.VolumeStatus image=v1.ImageVolumeStatus
v1.VsphereVirtualDiskVolumeSource fsType=string storagePolicyID=string storagePolicyName=string volumePath=string
v1.WeightedPodAffinityTerm podAffinityTerm=v1.PodAffinityTerm weight=int32
v1.WindowsSecurityContextOptions gmsaCredentialSpec=string gmsaCredentialSpecName=string hostProcess=bool runAsUserName=string
v1alpha3.TopologyConstraint key=string
v1alpha3.WorkloadPodGroupAllDisruptionMode
v1alpha3.WorkloadPodGroupBasicSchedulingPolicy
v1alpha3.WorkloadPodGroupDisruptionMode all=v1alpha3.WorkloadPodGroupAllDisruptionMode single=v1alpha3.WorkloadPodGroupSingleDisruptionMode
v1alpha3.WorkloadPodGroupGangSchedulingPolicy minCount=int32
v1alpha3.WorkloadPodGroupResourceClaim name=string resourceClaimName=string resourceClaimTemplateName=string
v1alpha3.WorkloadPodGroupSchedulingConstraints topology=[]v1alpha3.TopologyConstraint
v1alpha3.WorkloadPodGroupSchedulingPolicy basic=v1alpha3.WorkloadPodGroupBasicSchedulingPolicy gang=v1alpha3.WorkloadPodGroupGangSchedulingPolicy
v1alpha3.WorkloadPodGroupSingleDisruptionMode
v1beta1.HTTPIngressPath backend=v1beta1.IngressBackend path=string pathType=v1beta1.PathType
v1beta1.HTTPIngressRuleValue paths=[]v1beta1.HTTPIngressPath
v1beta1.Ingress TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1beta1.IngressSpec status=v1beta1.IngressStatus
v1beta1.IngressBackend resource=v1.TypedLocalObjectReference serviceName=string servicePort=intstr.IntOrString
v1beta1.IngressClass TypeMeta.apiVersion=string TypeMeta.kind=string metadata=v1.ObjectMeta spec=v1beta1.IngressClassSpec
v1beta1.IngressClassParametersReference apiGroup=string kind=string name=string namespace=string scope=string
v1beta1.IngressClassSpec controller=string parameters=v1beta1.IngressClassParametersReference
v1beta1.IngressLoadBalancerIngress hostname=string ip=string ports=[]v1beta1.IngressPortStatus
v1beta1.IngressLoadBalancerStatus ingress=[]v1beta1.IngressLoadBalancerIngress
v1beta1.IngressPortStatus error=string port=int32 protocol=v1.Protocol
v1beta1.IngressRule IngressRuleValue.http=v1beta1.HTTPIngressRuleValue host=string
v1beta1.IngressSpec backend=v1beta1.IngressBackend ingressClassName=string rules=[]v1beta1.IngressRule tls=[]v1beta1.IngressTLS
v1beta1.IngressStatus loadBalancer=v1beta1.IngressLoadBalancerStatus
v1beta1.IngressTLS hosts=[]string secretName=string
`;
