package certstest

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pitchpipe/exporter/api/certs"
)

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// Leaf is a certificate to be signed.
type Leaf struct {
	Name   string   // common name
	DNS    []string // names besides it
	IPs    []net.IP
	Server bool          // it may be a server's
	Client bool          // it may be a client's
	For    time.Duration // valid for so long; 0 = an hour, below 0 = it expired that long ago
}

// New makes an authority.
func New(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{key: newKey(t)}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, SerialNumber: serial(t),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatalf("make an authority: %v", err)
	}
	if a.cert, err = x509.ParseCertificate(raw); err != nil {
		t.Fatalf("make an authority: %v", err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	return a
}

// Files signs a certificate and writes it, its key, and the authority that its owner
// believes to a new folder.
func (a *Authority) Files(t testing.TB, leaf Leaf, believes *Authority) certs.Files {
	t.Helper()
	dir := t.TempDir()
	f := certs.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), CA: filepath.Join(dir, "ca.pem")}
	a.Renew(t, f, leaf, believes)
	return f
}

// Renew replaces what is in the files, one after the other.
func (a *Authority) Renew(t testing.TB, f certs.Files, leaf Leaf, believes *Authority) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: leaf.Name}, DNSNames: leaf.DNS, IPAddresses: leaf.IPs, SerialNumber: serial(t),
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(cmp.Or(leaf.For, time.Hour)), KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if leaf.Server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if leaf.Client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatalf("sign a certificate: %v", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatalf("write a key: %v", err)
	}
	for path, content := range map[string][]byte{
		f.Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		f.Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		f.CA:   believes.pem,
	} {
		if err := os.WriteFile(path+".new", content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatalf("draw a number: %v", err)
	}
	return n
}
