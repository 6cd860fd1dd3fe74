package driver

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/validation"
)

var roleNames = map[permission]string{view: "view", submit: "submit", admin: "admin"}

// Tokens is what the token file says. It can be replaced while calls go on.
//
// Each line is "SHA256-HEX ROLE NAMESPACE NAME", separated by blanks; ROLE is view, submit or admin, NAMESPACE a namespace or *.
// Only hashes are kept, so the file tells nobody a token. Lines that begin with # are comments.
type Tokens struct {
	byHash atomic.Pointer[map[[sha256.Size]byte]caller]
}

// NewTokens returns tokens that let nobody in.
func NewTokens() *Tokens {
	t := &Tokens{}
	t.byHash.Store(&map[[sha256.Size]byte]caller{})
	return t
}

// Replace takes the contents of a token file. If a line is wrong nothing changes, and the error names every such line.
func (t *Tokens) Replace(file []byte) error {
	tokens := make(map[[sha256.Size]byte]caller)
	lines := make(map[[sha256.Size]byte]int)
	var errs []error
	scanner := bufio.NewScanner(bytes.NewReader(file))
	for n := 1; scanner.Scan(); n++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		hash, who, err := parseToken(line)
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", n, err))
			continue
		}
		if first, twice := lines[hash]; twice {
			errs = append(errs, fmt.Errorf("line %d: the token is that of line %d: remove one, or make a new token for %s", n, first, who.name))
			continue
		}
		tokens[hash], lines[hash] = who, n
	}
	if err := scanner.Err(); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	t.byHash.Store(&tokens)
	return nil
}

// Len is how many tokens are known.
func (t *Tokens) Len() int { return len(*t.byHash.Load()) }

func parseToken(line string) (hash [sha256.Size]byte, who caller, err error) {
	fields := strings.Fields(line)
	if len(fields) != 4 {
		return hash, who, fmt.Errorf("there are %d fields, write SHA256-HEX ROLE NAMESPACE NAME", len(fields))
	}
	sum, err := hex.DecodeString(fields[0])
	if err != nil || len(sum) != len(hash) {
		return hash, who, errors.New("the first field is not a SHA-256 in hex (64 digits); a token itself does not belong here")
	}
	copy(hash[:], sum)
	for role, name := range roleNames {
		if name == fields[1] {
			who.role = role
		}
	}
	if who.role == 0 {
		return hash, who, fmt.Errorf("%q is not a role: write view, submit or admin", fields[1])
	}
	who.namespace, who.name = fields[2], fields[3]
	if who.namespace != "*" && len(validation.IsDNS1123Label(who.namespace)) > 0 {
		return hash, who, fmt.Errorf("%q is not a namespace and not *", who.namespace)
	}
	return hash, who, nil
}

func (t *Tokens) find(token string) (caller, bool) {
	who, ok := (*t.byHash.Load())[sha256.Sum256([]byte(token))]
	return who, ok
}

// NewToken makes a token and the line of the token file that lets it in.
func NewToken(role, namespace, name string) (token, line string, err error) {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	token = base64.RawURLEncoding.EncodeToString(secret)
	line = fmt.Sprintf("%x %s %s %s", sha256.Sum256([]byte(token)), role, namespace, name)
	if _, _, err := parseToken(line); err != nil {
		return "", "", err
	}
	return token, line, nil
}

// ExecutorKeys makes and checks the credentials of executors: a MAC over who the executor is, so that none needs to be kept.
type ExecutorKeys struct{ key [32]byte }

// NewExecutorKeys makes keys from a secret of 32 bytes that only the daemon knows.
func NewExecutorKeys(secret [32]byte) *ExecutorKeys { return &ExecutorKeys{key: secret} }

// Token returns the credential of the executor with this pod name.
func (k *ExecutorKeys) Token(namespace, application string, id uint64, podName string) string {
	mac := hmac.New(sha256.New, k.key[:])
	// Names hold no newline (they are DNS labels), so the fields cannot run into each other.
	fmt.Fprintf(mac, "executor\n%s\n%s\n%d\n%s", namespace, application, id, podName)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// valid reports in constant time whether token is that executor's credential.
func (k *ExecutorKeys) valid(token, namespace, application string, id uint64, podName string) bool {
	return hmac.Equal([]byte(token), []byte(k.Token(namespace, application, id, podName)))
}
