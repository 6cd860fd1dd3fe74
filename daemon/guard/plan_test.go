package guard_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/retinue-sched/retinue/daemon/guard"
	"github.com/retinue-sched/retinue/hostabi"
)

// A plan with content cannot be written down outside of this package: every field is unexported, and Check alone returns one.
func TestOnlyCheckMakesPlans(t *testing.T) {
	plan := reflect.TypeFor[guard.Plan]()
	if plan.NumField() == 0 {
		t.Error("a plan has no fields: what does it hold?")
	}
	for field := range plan.Fields() {
		if field.IsExported() {
			t.Errorf("Plan.%s can be set by anyone", field.Name)
		}
	}
	for method := range reflect.TypeFor[*guard.Plan]().Methods() {
		if method.Type.NumIn() > 1 {
			t.Errorf("Plan.%s takes something in", method.Name)
		}
	}
	if makers := planMakers(t); len(makers) != 1 || makers[0] != "Check" {
		t.Errorf("plans are made by %v", makers)
	}
}

// planMakers lists the exported functions of the package that return something with a Plan in it, and the variables of that type.
func planMakers(t *testing.T) []string {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var makers []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Type.Results != nil && mentionsPlan(d.Type.Results) {
					makers = append(makers, d.Name.Name)
				}
			case *ast.GenDecl:
				if d.Tok == token.VAR {
					makers = append(makers, "a variable")
				}
			}
		}
	}
	return makers
}

func mentionsPlan(n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == "Plan"
		return true
	})
	return found
}

// What a plan lists cannot be used to change it.
func TestPlanDoesNotChange(t *testing.T) {
	plan, _ := guard.Check(limits(nil), fleet(), hostabi.Decision{
		Creates: []hostabi.Create{{Profile: 0, Count: 1}}, Releases: []hostabi.Release{{Executor: 1, Mode: hostabi.Cancel}},
	})
	plan.Creates()[0].Count = 1000
	plan.Releases()[0].Executor = 4
	if plan.Creates()[0].Count != 1 || plan.Releases()[0].Executor != 1 {
		t.Errorf("it is now %v, %v", plan.Creates(), plan.Releases())
	}
	if plan.Empty() || !(guard.Plan{}).Empty() {
		t.Error("empty is the wrong one")
	}
}
