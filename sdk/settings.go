package sdk

import (
	"errors"
	"strconv"
	"strings"
)

// Settings are what an operator tunes a policy with: a flat JSON object, parsed and not yet understood.
type Settings struct {
	entries []setting
}

// setting is one key with its value. text is a string's content, or the value as it was written.
type setting struct {
	key  string
	kind settingKind
	text string
}

// settingKind is the JSON type of a value.
type settingKind uint8

const (
	kindString settingKind = iota + 1
	kindNumber
	kindBool
)

// String returns the kind in words.
func (k settingKind) String() string {
	switch k {
	case kindString:
		return "a string"
	case kindNumber:
		return "a number"
	default:
		return "true or false"
	}
}

// Field is a setting that a policy knows: its key, and where its value goes.
type Field struct {
	key string
	set func(setting) error
}

// Decode puts each setting into the field of its key. Fields without a setting keep their value. The error joins
// all that is wrong; a key that no field claims is wrong.
func (s Settings) Decode(fields ...Field) error {
	var errs []error
	for _, e := range s.entries {
		f, ok := field(fields, e.key)
		if !ok {
			errs = append(errs, unknownKey(e.key, fields))
			continue
		}
		if err := f.set(e); err != nil {
			errs = append(errs, errors.New("setting "+strconv.Quote(e.key)+": "+err.Error()))
		}
	}
	return errors.Join(errs...)
}

// Text is a setting that holds any text.
func Text(key string, to *string) Field {
	return Field{key, func(s setting) error {
		if s.kind != kindString {
			return wrong(s, "a string")
		}
		*to = s.text
		return nil
	}}
}

// Choice is a setting that holds one of some texts.
func Choice(key string, to *string, choices ...string) Field {
	return Field{key, func(s setting) error {
		for _, c := range choices {
			if s.kind == kindString && s.text == c {
				*to = c
				return nil
			}
		}
		return wrong(s, "one of "+strings.Join(choices, ", "))
	}}
}

// Switch is a setting that is true or false.
func Switch(key string, to *bool) Field {
	return Field{key, func(s setting) error {
		if s.kind != kindBool {
			return wrong(s, "true or false")
		}
		*to = s.text == "true"
		return nil
	}}
}

// Whole is a setting that holds a whole number from least to most.
func Whole(key string, to *int64, least, most int64) Field {
	return Field{key, func(s setting) error {
		n, err := strconv.ParseInt(s.text, 10, 64)
		if s.kind != kindNumber || err != nil || n < least || n > most {
			return wrong(s, "a whole number from "+strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10))
		}
		*to = n
		return nil
	}}
}

// MS is a setting that holds a length of time, at least 0: "10s", "1m30s", or a number of milliseconds. It ends
// up in milliseconds, as all times of a view are.
func MS(key string, to *int64) Field {
	return Field{key, func(s setting) error {
		ms, ok := milliseconds(s)
		if !ok || ms < 0 || ms > maxMS {
			return wrong(s, `a time such as "10s" or "1m30s", or a number of milliseconds`)
		}
		*to = ms
		return nil
	}}
}

// maxMS is the longest time that a setting takes: a thousand years.
const maxMS = 1000 * 366 * 24 * 3600_000

// milliseconds reads a length of time.
func milliseconds(s setting) (int64, bool) {
	switch s.kind {
	case kindNumber:
		n, err := strconv.ParseInt(s.text, 10, 64)
		return n, err == nil
	case kindString:
		return duration(s.text)
	default:
		return 0, false
	}
}

// duration reads a length of time as time.ParseDuration does, as far as whole milliseconds go and nothing is
// negative. Package time would add a seventh to a module.
func duration(text string) (ms int64, ok bool) {
	units := [...]struct {
		name string
		ms   int64
	}{{"ms", 1}, {"h", 3600_000}, {"m", 60_000}, {"s", 1000}}
	if text == "" {
		return 0, false
	}
	for text != "" {
		end := 0
		for end < len(text) && digit(text[end]) {
			end++
		}
		n, err := strconv.ParseUint(text[:end], 10, 40)
		if err != nil {
			return 0, false
		}
		text, ok = text[end:], false
		for _, u := range units {
			if rest, found := strings.CutPrefix(text, u.name); found {
				text, ms, ok = rest, ms+int64(n)*u.ms, true
				break
			}
		}
		if !ok || ms > maxMS {
			return 0, false
		}
	}
	return ms, true
}

// wrong says what a setting is and what it should be.
func wrong(s setting, want string) error {
	text := s.text
	if s.kind == kindString {
		text = strconv.Quote(text)
	}
	return errors.New(text + " is not right, it takes " + want)
}

// field returns the field with the given key.
func field(fields []Field, key string) (Field, bool) {
	for _, f := range fields {
		if f.key == key {
			return f, true
		}
	}
	return Field{}, false
}

// unknownKey says that no field claims key, and which one may have been meant.
func unknownKey(key string, fields []Field) error {
	text := "setting " + strconv.Quote(key) + ": there is no such setting"
	if len(fields) == 0 {
		return errors.New(text + ", this policy takes none")
	}
	nearest, best := fields[0].key, distance(key, fields[0].key)
	known := make([]string, 0, len(fields))
	for _, f := range fields {
		known = append(known, f.key)
		if d := distance(key, f.key); d < best {
			nearest, best = f.key, d
		}
	}
	if best <= max(2, len(nearest)/3) {
		return errors.New(text + ", did you mean " + strconv.Quote(nearest) + "?")
	}
	return errors.New(text + "; there are " + strings.Join(known, ", "))
}

// distance returns how many bytes must be changed, added or taken away to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
