package main

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// valueOf turns what was written for a key into a value of the key's type: a typed one from a file, a text from the environment and the flags.
// Nothing is cut, wrapped or rounded to make it fit.
func valueOf(key string, written any) (any, error) {
	if written == nil {
		return nil, fmt.Errorf("%s: there is no value: write one, or leave the key out", key)
	}
	want := reflect.TypeOf(keyTypes[key])
	value, err := convert(want, written)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return value, nil
}

func convert(want reflect.Type, written any) (any, error) {
	if want == reflect.TypeFor[time.Duration]() {
		text, isText := written.(string)
		d, err := time.ParseDuration(text)
		if !isText || err != nil {
			return nil, fmt.Errorf("%v is not a duration: write a number with a unit, such as 10s", written)
		}
		return d, nil
	}
	out := reflect.New(want).Elem()
	var err error
	switch {
	case out.CanInt():
		err = setInt(out, written)
	case out.CanUint():
		err = setUint(out, written)
	case out.CanFloat():
		err = setFloat(out, written)
	case out.Kind() == reflect.Bool:
		err = setBool(out, written)
	case out.Kind() == reflect.String:
		err = setText(out, written)
	case want == reflect.TypeFor[[]string]():
		err = setList(out, written)
	default:
		err = fmt.Errorf("values of type %v cannot be set", want)
	}
	return out.Interface(), err
}

func setInt(out reflect.Value, written any) error {
	text, err := wholeNumber(written)
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(text, 10, out.Type().Bits())
	if err != nil {
		return outOfRange(written, err, math.MinInt64>>(64-out.Type().Bits()), uint64(math.MaxInt64)>>(64-out.Type().Bits()))
	}
	out.SetInt(n)
	return nil
}

func setUint(out reflect.Value, written any) error {
	text, err := wholeNumber(written)
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(text, 10, out.Type().Bits())
	if err != nil {
		return outOfRange(written, err, 0, uint64(math.MaxUint64)>>(64-out.Type().Bits()))
	}
	out.SetUint(n)
	return nil
}

// wholeNumber is the number as text: digits, perhaps behind a minus.
func wholeNumber(written any) (string, error) {
	switch v := reflect.ValueOf(written); {
	case v.CanInt(), v.CanUint():
		return fmt.Sprint(written), nil
	case v.CanFloat() && v.Float() == math.Trunc(v.Float()): // 1e6 is a whole number, too
		return strconv.FormatFloat(v.Float(), 'f', 0, 64), nil
	case v.Kind() == reflect.String:
		return strings.TrimSpace(v.String()), nil
	}
	return "", fmt.Errorf("%v is not a whole number", written)
}

// outOfRange says what is wrong with a number that could not be parsed as one of the wanted kind.
func outOfRange(written any, err error, least int64, most uint64) error {
	text, isText := written.(string)
	if isText && errors.Is(err, strconv.ErrSyntax) && !isNegative(text) {
		return fmt.Errorf("%q is not a whole number", written)
	}
	return fmt.Errorf("%v is not between %d and %d", written, least, most)
}

// isNegative reports whether it is a number after all, and only its sign is wrong.
func isNegative(text string) bool {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n < 0 && (err == nil || errors.Is(err, strconv.ErrRange))
}

func setFloat(out reflect.Value, written any) error {
	f, err := strconv.ParseFloat(strings.TrimSpace(fmt.Sprint(written)), out.Type().Bits())
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("%v is not a number", written)
	}
	out.SetFloat(f)
	return nil
}

func setBool(out reflect.Value, written any) error {
	if b, isBool := written.(bool); isBool {
		out.SetBool(b)
		return nil
	}
	text, _ := written.(string)
	b, err := strconv.ParseBool(strings.TrimSpace(text))
	if err != nil {
		return fmt.Errorf("%v is neither true nor false", written)
	}
	out.SetBool(b)
	return nil
}

func setText(out reflect.Value, written any) error {
	text, isText := written.(string)
	if !isText {
		return fmt.Errorf("%v is not a text: put it in quotes if it is meant", written)
	}
	out.SetString(text)
	return nil
}

// setList takes a list, or one text with commas.
func setList(out reflect.Value, written any) error {
	list := []string{}
	switch written := written.(type) {
	case string:
		if written != "" {
			list = strings.Split(written, ",")
		}
	case []string:
		list = written
	case []any:
		for _, item := range written {
			text, isText := item.(string)
			if !isText {
				return fmt.Errorf("%v is not a text: put it in quotes if it is meant", item)
			}
			list = append(list, text)
		}
	default:
		return fmt.Errorf("%v is not a list of texts", written)
	}
	out.Set(reflect.ValueOf(list))
	return nil
}
