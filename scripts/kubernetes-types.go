// Prints the types of the kinds that Sluice reads, as Go's decoder sees them. scripts/build-kubernetes-types.mjs runs it.
//
// A line is the name of a struct, as `reflect` prints it, and its fields: `name=type`, `Embedded.name=type` for a field of an embedded
// struct. Lines with a colon are about other types: what they are, and their names. `time`, `microtime`, `quantity`, `integerOrString`
// and `any` read themselves from JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	networkingbeta "k8s.io/api/networking/v1beta1"
	rbac "k8s.io/api/rbac/v1"
)

var kinds = []any{
	core.Pod{}, core.Node{}, core.Namespace{}, core.Service{}, core.Secret{}, core.ReplicationController{}, core.PodTemplate{},
	apps.Deployment{}, apps.ReplicaSet{}, apps.StatefulSet{}, apps.DaemonSet{}, batch.Job{}, batch.CronJob{},
	coordination.Lease{}, discovery.EndpointSlice{},
	networking.Ingress{}, networking.IngressClass{}, networkingbeta.Ingress{}, networkingbeta.IngressClass{},
	rbac.Role{}, rbac.ClusterRole{}, rbac.RoleBinding{}, rbac.ClusterRoleBinding{},
}

var readsItself = map[string]string{
	"v1.Time": "time", "v1.MicroTime": "microtime", "resource.Quantity": "quantity", "intstr.IntOrString": "integerOrString",
	"v1.FieldsV1": "any",
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

type described struct {
	of   reflect.Type
	text string
}

var types = map[string]described{}

func main() {
	for _, kind := range kinds {
		describe(reflect.TypeOf(kind))
	}
	var lines []string
	others := map[string][]string{}
	for name, known := range types {
		if fields, isStruct := strings.CutPrefix(known.text, "{"); isStruct {
			lines = append(lines, strings.TrimSpace(name+" "+fields))
		} else {
			others[known.text] = append(others[known.text], name)
		}
	}
	for text, names := range others {
		sort.Strings(names)
		lines = append(lines, text+": "+strings.Join(names, " "))
	}
	sort.Strings(lines)
	fmt.Println(strings.Join(lines, "\n"))
}

// describe returns the type's name; values are decoded into what a pointer points to.
func describe(of reflect.Type) string {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	name := of.String()
	if known, isKnown := types[name]; isKnown {
		// core and meta have a ConditionStatus each: two strings.
		if known.of != of && (of.Kind() == reflect.Struct || known.text != textOf(of)) {
			fail("two types have the name " + name)
		}
		return name
	}
	text, reads := readsItself[name]
	if !reads {
		if reflect.PointerTo(of).Implements(unmarshaler) {
			fail(name + " reads itself in a way that is not known here")
		}
		types[name] = described{of, ""}
		text = textOf(of)
	}
	if text == name {
		delete(types, name)
		return name
	}
	types[name] = described{of, text}
	return name
}

func textOf(of reflect.Type) string {
	switch of.Kind() {
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64, reflect.Uint8:
		return of.Kind().String()
	case reflect.Slice:
		return "[]" + describe(of.Elem())
	case reflect.Map:
		return "map[]" + describe(of.Elem())
	case reflect.Struct:
		fields := fieldsOf(of, "")
		sort.Strings(fields)
		return "{" + strings.Join(fields, " ")
	}
	fail(of.String() + " has a kind that is not known here")
	return ""
}

func fieldsOf(of reflect.Type, embedded string) []string {
	var fields []string
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && field.Anonymous:
			fields = append(fields, fieldsOf(field.Type, embedded+field.Name+".")...)
		case name == "":
			fail(of.String() + "." + field.Name + " has no name in JSON")
		default:
			fields = append(fields, embedded+name+"="+describe(field.Type))
		}
	}
	return fields
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
