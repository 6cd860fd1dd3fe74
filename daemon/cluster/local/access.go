package local

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// access is how clients reach a cluster and know it: kept in its folder, so that a kubeconfig outlives a restart.
type access struct {
	authority   []byte // PEM
	certificate tls.Certificate
	token       string
}

const (
	validFor   = 10 * 365 * 24 * time.Hour
	renewsWhen = 30 * 24 * time.Hour
)

// openAccess reads what dir holds, or makes it anew when it is missing, damaged or about to expire.
func openAccess(dir string, now time.Time) (access, error) {
	if a, err := readAccess(dir, now); err == nil {
		return a, nil
	}
	if err := makeAccess(dir, now); err != nil {
		return access{}, fmt.Errorf("making certificates in %s: %w", dir, err)
	}
	return readAccess(dir, now)
}

func readAccess(dir string, now time.Time) (access, error) {
	authority, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return access{}, err
	}
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"))
	if err != nil {
		return access{}, err
	}
	token, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		return access{}, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	if _, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now.Add(renewsWhen), DNSName: "127.0.0.1"}); err != nil {
		return access{}, err
	}
	text := strings.TrimSpace(string(token))
	if text == "" {
		return access{}, errors.New("the token is empty")
	}
	return access{authority: authority, certificate: cert, token: text}, nil
}

// makeAccess makes an authority, a certificate that it signs, and a token. The authority's key is thrown away: nothing
// else will ever be signed.
func makeAccess(dir string, now time.Time) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "retinue-local-ca"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validFor),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, MaxPathLenZero: true,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano() + 1), Subject: pkix.Name{CommonName: "retinue-local"},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	return errors.Join(
		writeFile(filepath.Join(dir, "ca.crt"), block("CERTIFICATE", caDER)),
		writeFile(filepath.Join(dir, "server.crt"), block("CERTIFICATE", leafDER)),
		writeFile(filepath.Join(dir, "server.key"), block("PRIVATE KEY", keyDER)),
		writeFile(filepath.Join(dir, "token"), []byte(base64.RawURLEncoding.EncodeToString(secret))),
	)
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// contextName names cluster, user and context in the kubeconfig.
const contextName = "retinue-local"

func (a access) kubeconfig(url string) ([]byte, error) {
	type object = map[string]any
	return yaml.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": contextName,
		"clusters": []object{{"name": contextName, "cluster": object{
			"server": url, "certificate-authority-data": base64.StdEncoding.EncodeToString(a.authority),
		}}},
		"users":    []object{{"name": contextName, "user": object{"token": a.token}}},
		"contexts": []object{{"name": contextName, "context": object{"cluster": contextName, "user": contextName, "namespace": "default"}}},
	})
}
