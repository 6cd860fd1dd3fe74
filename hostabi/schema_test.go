package hostabi

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// The numbers, names and types of tables and columns never change, and each column stands at the Go field that
// bears its name and type.
func TestSchemaIsFrozen(t *testing.T) {
	rows := map[TableID]reflect.Type{
		TableDecision: reflect.TypeFor[DecisionRow](), TableProfiles: reflect.TypeFor[ProfileRow](), TableExecutors: reflect.TypeFor[ExecutorRow](),
		TableCreate: reflect.TypeFor[Create](), TableRelease: reflect.TypeFor[Release](), TableResult: reflect.TypeFor[resultRow](),
	}
	var text strings.Builder
	for _, s := range schemas {
		for _, c := range s.columns {
			fmt.Fprintf(&text, "%d %s %d %s %s\n", s.id, s.name, c.id, c.name, c.typ)
			if row, ok := rows[s.id]; ok {
				checkField(t, row, c)
			}
		}
		if row, ok := rows[s.id]; ok && row.NumField() != len(s.columns) {
			t.Errorf("table %s has %d columns, its Go row %d fields", s.name, len(s.columns), row.NumField())
		}
	}
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile("testdata/schema.txt", []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile("testdata/schema.txt")
	if err != nil {
		t.Fatal(err)
	}
	if string(golden) != text.String() {
		t.Errorf("the schema is\n%swant, as in testdata/schema.txt,\n%s", text.String(), golden)
	}
}

// checkField checks that a column stands at the field of its name, and that the field's type is written as the
// column's type.
func checkField(t *testing.T, row reflect.Type, c column) {
	t.Helper()
	kinds := map[Type][]reflect.Kind{
		U8: {reflect.Uint8}, U32: {reflect.Uint32}, I32: {reflect.Int32}, U64: {reflect.Uint64}, I64: {reflect.Int64},
		Dict: {reflect.String}, Bytes: {reflect.String, reflect.Slice},
	}
	for f := range row.Fields() {
		if f.Offset != c.offset {
			continue
		}
		if !strings.EqualFold(f.Name, strings.ReplaceAll(c.name, "_", "")) {
			t.Errorf("column %s of %s is written from field %s", c.name, row, f.Name)
		}
		for _, k := range kinds[c.typ] {
			if f.Type.Kind() == k {
				return
			}
		}
		t.Errorf("column %s of %s is %s, its field is %s", c.name, row, c.typ, f.Type)
		return
	}
	t.Errorf("column %s of %s is at no field", c.name, row)
}
