package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// Patch changes the object at ref, or its status, by a merge, strategic merge or JSON patch, and returns the result.
// Errors: 400 (not a patch), 404, 409, 415 (another kind of patch), 422.
func (s *Server) Patch(now time.Time, ref Ref, kind types.PatchType, patch []byte, opts metav1.PatchOptions) (Object, error) {
	c, err := s.collection(ref)
	if err != nil {
		return nil, err
	}
	old, err := s.Read(ref)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(old)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	after, err := applyPatch(c.resource, kind, before, patch)
	if err != nil {
		return nil, err
	}
	next, err := decodePatched(c.resource, after, opts.FieldValidation)
	if err != nil {
		return nil, err
	}
	return s.Update(now, ref, next, metav1.UpdateOptions{DryRun: slices.Clone(opts.DryRun)})
}

// decodePatched reads the result of a patch, and minds unknown fields when the client asks for that.
func decodePatched(r *resource, text []byte, fieldValidation string) (Object, error) {
	kinds := runtime.NewScheme()
	kinds.AddKnownTypes(corev1.SchemeGroupVersion, r.fresh())
	reader := kubejson.NewSerializerWithOptions(kubejson.DefaultMetaFactory, kinds, kinds,
		kubejson.SerializerOptions{Strict: fieldValidation == metav1.FieldValidationStrict})
	kind := r.kind()
	next := r.fresh()
	if _, _, err := reader.Decode(text, &kind, next); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return next, nil
}

func applyPatch(r *resource, kind types.PatchType, before, patch []byte) ([]byte, error) {
	switch kind {
	case types.JSONPatchType:
		return applyJSONPatch(before, patch)
	case types.MergePatchType:
		after, err := jsonpatch.MergePatch(before, patch)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return after, nil
	case types.StrategicMergePatchType:
		after, err := strategicpatch.StrategicMergePatch(before, patch, r.fresh())
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return after, nil
	default: // server-side apply, whose bookkeeping of field owners is not kept here
	}
	return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", r.group(), "", fmt.Sprintf(
		"the body of the request was in an unknown format - accepted media types include: %s, %s, %s",
		types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType), 0, false)
}

func applyJSONPatch(before, patch []byte) ([]byte, error) {
	steps, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	after, err := steps.Apply(before)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return after, nil
}
