package sdk_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/sdk"
	"github.com/retinue-sched/retinue/sdk/policytest"
)

// asked is a policy with one hook, made of a function.
type asked func(*sdk.View, *sdk.Result) error

func (asked) Configure(s sdk.Settings) error              { return s.Decode() }
func (f asked) Allocate(v *sdk.View, r *sdk.Result) error { return f(v, r) }

// mute answers nothing.
type mute struct{}

func (mute) Configure(sdk.Settings) error { return nil }

func view(t *testing.T) hostabi.View {
	t.Helper()
	v := policytest.Random(4)
	if len(v.Profiles) == 0 || len(v.Executors) == 0 {
		t.Fatal("the view is empty, take another seed")
	}
	v.Decision.Application, v.Decision.State, v.Decision.WallMS = "etl", []byte{1, 2}, 77
	return v
}

// Each column of a view reads as the fields of the rows that were encoded, also with unknown things in between.
func TestColumnsReadAsTheirRows(t *testing.T) {
	v := view(t)
	policy := asked(func(shown *sdk.View, _ *sdk.Result) error {
		compareColumns(t, reflect.ValueOf(shown.Profiles), reflect.ValueOf(v.Profiles))
		compareColumns(t, reflect.ValueOf(shown.Executors), reflect.ValueOf(v.Executors))
		for i := range reflect.TypeFor[hostabi.DecisionRow]().NumField() {
			name := reflect.TypeFor[hostabi.DecisionRow]().Field(i).Name
			got := reflect.ValueOf(shown.Decision).MethodByName(name).Call(nil)[0].Interface()
			if diff := cmp.Diff(reflect.ValueOf(v.Decision).Field(i).Interface(), got); diff != "" {
				t.Errorf("decision %s: -want +got:\n%s", name, diff)
			}
		}
		return nil
	})
	block, err := hostabi.ParseBlock(v.Encode(nil, hostabi.Projection{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := policytest.New(t, policy, "").Call(hostabi.HookAllocate, hostabi.Grease(block)); err != nil {
		t.Fatal(err)
	}
}

// compareColumns compares the method of each field's name with the field in every row.
func compareColumns(t *testing.T, table, rows reflect.Value) {
	t.Helper()
	row := rows.Type().Elem()
	for i := range row.NumField() {
		column := table.MethodByName(row.Field(i).Name)
		if !column.IsValid() {
			t.Errorf("%v has no method %s", table.Type(), row.Field(i).Name)
			continue
		}
		values := column.Call(nil)[0]
		for r := range rows.Len() {
			want := rows.Index(r).Field(i).Interface()
			var got any
			if texts, ok := reflect.TypeAssert[sdk.Texts](values); ok {
				got = texts.At(r)
			} else {
				got = values.Index(r).Interface()
			}
			if got != want {
				t.Errorf("%s, row %d: got %v, want %v", row.Field(i).Name, r, got, want)
			}
		}
	}
}

// A policy that panics, errs, reads what it was not sent, or is asked what it does not answer gives an error that
// says so, and works the next time.
func TestFaultsBecomeErrors(t *testing.T) {
	var act func(*sdk.View, *sdk.Result) error
	policy := policytest.New(t, asked(func(v *sdk.View, r *sdk.Result) error { return act(v, r) }), "")
	v := view(t)
	projection := hostabi.Projection{}.With(hostabi.TableExecutors, hostabi.ExecutorsID)
	for _, c := range []struct {
		name string
		act  func(*sdk.View, *sdk.Result) error
		hook hostabi.Hook
		want string
	}{
		{"index", func(v *sdk.View, _ *sdk.Result) error { _ = v.Executors.ID()[v.Executors.Len()]; return nil }, hostabi.HookAllocate, "panic: runtime error: index out of range"},
		{"stack", func(*sdk.View, *sdk.Result) error { panic("at the disco") }, hostabi.HookAllocate, "policy_test.go"},
		{"text", func(*sdk.View, *sdk.Result) error { panic("at the disco") }, hostabi.HookAllocate, "panic: at the disco\n"},
		{"odd value", func(*sdk.View, *sdk.Result) error { panic(struct{}{}) }, hostabi.HookAllocate, "panic: a value without text"},
		{"error", func(*sdk.View, *sdk.Result) error { return errors.New("no idea") }, hostabi.HookAllocate, "no idea"},
		{"missing numbers", func(v *sdk.View, _ *sdk.Result) error { _ = v.Executors.BusySlots()[0]; return nil }, hostabi.HookAllocate, "reads column busy_slots of table executors, which is not in the view"},
		{"missing texts", func(v *sdk.View, _ *sdk.Result) error { _ = v.Executors.Node().At(0); return nil }, hostabi.HookAllocate, "reads column node of table executors"},
		{"other hook", nil, hostabi.HookRelease, "the policy does not answer release"},
		{"too big", func(_ *sdk.View, r *sdk.Result) error {
			for id := range uint64(40_000) {
				r.Drain(id, "x")
			}
			return nil
		}, hostabi.HookAllocate, "more than the limit of 262144"},
	} {
		t.Run(c.name, func(t *testing.T) {
			act = c.act
			if _, err := policy.Call(c.hook, v.Encode(nil, projection)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
			act = answerFine
			if d := policytest.Ask(t, policy, hostabi.HookAllocate, v); len(d.Creates) != 1 || len(d.Releases) != 0 {
				t.Errorf("the next answer is %+v", d)
			}
		})
	}
	if _, err := policy.Call(hostabi.HookAllocate, []byte("rubbish")); err == nil {
		t.Error("rubbish was taken as a view")
	}
}

func answerFine(v *sdk.View, r *sdk.Result) error {
	if v.Executors.Len() == 0 {
		return errors.New("there are no executors")
	}
	r.Create(1, 2, "fine")
	return nil
}

// Native refuses a policy without a hook and settings that the policy refuses, and says which hooks there are.
func TestNative(t *testing.T) {
	if _, err := sdk.Native(mute{}, nil); err == nil || !strings.Contains(err.Error(), "give it a method Allocate or Release") {
		t.Errorf("a policy without a hook: %v", err)
	}
	if _, err := sdk.Native(asked(nil), []byte(`{"x":1}`)); err == nil || !strings.Contains(err.Error(), "this policy takes none") {
		t.Errorf("a setting too many: %v", err)
	}
	if diff := cmp.Diff([]hostabi.Hook{hostabi.HookAllocate}, policytest.New(t, asked(nil), "{}").Hooks()); diff != "" {
		t.Error(diff)
	}
}

// A result says what was put into it, with texts cut to their limits between characters, and nothing of the last call.
func TestResult(t *testing.T) {
	calls := 0
	policy := policytest.New(t, asked(func(_ *sdk.View, r *sdk.Result) error {
		if calls++; calls > 1 {
			return nil
		}
		r.CreateWith(hostabi.Create{Profile: 1, Count: 2, Zone: "z"})
		r.Cancel(7, strings.Repeat("ä", hostabi.MaxTextSize))
		r.Kill(8, "why")
		r.CallWithin(500)
		r.CallWithin(100)
		r.CallWithin(900)
		r.SetState(3, []byte("s"))
		r.Note(strings.Repeat("n", hostabi.MaxNoteSize+1))
		return nil
	}), "")
	want := hostabi.Decision{
		Creates: []hostabi.Create{{Profile: 1, Count: 2, Zone: "z"}},
		Releases: []hostabi.Release{
			{Executor: 7, Mode: hostabi.Cancel, Reason: strings.Repeat("ä", hostabi.MaxTextSize/2)}, {Executor: 8, Mode: hostabi.Kill, Reason: "why"},
		},
		NextCallMS: 100, StateVersion: 3, State: []byte("s"), Note: strings.Repeat("n", hostabi.MaxNoteSize),
	}
	if diff := cmp.Diff(want, policytest.Ask(t, policy, hostabi.HookAllocate, view(t))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(hostabi.Decision{}, policytest.Ask(t, policy, hostabi.HookAllocate, view(t))); diff != "" {
		t.Errorf("the second time: -want +got:\n%s", diff)
	}
}
