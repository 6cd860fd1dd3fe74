package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// mostBody is the largest request that is read, as real servers have it.
const mostBody = 3 << 20

func (c *call) body() ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(c.r.Body, mostBody+1))
	switch {
	case err != nil:
		return nil, apierrors.NewBadRequest(err.Error())
	case len(body) > mostBody:
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", mostBody))
	}
	return body, nil
}

func (c *call) decode() (model.Object, error) {
	var fresh model.Object
	c.store.Do(func(_ time.Time, m *model.Server) { fresh = m.New(c.resource.Name) })
	return c.decodeAs(fresh)
}

// decodeAs reads the body into an object of fresh's type.
func (c *call) decodeAs(fresh model.Object) (model.Object, error) {
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	media, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil {
		media = jsonType
	}
	info, ok := runtime.SerializerInfoForMediaType(c.codecs.SupportedMediaTypes(), media)
	if !ok {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, c.r.Method,
			schema.GroupResource{Resource: c.resource.Name}, "", "the body of the request was in an unknown format - "+
				"accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf", 0, false)
	}
	reader := info.Serializer
	mode := c.query.Get("fieldValidation")
	if (mode == metav1.FieldValidationStrict || mode == metav1.FieldValidationWarn) && info.StrictSerializer != nil {
		reader = info.StrictSerializer
	}
	kind := fresh.GetObjectKind().GroupVersionKind()
	if kind.Empty() {
		kind = corev1.SchemeGroupVersion.WithKind(kindOf(fresh, c.resource))
	}
	obj, got, err := reader.Decode(body, &kind, fresh)
	if runtime.IsStrictDecodingError(err) && mode == metav1.FieldValidationWarn {
		c.warn(err)
		err = nil
	}
	return checkDecoded(obj, got, kind, err)
}

func kindOf(obj model.Object, resource model.Resource) string {
	if _, is := obj.(*corev1.Binding); is {
		return "Binding"
	}
	return resource.Kind
}

func checkDecoded(obj runtime.Object, got *schema.GroupVersionKind, want schema.GroupVersionKind, err error) (model.Object, error) {
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	typed, ok := obj.(model.Object)
	if !ok || got != nil && *got != want {
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"the object provided is unrecognized (must be of type %s): couldn't match %v", want.Kind, got))
	}
	return typed, nil
}

// warn tells a client of unknown fields in the header that kubectl prints.
func (c *call) warn(err error) {
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return
	}
	for _, problem := range strict.Errors() {
		c.w.Header().Add("Warning", fmt.Sprintf("299 - %s", strconv.Quote(problem.Error())))
	}
}

// deleteOptions come in the query or, more often, in the body.
func (c *call) deleteOptions() (metav1.DeleteOptions, error) {
	var opts metav1.DeleteOptions
	body, err := c.body()
	if err != nil {
		return opts, err
	}
	if len(body) == 0 {
		if err = metav1.Convert_url_Values_To_v1_DeleteOptions(&c.query, &opts, nil); err != nil {
			return opts, apierrors.NewBadRequest(err.Error())
		}
		return opts, nil
	}
	media, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || media == jsonType {
		if err := json.Unmarshal(body, &opts); err != nil {
			return opts, apierrors.NewBadRequest(err.Error())
		}
		return opts, nil
	}
	info, ok := runtime.SerializerInfoForMediaType(c.codecs.SupportedMediaTypes(), media)
	if !ok {
		return opts, apierrors.NewBadRequest("the delete options are in an unknown format: send JSON")
	}
	kind := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	if _, _, err := info.Serializer.Decode(body, &kind, &opts); err != nil {
		return opts, apierrors.NewBadRequest(err.Error())
	}
	return opts, nil
}

// logOptions reads the parameters of a pod's log.
func logOptions(q url.Values) (corev1.PodLogOptions, error) {
	opts := corev1.PodLogOptions{Container: q.Get("container")}
	var errs []error
	flag := func(name string) bool {
		v, err := strconv.ParseBool(q.Get(name))
		if q.Get(name) != "" && err != nil {
			errs = append(errs, fmt.Errorf("%s: %q is not a boolean", name, q.Get(name)))
		}
		return v
	}
	number := func(name string) *int64 {
		if q.Get(name) == "" {
			return nil
		}
		n, err := strconv.ParseInt(q.Get(name), 10, 64)
		if err != nil || n < 0 {
			errs = append(errs, fmt.Errorf("%s: %q must be a whole number, greater than or equal to 0", name, q.Get(name)))
		}
		return &n
	}
	opts.Follow, opts.Previous, opts.Timestamps = flag("follow"), flag("previous"), flag("timestamps")
	opts.TailLines, opts.LimitBytes, opts.SinceSeconds = number("tailLines"), number("limitBytes"), number("sinceSeconds")
	if since := q.Get("sinceTime"); since != "" {
		at, err := time.Parse(time.RFC3339, since)
		if err != nil {
			errs = append(errs, fmt.Errorf("sinceTime: %q is not a time", since))
		}
		opts.SinceTime = &metav1.Time{Time: at}
	}
	if err := errors.Join(errs...); err != nil {
		return opts, apierrors.NewBadRequest(err.Error())
	}
	return opts, nil
}

// untilDone is the context of a request, ended also by the end of the server.
func (c *call) untilDone(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if c.config.Done == nil {
		return ctx, cancel
	}
	go func() {
		select {
		case <-c.config.Done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
