package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAddressesOfNomad(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"": true, "http://127.0.0.1:4646": true, "https://nomad.example.org:4646": true, "https://n/": true, "unix:///secrets/api.sock": true,
		"nomad:4646": false, "ftp://n": false, "http://": false, "https://u:p@n": false, "https://n/v1": false, "https://n?x": false,
		"unix://x/y": false, "unix:y": false, "unix:///" + strings.Repeat("x", 107): false,
	} {
		var to string
		if err := setNomad(&to, address); ok != (err == nil) || ok && to != address {
			t.Errorf("%q: %v, want it taken: %v", address, err, ok)
		}
	}
}

func TestNamespacesOfNomad(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{"": true, "a": true, "a,b-c": true, "*": true, "*,a": false, "a,": false, "a b": false} {
		var to []string
		if err := setNamespaces(&to, text); ok != (err == nil) {
			t.Errorf("%q: %v, want it taken: %v", text, err, ok)
		}
	}
}

func TestPeopleOfNomad(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"": true, "a=b": true, "a=b,a=c,d=*": true, "a": false, "a=": false, "=b": false, "a=b,": false, "*=b": false, "a=b=c": false, "a b=c": false,
	} {
		var to []Person
		if err := setPeople(&to, text); ok != (err == nil) {
			t.Errorf("%q: %v, want it taken: %v", text, err, ok)
		}
	}
}

func TestATokenIsForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	const secret = "5e7ec2e7-0000"
	for _, tt := range []struct {
		name, content string
		mode          os.FileMode
		want          string // empty: the token
	}{
		{"a token", secret + "\n", 0o600, ""},
		{"a token that may only be read", secret, 0o400, ""},
		{"one that the group may read", secret, 0o640, "has the mode 0640, by which others may read"},
		{"one that everybody may write", secret, 0o602, "has the mode 0602"},
		{"nothing", " \n", 0o600, "holds no token"},
		{"two lines", secret + "\n" + secret, 0o600, "holds no token"},
		{"a large file", strings.Repeat("x", 20<<10), 0o600, "holds no token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, tt.mode); err != nil {
				t.Fatal(err)
			}
			got, err := ReadToken(path)
			if tt.want == "" {
				if err != nil || got != secret {
					t.Errorf("%v", err)
				}
				return
			}
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), path+": token: "+tt.want) || strings.Contains(err.Error(), secret) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "absent")} {
		if _, err := ReadToken(path); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
