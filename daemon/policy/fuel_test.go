package policy

import (
	"context"
	"testing"
	"time"
)

// A guest gets more fuel at a time while it is quick and less when it is slow, and never more than it has.
func TestSlicesFollowTheTimeTheyTake(t *testing.T) {
	var fuel tank
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	fuel.fill(ctx, 10_000)
	now := time.Now()
	for _, step := range []struct {
		took time.Duration
		want int64
	}{
		{0, 100}, {quick / 2, 200}, {quick / 2, 400}, {quick, 400}, {slow, 400}, {0, 800}, {0, 1000}, {0, 1000}, {2 * slow, 500}, {slow + 1, 250}, {time.Second, 125}, {time.Second, 100}, {time.Second, 100},
	} {
		now = now.Add(step.took)
		if fuel.adapt(now); fuel.size != step.want {
			t.Errorf("after a slice of %v it gets %d, want %d", step.took, fuel.size, step.want)
		}
	}
	fuel.fill(ctx, 150)
	if first, second := fuel.refill(-1), fuel.refill(-1); first != 100 || second != 48 || fuel.burnt(8) != 142 {
		t.Errorf("it got %d and %d of 150, and burnt %d", first, second, fuel.burnt(8))
	}
	defer func() {
		if r := recover(); r != errFuel { //nolint:errorlint // it is that very value
			t.Errorf("it was stopped by %v", r)
		}
	}()
	fuel.refill(-1)
	fuel.refill(-2)
}
