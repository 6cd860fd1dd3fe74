package model

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unknownPath is the answer to a resource or subresource that the server does not have.
func unknownPath() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotFound,
		Reason:  metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource",
		Details: &metav1.StatusDetails{},
	}}
}

// modified is the answer to a write that was made from an older state of the object.
func modified(r *resource, name string) error {
	return apierrors.NewConflict(r.group(), name,
		fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
}

// wrongUID is the answer to an update that names another incarnation of the object.
func wrongUID(r *resource, key, name string, want, have any) error {
	return apierrors.NewConflict(r.group(), name, fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: /%s/%s, ResourceVersion: 0, AdditionalErrorMsg: "+
			"Precondition failed: UID in precondition: %v, UID in object meta: %v", r.Name, key, want, have))
}

// tooLarge is the answer to a read at a version that has not happened.
func tooLarge(asked, current uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}

// versionOnCreate is the answer to a create that carries a version. A real server has no reason for it either.
func versionOnCreate() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonUnknown,
		Message: "resourceVersion should not be set on objects to be created",
	}}
}
