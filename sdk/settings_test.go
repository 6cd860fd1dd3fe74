package sdk_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/retinue-sched/retinue/sdk"
)

// tuned is a policy's settings.
type tuned struct {
	name string
	gate string
	on   bool
	n    int64
	idle int64
}

func decode(text string) (tuned, error) {
	t := tuned{name: "default", gate: "window", n: 3, idle: 1000}
	s, err := sdk.ParseSettings([]byte(text))
	if err != nil {
		return t, err
	}
	return t, s.Decode(sdk.Text("name", &t.name), sdk.Choice("gate", &t.gate, "window", "all-seen"), sdk.Switch("on", &t.on),
		sdk.Whole("batch_size", &t.n, 1, 10), sdk.MS("idle_timeout", &t.idle))
}

// Settings are read by type, and what is not set keeps its default.
func TestSettingsAreRead(t *testing.T) {
	for _, c := range []struct {
		text string
		want tuned
	}{
		{"", tuned{"default", "window", false, 3, 1000}},
		{" { } ", tuned{"default", "window", false, 3, 1000}},
		{`{"name":"a\"\\\/\n\u00e9\ud83d\ude00","on":true}`, tuned{"a\"\\/\né😀", "window", true, 3, 1000}},
		{`{"gate": "all-seen", "on":false, "batch_size":10}`, tuned{"default", "all-seen", false, 10, 1000}},
		{"{\"idle_timeout\":\t250\r\n}", tuned{"default", "window", false, 3, 250}},
		{`{"idle_timeout":"1h2m3s4ms"}`, tuned{"default", "window", false, 3, 3_723_004}},
		{`{"idle_timeout":"90s"}`, tuned{"default", "window", false, 3, 90_000}},
		{`{"idle_timeout":"0ms"}`, tuned{"default", "window", false, 3, 0}},
	} {
		got, err := decode(c.text)
		if err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v, want %+v", c.text, got, err, c.want)
		}
	}
}

// Whatever is wrong with settings is said with the key or the byte where it is, and what would be right.
func TestSettingsAreStrict(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"idle_timout":1}`, `setting "idle_timout": there is no such setting, did you mean "idle_timeout"?`},
		{`{"completely":1}`, `setting "completely": there is no such setting; there are name, gate, on, batch_size, idle_timeout`},
		{`{"name":1}`, `setting "name": 1 is not right, it takes a string`},
		{`{"gate":"open"}`, `"open" is not right, it takes one of window, all-seen`},
		{`{"on":"yes"}`, `it takes true or false`},
		{`{"batch_size":11}`, `11 is not right, it takes a whole number from 1 to 10`},
		{`{"batch_size":1.5}`, `1.5 is not right, it takes a whole number`},
		{`{"batch_size":"3"}`, `it takes a whole number`},
		{`{"idle_timeout":-1}`, `it takes a time such as "10s"`},
		{`{"idle_timeout":99999999999999999}`, `it takes a time such as "10s"`},
		{`{"idle_timeout":"10"}`, `it takes a time such as`},
		{`{"idle_timeout":"s"}`, `it takes a time such as`},
		{`{"idle_timeout":""}`, `it takes a time such as`},
		{`{"idle_timeout":"9999999999h"}`, `it takes a time such as`},
		{`{"idle_timeout":"99999999999999999999s"}`, `it takes a time such as`},
		{`{"idle_timeout":true}`, `it takes a time such as`},
		{`{"on":true,"name":2,"gate":3}`, "setting \"name\": 2 is not right, it takes a string\nsetting \"gate\": 3"},
		{`[]`, `byte 0: an object starts with {`},
		{`{"a":1,"a":2}`, `key "a" is there twice`},
		{`{"a":1,}`, `byte 7: a key stands in double quotes`},
		{`{"a":1 "b":2}`, `byte 7: after a value comes , or }`},
		{`{"a" 1}`, `byte 5: after a key comes :`},
		{`{"a":null}`, `byte 5: a value is a string, a number, true or false`},
		{`{"a":{}}`, `a value is a string`},
		{`{"a":01}`, `after a value comes , or }`},
		{`{"a":-}`, `a digit is missing`},
		{`{"a":"b`, `a string has no end`},
		{"{\"a\":\"\n\"}", `a control character`},
		{`{"a":"\x"}`, `there is no such escape`},
		{`{"a":"\ud800"}`, `half of a surrogate pair`},
		{`{"a":"\u12"}`, `four hexadecimal digits are missing`},
		{"{\"a\":\"\xff\"}", `is not UTF-8`},
		{`{"a":1} x`, `something follows the object`},
		{`{"a":1`, `after a value comes , or }`},
		{strings.Repeat(" ", 70_000), `they have 70000 bytes, more than the limit of 65536`},
	} {
		if _, err := decode(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: the error is %v, want one with %q", c.text, err, c.want)
		}
	}
}

// What is taken as settings is JSON, and what JSON takes as a flat object of texts, numbers and booleans is taken.
func FuzzSettings(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":"x","c":true}`, `{"a":"\ud83d\ude00"}`, `{"a":-0.5e+10}`, ``, `{"a":"b}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 60_000 {
			return
		}
		_, err := sdk.ParseSettings([]byte(text))
		if err == nil && strings.TrimSpace(text) != "" && !json.Valid([]byte(text)) {
			t.Fatalf("%q was taken and is not JSON", text)
		}
		if err != nil && flat(text) {
			t.Fatalf("%q was refused: %v", text, err)
		}
	})
}

// flat reports whether encoding/json takes text as a flat object, and nothing in it that settings are stricter about.
func flat(text string) bool {
	var m map[string]any
	if json.Unmarshal([]byte(text), &m) != nil || m == nil || strings.ContainsAny(text, "\\\ufffd") || strings.ToValidUTF8(text, "") != text {
		return false
	}
	for _, v := range m {
		switch v.(type) {
		case string, float64, bool:
		default:
			return false
		}
	}
	keys := strings.Count(text, `":`) + strings.Count(text, `" :`)
	return keys == len(m) && strings.Count(text, `"`) <= 4*len(m)
}
