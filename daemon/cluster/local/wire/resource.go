package wire

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// call is one request for a resource.
type call struct {
	*Server

	w        http.ResponseWriter
	r        *http.Request
	ref      model.Ref
	resource model.Resource
	query    url.Values
}

// serveResource answers paths below /api/v1.
func (s *Server) serveResource(w http.ResponseWriter, r *http.Request, path string) {
	ref := parsePath(path)
	resource, ok := s.catalog.find(ref.Resource)
	if !ok || resource.Namespaced && ref.Name != "" && ref.Namespace == "" {
		writeError(w, notServed(r))
		return
	}
	c := &call{Server: s, w: w, r: r, ref: ref, resource: resource, query: r.URL.Query()}
	if err := c.serve(); err != nil {
		writeError(w, err)
	}
}

// parsePath reads [namespaces/NAMESPACE/]RESOURCE[/NAME[/SUBRESOURCE]]. A namespace is itself a resource.
func parsePath(path string) model.Ref {
	parts := strings.Split(path, "/")
	var ref model.Ref
	if len(parts) >= 3 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		ref.Namespace, parts = parts[1], parts[2:]
	}
	for i, at := range []*string{&ref.Resource, &ref.Name, &ref.Subresource} {
		if i < len(parts) {
			*at = parts[i]
		}
	}
	if len(parts) > 3 {
		ref.Resource = ""
	}
	return ref
}

func (c *call) serve() error {
	switch c.ref.Subresource {
	case "", "status":
	case "log":
		return c.logs()
	case "binding":
		return c.bind()
	default:
		return notServed(c.r)
	}
	switch c.r.Method {
	case http.MethodGet:
		return c.read()
	case http.MethodPost:
		return c.create()
	case http.MethodPut:
		return c.update()
	case http.MethodPatch:
		return c.patch()
	case http.MethodDelete:
		return c.remove()
	}
	return apierrors.NewMethodNotSupported(schema.GroupResource{Resource: c.resource.Name}, c.r.Method)
}

func (c *call) read() error {
	if c.ref.Name != "" {
		return c.answer(http.StatusOK, func(_ time.Time, m *model.Server) (model.Object, error) { return m.Read(c.ref) })
	}
	var opts metav1.ListOptions
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&c.query, &opts, nil); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if opts.Watch {
		return c.watch(opts)
	}
	var page model.Page
	var err error
	c.store.Do(func(_ time.Time, m *model.Server) { page, err = m.List(c.ref, opts) })
	if err != nil {
		return err
	}
	return c.writeList(page)
}

// answer calls the model and writes the object that it returns.
func (c *call) answer(code int, do func(time.Time, *model.Server) (model.Object, error)) error {
	var obj model.Object
	var err error
	c.store.Do(func(now time.Time, m *model.Server) { obj, err = do(now, m) })
	if err != nil {
		return err
	}
	return c.writeObject(code, obj)
}

func (c *call) create() error {
	if c.ref.Name != "" {
		return apierrors.NewMethodNotSupported(schema.GroupResource{Resource: c.resource.Name}, "create")
	}
	obj, err := c.decode()
	if err != nil {
		return err
	}
	var opts metav1.CreateOptions
	if err := metav1.Convert_url_Values_To_v1_CreateOptions(&c.query, &opts, nil); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return c.answer(http.StatusCreated, func(now time.Time, m *model.Server) (model.Object, error) {
		return m.Create(now, c.ref, obj, opts)
	})
}

func (c *call) update() error {
	obj, err := c.decode()
	if err != nil {
		return err
	}
	var opts metav1.UpdateOptions
	if err := metav1.Convert_url_Values_To_v1_UpdateOptions(&c.query, &opts, nil); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return c.answer(http.StatusOK, func(now time.Time, m *model.Server) (model.Object, error) {
		return m.Update(now, c.ref, obj, opts)
	})
}

func (c *call) patch() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	var opts metav1.PatchOptions
	if err := metav1.Convert_url_Values_To_v1_PatchOptions(&c.query, &opts, nil); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	kind, _, _ := strings.Cut(c.r.Header.Get("Content-Type"), ";")
	return c.answer(http.StatusOK, func(now time.Time, m *model.Server) (model.Object, error) {
		return m.Patch(now, c.ref, types.PatchType(kind), body, opts)
	})
}

func (c *call) remove() error {
	opts, err := c.deleteOptions()
	if err != nil {
		return err
	}
	if c.ref.Name == "" {
		return c.removeAll(opts)
	}
	var obj model.Object
	var gone bool
	c.store.Do(func(now time.Time, m *model.Server) { obj, gone, err = m.Delete(now, c.ref, opts) })
	switch {
	case err != nil:
		return err
	case gone && !c.resource.ReturnsDeleted:
		writeJSON(c.w, http.StatusOK, success(c.resource.Name, obj.GetName(), obj.GetUID()))
		return nil
	}
	return c.writeObject(http.StatusOK, obj)
}

func (c *call) removeAll(opts metav1.DeleteOptions) error {
	var list metav1.ListOptions
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&c.query, &list, nil); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	var page model.Page
	var err error
	c.store.Do(func(now time.Time, m *model.Server) { page, err = m.DeleteCollection(now, c.ref, opts, list) })
	if err != nil {
		return err
	}
	return c.writeList(page)
}

// bind is what a scheduler other than the local one calls.
func (c *call) bind() error {
	if c.r.Method != http.MethodPost || c.resource.Name != "pods" {
		return notServed(c.r)
	}
	obj, err := c.decodeAs(&corev1.Binding{})
	if err != nil {
		return err
	}
	c.store.Do(func(now time.Time, m *model.Server) { err = m.Bind(now, c.ref, obj.(*corev1.Binding).Target.Name) })
	if err != nil {
		return err
	}
	writeJSON(c.w, http.StatusCreated, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusCreated,
	})
	return nil
}

func (c *call) logs() error {
	if c.r.Method != http.MethodGet || c.resource.Name != "pods" {
		return notServed(c.r)
	}
	opts, err := logOptions(c.query)
	if err != nil {
		return err
	}
	ref := c.ref
	ref.Subresource = ""
	var pod model.Object
	c.store.Do(func(_ time.Time, m *model.Server) { pod, err = m.Read(ref) })
	if err != nil {
		return err
	}
	ctx, cancel := c.untilDone(c.r.Context())
	defer cancel()
	out := &flushing{w: c.w}
	err = c.config.Logs.Logs(ctx, pod.(*corev1.Pod), opts, out)
	if err != nil && out.began {
		fmt.Fprintf(out, "\n%v\n", err) // too late for a status: better a line than silence
		return nil
	}
	if err == nil && !out.began {
		c.w.Header().Set("Content-Type", "text/plain")
		c.w.WriteHeader(http.StatusOK)
	}
	return err
}

// flushing sends each write at once.
type flushing struct {
	w     http.ResponseWriter
	began bool
}

func (f *flushing) Write(b []byte) (int, error) {
	if !f.began {
		f.began = true
		f.w.Header().Set("Content-Type", "text/plain")
	}
	n, err := f.w.Write(b)
	if err == nil {
		err = http.NewResponseController(f.w).Flush()
	}
	return n, err
}
