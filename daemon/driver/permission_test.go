package driver

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Every method that a server offers has a permission, and no permission is left over from a method that is gone.
func TestEveryMethodHasAPermission(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Reflection = true
	s, err := New(cfg, Parts{Log: slog.New(slog.DiscardHandler), Tokens: NewTokens()})
	if err != nil {
		t.Fatal(err)
	}
	offered := map[string]bool{}
	for service, info := range s.newGRPC(Listener{}).GetServiceInfo() {
		for _, method := range info.Methods {
			name := "/" + service + "/" + method.Name
			offered[name] = true
			if permissions[name] == 0 {
				t.Errorf("%s has no permission: every call of it would be refused", name)
			}
		}
	}
	for name := range permissions {
		if !offered[name] {
			t.Errorf("there is a permission for %s, which nobody offers", name)
		}
	}
}

func with(token string) context.Context {
	return metadata.NewIncomingContext(context.Background(), metadata.Pairs("authorization", token))
}

// Who may call what: by role, by kind of method, by listener; anything that is not plainly allowed is refused.
func TestGate(t *testing.T) {
	tokens := NewTokens()
	secret := map[string]string{}
	var file strings.Builder
	for _, role := range []string{"view", "submit", "admin"} {
		token, line, err := NewToken(role, "team-a", role+"er")
		if err != nil {
			t.Fatal(err)
		}
		secret[role] = token
		file.WriteString(line + "\n")
	}
	if err := tokens.Replace([]byte("# who may come in\n\n" + file.String())); err != nil {
		t.Fatal(err)
	}
	const (
		list  = "/retinue.v1.ApplicationService/ListApplications"
		send  = "/retinue.v1.TaskService/SubmitTasks"
		apply = "/retinue.v1.ApplicationService/ApplyApplication"
	)
	for _, c := range []struct {
		name, token, method string
		trusted             bool
		want                codes.Code
	}{
		{"no token", "", list, false, codes.Unauthenticated},
		{"unknown token", "Bearer nobody", list, false, codes.Unauthenticated},
		{"token without its scheme", secret["admin"], list, false, codes.Unauthenticated},
		{"viewer looks", "Bearer " + secret["view"], list, false, codes.OK},
		{"viewer submits", "Bearer " + secret["view"], send, false, codes.PermissionDenied},
		{"submitter submits", "Bearer " + secret["submit"], send, false, codes.OK},
		{"submitter applies", "Bearer " + secret["submit"], apply, false, codes.PermissionDenied},
		{"administrator applies", "Bearer " + secret["admin"], apply, false, codes.OK},
		{"method without a permission", "Bearer " + secret["admin"], "/retinue.v1.TaskService/Invent", false, codes.PermissionDenied},
		{"path without its slash", "Bearer " + secret["admin"], list[1:], false, codes.PermissionDenied},
		{"trusted socket", "", apply, true, codes.OK},
		{"trusted socket, unknown method", "", "/x/y", true, codes.PermissionDenied},
		{"health needs nothing", "", "/grpc.health.v1.Health/Check", false, codes.OK},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &gate{tokens: tokens, trusted: c.trusted}
			_, err := g.admit(with(c.token), c.method)
			if got := status.Code(err); got != c.want {
				t.Errorf("got %v (%v), want %v", got, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), secret["admin"]) {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}

// A caller sees its own namespace and no other.
func TestCallerIsConfined(t *testing.T) {
	tokens := NewTokens()
	token, line, err := NewToken("view", "team-a", "viewer")
	if err != nil {
		t.Fatal(err)
	}
	if err = tokens.Replace([]byte(line)); err != nil {
		t.Fatal(err)
	}
	ctx, err := (&gate{tokens: tokens}).admit(with("Bearer "+token), "/retinue.v1.ApplicationService/ListApplications")
	if err != nil {
		t.Fatal(err)
	}
	if who := callerOf(ctx); !who.sees("team-a") || who.sees("team-b") || who.sees("") {
		t.Errorf("caller %+v sees the wrong namespaces", who)
	}
	if callerOf(context.Background()).sees("team-a") {
		t.Error("a call that passed no gate sees something")
	}
}

// A token file with a wrong line changes nothing, and the error names every such line.
func TestBadTokenFileChangesNothing(t *testing.T) {
	tokens := NewTokens()
	token, line, err := NewToken("view", "*", "viewer")
	if err != nil {
		t.Fatal(err)
	}
	if err = tokens.Replace([]byte(line)); err != nil {
		t.Fatal(err)
	}
	bad := "abc view * x\n" + line + "\n" + strings.Repeat("0", 64) + " king * x\n" + strings.Repeat("0", 64) + " view No_Such x\ntwo fields\n" +
		strings.Replace(line, "view", "admin", 1) // whose word would count?
	err = tokens.Replace([]byte(bad))
	if err == nil {
		t.Fatal("a bad file was accepted")
	}
	for _, want := range []string{"line 1:", "line 3:", "line 4:", "line 5:", "line 6: the token is that of line 2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s %v", want, err)
		}
	}
	if _, ok := tokens.find(token); !ok {
		t.Error("the token that was accepted before is gone")
	}
}

// An executor's credential is good for that executor only.
func TestExecutorCredentialIsForOneExecutor(t *testing.T) {
	keys := NewExecutorKeys([32]byte{1})
	token := keys.Token("ns", "app", 7, "app-i1-exec-7")
	if !keys.valid(token, "ns", "app", 7, "app-i1-exec-7") {
		t.Fatal("its own credential is not valid")
	}
	for name, ok := range map[string]bool{
		"other namespace":   keys.valid(token, "n", "sapp", 7, "app-i1-exec-7"),
		"other application": keys.valid(token, "ns", "app2", 7, "app-i1-exec-7"),
		"other executor":    keys.valid(token, "ns", "app", 8, "app-i1-exec-7"),
		"other pod":         keys.valid(token, "ns", "app", 7, "app-i2-exec-7"),
		"other daemon":      NewExecutorKeys([32]byte{2}).valid(token, "ns", "app", 7, "app-i1-exec-7"),
		"none":              keys.valid("", "ns", "app", 7, "app-i1-exec-7"),
	} {
		if ok {
			t.Errorf("the credential is accepted for the %s", name)
		}
	}
}
