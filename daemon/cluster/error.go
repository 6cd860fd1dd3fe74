package cluster

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrEnded says that a stream came to its regular end: go on from the last version.
var ErrEnded = errors.New("the stream has ended")

// Class is what an error of the cluster means to who called.
type Class uint8

// The classes. After Unknown, Unavailable and Throttled the same call makes sense again; after the others it does not until something changes.
const (
	None        Class = 0  // no error
	Unknown     Class = 1  // the call may have been carried out, or may yet be
	Unavailable Class = 2  // the cluster was not reached: certainly not carried out
	Throttled   Class = 3  // too much at once: certainly not carried out; see RetryAfter
	Exists      Class = 4  // there is an object of that name
	NotFound    Class = 5  // there is no such object, or no such namespace
	Conflict    Class = 6  // a precondition does not hold
	Gone        Class = 7  // the version is too old: list again
	Invalid     Class = 8  // the object is not valid
	Quota       Class = 9  // a quota is used up
	Admission   Class = 10 // an admission rule or webhook said no, or could not be asked
	Forbidden   Class = 11 // the daemon lacks the right, or its credential is not accepted
	Other       Class = 12 // refused for another reason
)

var classNames = [...]string{
	"none", "unknown", "unavailable", "throttled", "exists", "not-found", "conflict", "gone", "invalid", "quota", "admission", "forbidden", "other",
}

// String returns the class's name, which is also its metric label.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "class(?)"
}

// Transient reports whether the same call makes sense again.
func (c Class) Transient() bool { return c == Unknown || c == Unavailable || c == Throttled }

// ClassOf sorts an error. Whoever is in doubt counts the call as perhaps carried out: a server that answers 500 may have written.
func ClassOf(err error) Class {
	if err == nil {
		return None
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return classOfStatus(status.Status())
	}
	if refused(err) {
		return Unavailable
	}
	return Unknown
}

// RetryAfter is how long the cluster asked to wait; 0: it did not say.
func RetryAfter(err error) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// Text is the cluster's own sentence about an error, without what was wrapped around it.
func Text(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}

// refused reports whether a request has certainly not been sent.
func refused(err error) bool {
	var dial *net.OpError
	var name *net.DNSError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &name) || errors.Is(err, syscall.ECONNREFUSED)
}

func classOfStatus(s metav1.Status) Class {
	switch s.Reason {
	case metav1.StatusReasonAlreadyExists:
		return Exists
	case metav1.StatusReasonExpired, metav1.StatusReasonGone:
		return Gone
	case metav1.StatusReasonConflict:
		return Conflict
	case metav1.StatusReasonNotFound:
		return NotFound
	case metav1.StatusReasonTooManyRequests:
		return Throttled
	case metav1.StatusReasonUnauthorized:
		return Forbidden
	case metav1.StatusReasonForbidden:
		return classOfForbidden(s)
	case metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonRequestEntityTooLarge,
		metav1.StatusReasonNotAcceptable, metav1.StatusReasonUnsupportedMediaType:
		return admissionOr(s, Invalid)
	default:
		return classOfCode(s)
	}
}

// classOfCode sorts what has no reason that we know: proxies and webhooks answer with a bare code.
func classOfCode(s metav1.Status) Class {
	switch code := int(s.Code); {
	case code == http.StatusTooManyRequests:
		return Throttled
	case code == http.StatusUnauthorized:
		return Forbidden
	case code == http.StatusForbidden:
		return classOfForbidden(s)
	case code == http.StatusNotFound:
		return NotFound
	case code == http.StatusConflict:
		return Conflict
	case code == http.StatusGone:
		return Gone
	case code == http.StatusRequestTimeout:
		return Unknown
	case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity, code == http.StatusRequestEntityTooLarge:
		return admissionOr(s, Invalid)
	case code >= http.StatusInternalServerError:
		return admissionOr(s, Unknown)
	case code >= http.StatusBadRequest:
		return admissionOr(s, Other)
	}
	return Unknown
}

// classOfForbidden tells the three things apart that all are a 403: only the words differ.
func classOfForbidden(s metav1.Status) Class {
	text := strings.ToLower(s.Message)
	switch {
	case strings.Contains(text, "exceeded quota"), strings.Contains(text, "failed quota"):
		return Quota
	case strings.Contains(text, " cannot ") && strings.Contains(text, "user \""):
		return Forbidden
	case strings.Contains(text, "forbidden: user \""), text == "", text == "forbidden":
		return Forbidden
	}
	return Admission
}

func admissionOr(s metav1.Status, otherwise Class) Class {
	text := strings.ToLower(s.Message)
	for _, sign := range []string{"admission webhook", "failed calling webhook", "validatingadmissionpolicy", "mutatingadmissionpolicy"} {
		if strings.Contains(text, sign) {
			return Admission
		}
	}
	return otherwise
}
