// kube-access answers, one JSON line for each, what Kubernetes' own code says of a request: its RequestInfo, RBAC's decision, and who
// an impersonation makes of the caller.
package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	apiservervalidation "k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
)

type subject struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

type question struct {
	// policy, request, authorize, impersonate; labels, fields, quantity, csv, authentication of Text.
	Kind string
	Text string
	// What the selector is to match.
	Set map[string]string

	Roles               []*rbacv1.Role
	RoleBindings        []*rbacv1.RoleBinding
	ClusterRoles        []*rbacv1.ClusterRole
	ClusterRoleBindings []*rbacv1.ClusterRoleBinding

	Method  string
	Target  string
	User    subject
	Headers [][2]string
	// Whether impersonation has the modes of KEP-5284.
	Constrained bool
}

type answer struct {
	Error             string              `json:"error,omitempty"`
	IsResourceRequest bool                `json:"isResourceRequest"`
	Verb              string              `json:"verb"`
	Path              string              `json:"path"`
	APIGroup          string              `json:"apiGroup"`
	APIVersion        string              `json:"apiVersion"`
	Namespace         string              `json:"namespace"`
	Resource          string              `json:"resource"`
	Subresource       string              `json:"subresource"`
	Name              string              `json:"name"`
	Allowed           bool                `json:"allowed"`
	Status            int                 `json:"status,omitempty"`
	Message           string              `json:"message,omitempty"`
	Matches           bool                `json:"matches,omitempty"`
	Value             string              `json:"value,omitempty"`
	Records           [][]string          `json:"records,omitempty"`
	User              string              `json:"user,omitempty"`
	UID               string              `json:"uid,omitempty"`
	Groups            []string            `json:"groups,omitempty"`
	Extra             map[string][]string `json:"extra,omitempty"`
}

var resolver = &request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme)
}()

func requestOf(q question) (*http.Request, *request.RequestInfo, error) {
	target, err := url.ParseRequestURI(q.Target)
	if err != nil {
		return nil, nil, err
	}
	req := (&http.Request{Method: q.Method, URL: target, RequestURI: q.Target, Header: http.Header{}, Host: "kube"})
	for _, line := range q.Headers {
		req.Header.Add(line[0], line[1])
	}
	info, err := resolver.NewRequestInfo(req)
	if err != nil {
		return nil, nil, err
	}
	return req, info, nil
}

func infoOf(u subject) user.Info {
	return &user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}

// parse reads one text; false for a question about a request.
func parse(q question) (found answer, isText bool) {
	var err error
	switch q.Kind {
	case "labels":
		var selector labels.Selector
		if selector, err = labels.Parse(q.Text); err == nil {
			found.Matches = selector.Matches(labels.Set(q.Set))
		}
	case "fields":
		var selector fields.Selector
		if selector, err = fields.ParseSelector(q.Text); err == nil {
			found.Matches = selector.Matches(fields.Set(q.Set))
		}
	case "quantity":
		var quantity resource.Quantity
		if quantity, err = resource.ParseQuantity(q.Text); err == nil {
			found.Value = quantity.AsDec().String()
		}
	case "csv":
		// As the token file of kube-apiserver is read.
		reader := csv.NewReader(strings.NewReader(q.Text))
		reader.FieldsPerRecord = -1
		found.Records, err = reader.ReadAll()
	case "authentication":
		err = authenticationProblem([]byte(q.Text))
	default:
		return found, false
	}
	if err != nil {
		found.Error = err.Error()
	}
	return found, true
}

var authenticationCodecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict)
}()

// authenticationProblem reads the file of --authentication-config as kube-apiserver does.
func authenticationProblem(data []byte) error {
	decoded, err := runtime.Decode(authenticationCodecs.UniversalDecoder(), data)
	if err != nil {
		return err
	}
	configuration, isOfKind := decoded.(*apiserver.AuthenticationConfiguration)
	if !isOfKind {
		return fmt.Errorf("another kind: %T", decoded)
	}
	compiler := authenticationcel.NewDefaultCompiler()
	return apiservervalidation.ValidateAuthenticationConfiguration(compiler, configuration, nil).ToAggregate()
}

func respond(q question, policy *authorizer.UnconditionalAuthorizer) answer {
	if q.Kind == "policy" {
		_, static := validation.NewTestRuleResolver(q.Roles, q.RoleBindings, q.ClusterRoles, q.ClusterRoleBindings)
		*policy = rbac.New(static, static, static, static)
		return answer{}
	}
	if parsed, isText := parse(q); isText {
		return parsed
	}
	req, info, err := requestOf(q)
	if err != nil {
		return answer{Error: err.Error()}
	}
	ctx := request.WithRequestInfo(context.Background(), info)
	ctx = request.WithUser(ctx, infoOf(q.User))
	attributes, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return answer{Error: err.Error()}
	}
	found := answer{
		IsResourceRequest: attributes.IsResourceRequest(), Verb: attributes.GetVerb(), Path: attributes.GetPath(),
		APIGroup: attributes.GetAPIGroup(), APIVersion: attributes.GetAPIVersion(), Namespace: attributes.GetNamespace(),
		Resource: attributes.GetResource(), Subresource: attributes.GetSubresource(), Name: attributes.GetName(),
	}
	switch q.Kind {
	case "request":
		return found
	case "authorize":
		decision, reason, err := (*policy).Authorize(ctx, attributes)
		found.Allowed = decision == authorizer.DecisionAllow
		found.Message = reason
		if err != nil {
			found.Error = err.Error()
		}
		return found
	case "impersonate":
		inner := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			as, _ := request.UserFrom(req.Context())
			found.User, found.UID, found.Groups, found.Extra = as.GetName(), as.GetUID(), as.GetGroups(), as.GetExtra()
		})
		with := impersonation.WithImpersonation
		if q.Constrained {
			with = impersonation.WithConstrainedImpersonation
		}
		recorder := httptest.NewRecorder()
		with(inner, *policy, codecs.WithoutConversion()).ServeHTTP(recorder, req.WithContext(ctx))
		found.Status = recorder.Code
		status := metav1.Status{}
		if recorder.Code != http.StatusOK && json.Unmarshal(recorder.Body.Bytes(), &status) == nil {
			found.Message = status.Message
		}
		return found
	}
	return answer{Error: fmt.Sprintf("unknown kind %q", q.Kind)}
}

func main() {
	klog.SetOutput(nowhere{})
	klog.LogToStderr(false)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	var policy authorizer.UnconditionalAuthorizer
	for lines.Scan() {
		var q question
		found := answer{}
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			found.Error = err.Error()
		} else {
			found = respond(q, &policy)
		}
		if encoder.Encode(found) != nil {
			os.Exit(1)
		}
	}
	out.Flush()
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
