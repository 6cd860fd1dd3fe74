package daemon_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/retinue-sched/retinue/"

// room is a package, or a subtree of packages when its path ends in "/...".
type room struct {
	path string
	pure bool     // decides and never acts: see pureStd and forbiddenCalls
	may  []string // what it imports beside the standard library: rooms by their path in this module, libraries by a prefix
}

// rooms says who may import whom. Tests are free. The first room that fits a package counts.
var rooms = []room{
	// The contract with modules, and what runs in the sandbox: small, because every policy carries it.
	{path: "hostabi"},
	{path: "sdk/client", may: []string{"api/v1", grpc, rpcDetails, protobuf, xSync}},
	{path: "sdk/...", may: []string{"hostabi", "sdk"}},
	{path: "plugins/...", may: []string{"hostabi", "sdk", "plugins/..."}},

	// The core: each may import those above it, and nothing of the world outside.
	{path: "daemon/snapshot", pure: true, may: []string{"hostabi"}},
	{path: "daemon/roster", pure: true, may: []string{"hostabi", "daemon/snapshot"}},
	{path: "daemon/task", pure: true, may: []string{"hostabi", "daemon/snapshot"}},
	{path: "daemon/guard", pure: true, may: []string{"hostabi", "daemon/snapshot"}},
	{path: "daemon/allocator", pure: true, may: slices.Concat([]string{"hostabi"}, facts)},
	{path: "daemon/lifecycle", pure: true, may: slices.Concat([]string{"hostabi"}, facts)},
	{path: "daemon/application", pure: true, may: slices.Concat([]string{"hostabi"}, facts, judges)},

	// The cluster, from what a pod looks like to who talks to an API server.
	{path: "daemon/pod", may: []string{"daemon/snapshot", kubeAPI, kubeMachinery}},
	{path: "daemon/cluster", may: []string{kubeAPI, kubeMachinery}},
	{path: "daemon/cluster/kube", may: []string{"daemon/cluster", kubeAPI, kubeMachinery, clientGo}},
	{path: "daemon/cluster/model", pure: true, may: []string{kubeAPI, kubeMachinery, "encoding/json", "net/http", jsonPatch}},
	{path: "daemon/cluster/local/...", may: []string{"daemon/cluster/model", "daemon/cluster/local/...", kubeAPI, kubeMachinery, xSys, yaml}},
	{path: "daemon/source", may: slices.Concat(core, around, []string{kubeAPI, kubeMachinery, otelAPI})},
	{path: "daemon/orphan", may: slices.Concat(core, []string{otelAPI})},
	{path: "daemon/actuator", may: slices.Concat(core, around, []string{kubeAPI, kubeMachinery, otelAPI})},

	// The shell around the core.
	{path: "daemon/policy", may: []string{"hostabi", "sdk", "daemon/policy/wasm", "daemon/policy/meter", "plugins/...", wazero, otelAPI, xSys}},
	{path: "daemon/policy/wasm", pure: true},
	{path: "daemon/policy/wasm/wasmtest", pure: true, may: []string{"daemon/policy/wasm"}},
	{path: "daemon/policy/meter", pure: true, may: []string{"daemon/policy/wasm"}},
	{path: "daemon/driver", may: slices.Concat(core, []string{
		"api/v1", "daemon/pod", "daemon/policy", "daemon/runner", "daemon/spec", grpc, rpcDetails, protobuf, otelGRPC, otelAPI, kubeMachinery, xNet,
	})},
	{path: "daemon/spec", may: []string{"api/v1", "daemon/application", "daemon/guard", "daemon/pod", "daemon/snapshot", kubeAPI, kubeMachinery, protobuf, yaml}},
	{path: "daemon/runner", may: slices.Concat(core, []string{"daemon/spec", otelAPI})},
	{path: "daemon/scenario", may: slices.Concat(core, []string{"daemon/cluster/model", "daemon/spell", "sdk", "plugins/...", yaml})},
	{path: "daemon/spell"},
	{path: "daemon/state"},
	{path: "daemon/telemetry", may: []string{otelAPI, otelSDK, prometheus}},
	{path: "daemon", may: []string{"...", grpc, klog, kubeAPI, kubeMachinery, otelAPI, otelGRPC, protobuf, xSync}},

	// Programs, and what they are made of.
	{path: "executor/...", may: []string{"api/v1", "executor/...", grpc, rpcDetails, protobuf, xSync, xSys}},
	{path: "api/v1", may: []string{grpc, protobuf}},
	{path: "cmd/retinued", may: []string{"daemon/...", "sdk/client", koanf, mapstructure, pflag}},
	{path: "cmd/retinue-executor", may: []string{"executor/...", pflag}},
	{path: "cmd/retinue", may: []string{
		"sdk/client", "api/v1", "hostabi", "sdk", "plugins/...", "daemon/cluster/local/...", "daemon/scenario", "daemon/policy", "daemon/spec", "daemon/spell",
		cobra, pflag, protobuf, yaml, xTerm,
	}},

	// Outside of the product.
	{path: "examples/audit"},
	{path: "examples/...", may: []string{"hostabi", "sdk", "sdk/client", "api/v1"}},
	{path: "test/...", may: []string{"...", grpc, protobuf, kubeAPI, kubeMachinery, clientGo, xSync, xSys, xTerm, yaml}},
}

// The parts of the core, in the direction in which they are imported.
var (
	facts  = []string{"daemon/snapshot", "daemon/roster", "daemon/task", "daemon/guard"}
	judges = []string{"daemon/allocator", "daemon/lifecycle"}
	core   = slices.Concat([]string{"hostabi", "daemon/application"}, facts, judges)
	around = []string{"daemon/pod", "daemon/cluster"}
)

// Libraries. Standing here once keeps it plain in the table who owns what.
const (
	clientGo      = "k8s.io/client-go"
	cobra         = "github.com/spf13/cobra"
	grpc          = "google.golang.org/grpc"
	jsonPatch     = "gopkg.in/evanphx/json-patch.v4"
	klog          = "k8s.io/klog/v2"
	koanf         = "github.com/knadh/koanf"
	mapstructure  = "github.com/go-viper/mapstructure/v2" // what koanf decodes with
	kubeAPI       = "k8s.io/api"
	kubeMachinery = "k8s.io/apimachinery"
	otelAPI       = "go.opentelemetry.io/otel"
	otelGRPC      = "go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc"
	otelSDK       = "go.opentelemetry.io/otel/{sdk,exporters}"
	pflag         = "github.com/spf13/pflag"
	prometheus    = "github.com/prometheus/client_golang"
	protobuf      = "google.golang.org/protobuf"
	rpcDetails    = "google.golang.org/genproto/googleapis/rpc"
	wazero        = "github.com/tetratelabs/wazero"
	xNet          = "golang.org/x/net"
	xSync         = "golang.org/x/sync"
	xSys          = "golang.org/x/sys"
	xTerm         = "golang.org/x/term"
	yaml          = "sigs.k8s.io/yaml"
)

// pureStd is what a pure package may use of the standard library: nothing that reaches outside, waits, or locks.
var pureStd = []string{
	"bytes", "cmp", "container/heap", "container/list", "crypto/sha256", "encoding/base64", "encoding/binary", "encoding/hex", "errors",
	"fmt", "hash", "hash/crc32", "hash/fnv", "hash/maphash", "iter", "maps", "math", "math/bits", "math/rand/v2", "regexp", "slices", "sort", "strconv",
	"strings", "time", "unicode", "unicode/utf8", "unsafe",
}

// forbiddenCalls are the doors that pureStd leaves open: the clock, chance that no seed governs, output.
var forbiddenCalls = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Local", "LoadLocation"},
	"math/rand/v2": {
		"Int", "IntN", "Int32", "Int32N", "Int64", "Int64N", "Uint", "UintN", "Uint32", "Uint32N", "Uint64", "Uint64N", "N",
		"Float32", "Float64", "ExpFloat64", "NormFloat64", "Perm", "Shuffle",
	},
	"hash/maphash": {"MakeSeed", "Bytes", "String", "Comparable", "Hash"},
	"fmt":          {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
}

// nowhere is what no package may import, and what to use instead. Tests are held to it, too.
var nowhere = map[string]string{
	"log":                                 "log/slog, passed in",
	"math/rand":                           "math/rand/v2",
	"github.com/pkg/errors":               "errors and fmt",
	"github.com/stretchr/testify/assert":  "go-cmp and a plain if",
	"github.com/stretchr/testify/require": "go-cmp and a plain if",
	"k8s.io/client-go/kubernetes/fake":    "daemon/cluster/model: the fake ignores preconditions and selectors",
}

// Every package imports only what the table allows it, and every package is in the table.
func TestImportsFollowTheTable(t *testing.T) {
	for _, pkg := range packages(t) {
		home, found := roomOf(pkg.path)
		if !found {
			t.Errorf("%s is in no room: add it to the table", pkg.path)
			continue
		}
		for _, file := range pkg.files {
			for _, spec := range file.Imports {
				if complaint := home.complain(pkg.path, importPath(spec)); complaint != "" {
					t.Errorf("%s: %s", pkg.position(spec), complaint)
				}
			}
		}
	}
}

// Some packages are not wanted anywhere.
func TestUnwantedImports(t *testing.T) {
	for _, pkg := range packages(t) {
		for _, file := range slices.Concat(pkg.files, pkg.tests) {
			for _, spec := range file.Imports {
				if instead, unwanted := nowhere[importPath(spec)]; unwanted {
					t.Errorf("%s: %s is not used here: use %s", pkg.position(spec), importPath(spec), instead)
				}
			}
		}
	}
}

// A pure package reads no clock, starts no goroutine, and knows no channel.
func TestPurePackagesOnlyDecide(t *testing.T) {
	for _, pkg := range packages(t) {
		if home, _ := roomOf(pkg.path); !home.pure {
			continue
		}
		for _, file := range pkg.files {
			names := importNames(file)
			ast.Inspect(file, func(node ast.Node) bool {
				if complaint := impurity(node, names); complaint != "" {
					t.Errorf("%s: a pure package %s", pkg.position(node), complaint)
				}
				return true
			})
		}
	}
}

// Packages are named after what they are about.
func TestPackageNames(t *testing.T) {
	for _, pkg := range packages(t) {
		if pkg.path == "." {
			t.Error("the module's root holds code: give it a room")
		}
		for _, empty := range []string{"common", "helper", "helpers", "manager", "misc", "shared", "types", "util", "utils"} {
			if path.Base(pkg.path) == empty || pkg.name() == empty {
				t.Errorf("%s: %q says nothing about what is inside", pkg.path, empty)
			}
		}
	}
}

// The table's judge lets through what it should, and nothing else.
func TestTableIsJudgedRight(t *testing.T) {
	for _, test := range []struct {
		from, target string
		allowed      bool
	}{
		{"daemon/task", module + "daemon/snapshot", true},
		{"daemon/snapshot", module + "daemon/task", false},
		{"daemon/guard", module + "daemon/task", false},
		{"daemon/application", module + "daemon/lifecycle", true},
		{"daemon/lifecycle", module + "daemon/allocator", false},
		{"daemon/task", "time", true},
		{"daemon/task", "sync", false},
		{"daemon/task", "sync/atomic", false},
		{"daemon/task", "k8s.io/api/core/v1", false},
		{"daemon/cluster/kube", clientGo + "/rest", true},
		{"daemon/source", clientGo + "/rest", false},
		{"daemon/policy", wazero + "/api", true},
		{"daemon/driver", wazero, false},
		{"daemon/driver", otelAPI + "/metric", true},
		{"daemon/driver", otelAPI + "/sdk/metric", false},
		{"daemon/telemetry", otelAPI + "/sdk/metric", true},
		{"sdk/client", grpc + "/codes", true},
		{"sdk", grpc, false},
		{"sdk", "encoding/json", true},
		{"cmd/retinue", grpc, false},
		{"cmd/retinue", koanf + "/v2", false},
		{"cmd/retinued", koanf + "/v2", true},
		{"plugins/direct/module", module + "plugins/direct", true},
		{"plugins/direct", module + "daemon/snapshot", false},
	} {
		home, found := roomOf(test.from)
		if complaint := home.complain(test.from, test.target); !found || (complaint == "") != test.allowed {
			t.Errorf("%s imports %s: complaint %q, want it allowed: %v", test.from, test.target, complaint, test.allowed)
		}
	}
	if _, found := roomOf("daemon/attic"); found {
		t.Error("a package that nobody listed has a room")
	}
}

// Every way out of a pure package is seen, under whatever name the import goes.
func TestImpuritiesAreSeen(t *testing.T) {
	for statement, want := range map[string]int{
		"_ = time.Second": 0, "_ = clock.Now()": 1, "f := clock.Since; _ = f": 1, "_ = rand.New(rand.NewPCG(1, 2)).IntN(3)": 0, "_ = rand.IntN(3)": 1,
		"go f()": 1, "var c chan int; _ = c": 1, "c <- 1": 1, "<-c": 1, "select {}": 1, "fmt.Println()": 1, "_ = fmt.Sprint()": 0,
		"_ = http.StatusOK": 0, "_, _ = http.Get(url)": 1,
	} {
		text := "package p\nimport (\"fmt\"; \"net/http\"; \"math/rand/v2\"; \"time\"; clock \"time\")\nfunc _() { " + statement + " }"
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		seen := 0
		ast.Inspect(file, func(node ast.Node) bool {
			if impurity(node, importNames(file)) != "" {
				seen++
			}
			return true
		})
		if seen != want {
			t.Errorf("%s: %d complaints, want %d", statement, seen, want)
		}
	}
}

// complain says what is wrong with an import, or nothing.
func (r room) complain(from, target string) string {
	if own, ours := strings.CutPrefix(target, module); ours {
		if own == from || slices.ContainsFunc(r.may, func(allowed string) bool { return inRoom(own, allowed) }) {
			return ""
		}
		return r.path + " may not import " + own
	}
	standard := !strings.Contains(strings.Split(target, "/")[0], ".")
	switch {
	case standard && !r.pure, standard && slices.Contains(pureStd, target):
		return ""
	case slices.ContainsFunc(r.may, func(allowed string) bool { return allowsLibrary(allowed, target) }):
		return ""
	case standard:
		return r.path + " is pure and may not import " + target
	}
	return r.path + " may not import " + target
}

// allowsLibrary reports whether an entry of the table covers a library. The API of OpenTelemetry does not cover the SDK.
func allowsLibrary(allowed, target string) bool {
	sdk := within(target, otelAPI+"/sdk") || within(target, otelAPI+"/exporters")
	switch allowed {
	case otelSDK:
		return sdk
	case otelAPI:
		return within(target, otelAPI) && !sdk
	}
	return within(target, allowed)
}

func roomOf(pkg string) (room, bool) {
	for _, r := range rooms {
		if inRoom(pkg, r.path) {
			return r, true
		}
	}
	return room{}, false
}

func inRoom(pkg, place string) bool {
	if place == "..." {
		return true
	}
	if tree, all := strings.CutSuffix(place, "/..."); all {
		return within(pkg, tree)
	}
	return pkg == place
}

func within(target, tree string) bool {
	return target == tree || strings.HasPrefix(target, tree+"/")
}

// impurity says what a piece of a program does that a pure package must not, or nothing. Names maps what imports are called to what they are.
func impurity(node ast.Node, names map[string]string) string {
	switch node := node.(type) {
	case *ast.GoStmt:
		return "starts no goroutine"
	case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
		return "uses no channel"
	case *ast.UnaryExpr:
		if node.Op == token.ARROW {
			return "uses no channel"
		}
	case *ast.SelectorExpr:
		name, plain := node.X.(*ast.Ident)
		if plain && forbidden(names[name.Name], node.Sel.Name) {
			return "does not use " + name.Name + "." + node.Sel.Name
		}
	}
	return ""
}

func forbidden(pkg, name string) bool {
	if pkg == "net/http" {
		return !strings.HasPrefix(name, "Status") // an API server without wires still answers with codes
	}
	return slices.Contains(forbiddenCalls[pkg], name)
}

func importNames(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range file.Imports {
		target := importPath(spec)
		name := path.Base(strings.TrimSuffix(target, "/v2"))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = target
	}
	return names
}

func importPath(spec *ast.ImportSpec) string {
	target, _ := strconv.Unquote(spec.Path.Value) // the parser has seen to it
	return target
}

// source is one folder of Go files.
type source struct {
	path         string // in the module
	set          *token.FileSet
	files, tests []*ast.File
}

func (s *source) name() string {
	if len(s.files) == 0 {
		return ""
	}
	return s.files[0].Name.Name
}

func (s *source) position(node ast.Node) string {
	at := s.set.Position(node.Pos())
	return at.Filename + ":" + strconv.Itoa(at.Line)
}

// packages parses the module's packages, whatever system their files are for, sorted by path. Modules inside of it are not part of it.
func packages(t *testing.T) []*source {
	t.Helper()
	root := os.DirFS("..")
	found := map[string]*source{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skipFolder(root, name)
		case path.Ext(name) != ".go":
			return nil
		}
		folder := path.Dir(name)
		if found[folder] == nil {
			found[folder] = &source{path: folder, set: token.NewFileSet()}
		}
		return found[folder].parse(name)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("no package found: is this the module's daemon folder?")
	}
	var all []*source
	for _, pkg := range found {
		all = append(all, pkg)
	}
	slices.SortFunc(all, func(a, b *source) int { return strings.Compare(a.path, b.path) })
	return all
}

func skipFolder(root fs.FS, name string) error {
	if name == "." {
		return nil
	}
	base := path.Base(name)
	_, err := fs.Stat(root, path.Join(name, "go.mod"))
	if err == nil || base == "testdata" || base == "bin" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	return nil
}

func (s *source) parse(name string) error {
	file, err := parser.ParseFile(s.set, filepath.Join("..", filepath.FromSlash(name)), nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if strings.HasSuffix(name, "_test.go") {
		s.tests = append(s.tests, file)
	} else {
		s.files = append(s.files, file)
	}
	return nil
}
