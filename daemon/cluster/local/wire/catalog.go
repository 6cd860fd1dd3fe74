package wire

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// catalog answers what resources there are.
type catalog struct{ resources []model.Resource }

func newCatalog(all []model.Resource) catalog { return catalog{resources: all} }

func (c catalog) find(name string) (model.Resource, bool) {
	for _, r := range c.resources {
		if r.Name == name {
			return r, true
		}
	}
	return model.Resource{}, false
}

func apiVersions(host string) metav1.APIVersions {
	return metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
		Versions: []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{
			{ClientCIDR: "0.0.0.0/0", ServerAddress: host},
		},
	}
}

func apiGroups() metav1.APIGroupList {
	return metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
}

func (c catalog) list() metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1"}
	for _, r := range c.resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Name, SingularName: r.Singular, Kind: r.Kind, Namespaced: r.Namespaced, ShortNames: r.Short, Categories: r.Categories,
			Verbs: metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		})
		if r.Name == "pods" {
			list.APIResources = append(list.APIResources,
				metav1.APIResource{Name: "pods/binding", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}},
				metav1.APIResource{Name: "pods/log", Kind: r.Kind, Namespaced: true, Verbs: metav1.Verbs{"get"}})
		}
		if r.Status {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: r.Name + "/status", Kind: r.Kind, Namespaced: r.Namespaced, Verbs: metav1.Verbs{"get", "patch", "update"},
			})
		}
	}
	return list
}

func openAPIIndex() any {
	return map[string]any{"paths": map[string]any{"api/v1": map[string]any{"serverRelativeURL": "/openapi/v3/api/v1"}}}
}

// openAPI says the one thing that clients look for before they send an object: that the server checks its fields
// itself. The schemas are left out; with that check nobody needs them.
func (c catalog) openAPI() any {
	paths := map[string]any{}
	for _, r := range c.resources {
		path := "/api/v1/" + r.Name + "/{name}"
		if r.Namespaced {
			path = "/api/v1/namespaces/{namespace}/" + r.Name + "/{name}"
		}
		paths[path] = map[string]any{"patch": map[string]any{
			"x-kubernetes-action":             "patch",
			"x-kubernetes-group-version-kind": map[string]any{"group": "", "version": "v1", "kind": r.Kind},
			"parameters": []any{
				map[string]any{"name": "dryRun", "in": "query", "schema": map[string]any{"type": "string"}},
				map[string]any{"name": "fieldValidation", "in": "query", "schema": map[string]any{"type": "string"}},
			},
			"responses": map[string]any{"200": map[string]any{"description": "OK"}},
		}}
	}
	return map[string]any{
		"openapi":    "3.0.0",
		"info":       map[string]any{"title": "Retinue local cluster", "version": "v1"},
		"paths":      paths,
		"components": map[string]any{"schemas": map[string]any{}},
	}
}
