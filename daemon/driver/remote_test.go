package driver_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// junk sends bytes that are no message.
type junk struct{}

func (junk) Name() string                { return "proto" }
func (junk) Marshal(any) ([]byte, error) { return []byte{0xff, 0xff, 0xff}, nil }
func (junk) Unmarshal([]byte, any) error { return errors.New("there should be no answer") }

// What a stranger sends is not even decoded: the call is refused by its first bytes, and says why as any other refusal does.
func TestStrangersAreNotRead(t *testing.T) {
	w := newWorld(t, nil)
	method := apiv1.TaskService_SubmitTasks_FullMethodName
	err := w.remote.Invoke(t.Context(), method, struct{}{}, struct{}{}, grpc.ForceCodec(junk{}))
	if st := status.Convert(err); st.Code() != codes.Unauthenticated || len(st.Details()) != 1 || !strings.Contains(st.Message(), "no token") {
		t.Errorf("a stranger got %v %v", err, st.Details())
	}
	if err := w.remote.Invoke(w.as("view", "*"), method, struct{}{}, struct{}{}, grpc.ForceCodec(junk{})); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a viewer got %v", err)
	}
	if err := w.remote.Invoke(w.as("submit", "*"), method, struct{}{}, struct{}{}, grpc.ForceCodec(junk{})); status.Code(err) != codes.Internal {
		t.Errorf("whoever may call got %v, want to hear that the message is broken", err)
	}
	if err := w.remote.Invoke(w.as("view", "*"), "/retinue.v9.Future/Call", struct{}{}, struct{}{}, grpc.ForceCodec(junk{})); status.Code(err) != codes.Unimplemented {
		t.Errorf("a call that is not served got %v", err)
	}
}

// A caller who is confined to a namespace means that one when it names none, and hears nothing of the others.
func TestConfinedCallersStayInTheirNamespace(t *testing.T) {
	w := newWorld(t, nil)
	w.apply(0)
	apps := apiv1.NewApplicationServiceClient(w.remote)
	ctx := w.as("admin", "other")
	spec := func(namespace string) *apiv1.ApplyApplicationRequest {
		return &apiv1.ApplyApplicationRequest{Spec: &apiv1.ApplicationSpec{Id: "app", Namespace: namespace, Profiles: []*apiv1.ProfileSpec{{}}}}
	}
	got, err := apps.ApplyApplication(ctx, spec(""))
	if err != nil || !got.GetCreated() || got.GetApplication().GetSpec().GetNamespace() != "other" {
		t.Errorf("applying without a namespace gave %v, %v", got, err)
	}
	one, err := apps.GetApplication(ctx, &apiv1.GetApplicationRequest{Application: "app"})
	if err != nil || one.GetApplication().GetSpec().GetNamespace() != "other" {
		t.Errorf("getting without a namespace gave %v, %v", one, err)
	}
	list, err := apps.ListApplications(ctx, &apiv1.ListApplicationsRequest{})
	if err != nil || len(list.GetApplications()) != 1 {
		t.Errorf("listing gave %v, %v", list, err)
	}
	for _, namespace := range []string{"default", "kube-system"} { // one that is served, and one that is not
		_, err := apps.ApplyApplication(ctx, spec(namespace))
		want := "somebody may not use namespace " + namespace
		if st := status.Convert(err); st.Code() != codes.PermissionDenied || st.Message() != want {
			t.Errorf("applying to %s gave %v, want %q", namespace, err, want)
		}
		_, err = apps.ListApplications(ctx, &apiv1.ListApplicationsRequest{Namespace: namespace})
		if st := status.Convert(err); st.Code() != codes.PermissionDenied || st.Message() != want {
			t.Errorf("listing %s gave %v, want %q", namespace, err, want)
		}
		stream, err := apps.WatchApplications(ctx, &apiv1.WatchApplicationsRequest{Namespace: namespace})
		if err == nil {
			_, err = stream.Recv()
		}
		if st := status.Convert(err); st.Code() != codes.PermissionDenied || st.Message() != want {
			t.Errorf("watching %s gave %v, want %q", namespace, err, want)
		}
	}
	if _, err := apps.GetApplication(ctx, &apiv1.GetApplicationRequest{Application: "app", Namespace: "default"}); status.Code(err) != codes.NotFound {
		t.Errorf("getting another namespace's application gave %v", err)
	}
}
