package main

import "testing"

// Of one there is one, and of none and of many there are some.
func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"1 task": count(1, "task"), "0 tasks": count(0, "task"), "2 executors": count(uint32(2), "executor"), "1 retry": count(uint64(1), "retry"),
		"3 retries": count(uint64(3), "retry"), "2 keys": count(2, "key"), "-1 tasks": count(-1, "task"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
