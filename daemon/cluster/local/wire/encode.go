package wire

import (
	"mime"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// form is how a client wants objects shown.
type form uint8

const (
	whole    form = iota // the objects themselves
	table                // rows for people
	metadata             // only their metadata
)

// form reads the Accept header: the first form in it that is served. Encodings other than JSON are passed over.
func (c *call) form() form {
	for part := range strings.SplitSeq(c.r.Header.Get("Accept"), ",") {
		media, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil || media != jsonType && media != "*/*" {
			continue
		}
		switch params["as"] {
		case "Table":
			return table
		case "PartialObjectMetadata", "PartialObjectMetadataList":
			return metadata
		}
		return whole
	}
	return whole
}

func (c *call) writeObject(code int, obj model.Object) error {
	switch c.form() {
	case table:
		writeJSON(c.w, code, c.table([]model.Object{obj}, metav1.ListMeta{ResourceVersion: obj.GetResourceVersion()}, true))
	case metadata:
		writeJSON(c.w, code, partial(obj))
	case whole:
		writeJSON(c.w, code, obj)
	}
	return nil
}

// list is any List kind on the wire.
type list struct {
	metav1.TypeMeta `json:",inline"`

	Metadata metav1.ListMeta `json:"metadata"`
	Items    []any           `json:"items"`
}

func (c *call) writeList(page model.Page) error {
	body := list{
		TypeMeta: metav1.TypeMeta{Kind: c.resource.Kind + "List", APIVersion: "v1"},
		Metadata: page.ListMeta, Items: make([]any, 0, len(page.Items)),
	}
	switch c.form() {
	case table:
		writeJSON(c.w, http.StatusOK, c.table(page.Items, page.ListMeta, true))
		return nil
	case metadata:
		body.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: metav1.SchemeGroupVersion.String()}
		for _, obj := range page.Items {
			body.Items = append(body.Items, partial(obj))
		}
	case whole:
		c.store.Do(func(_ time.Time, m *model.Server) {
			for _, obj := range page.Items {
				body.Items = append(body.Items, m.Bare(c.resource.Name, obj))
			}
		})
	}
	writeJSON(c.w, http.StatusOK, body)
	return nil
}

// shown is the object of a watch event in the client's form.
func (c *call) shown(obj runtime.Object, first bool) any {
	typed, ok := obj.(model.Object)
	if !ok {
		return obj // a status
	}
	switch c.form() {
	case table:
		return c.table([]model.Object{typed}, metav1.ListMeta{ResourceVersion: typed.GetResourceVersion()}, first)
	case metadata:
		return partial(typed)
	case whole:
	}
	return typed
}

func partial(obj model.Object) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: metav1.SchemeGroupVersion.String()},
		ObjectMeta: metaOf(obj),
	}
}

// metaOf copies the metadata of any object.
func metaOf(obj model.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: obj.GetName(), GenerateName: obj.GetGenerateName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), Generation: obj.GetGeneration(), CreationTimestamp: obj.GetCreationTimestamp(),
		DeletionTimestamp: obj.GetDeletionTimestamp(), DeletionGracePeriodSeconds: obj.GetDeletionGracePeriodSeconds(),
		Labels: obj.GetLabels(), Annotations: obj.GetAnnotations(), OwnerReferences: obj.GetOwnerReferences(), Finalizers: obj.GetFinalizers(),
	}
}
