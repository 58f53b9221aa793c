package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAKeyTakesWhatItsTypeSays(t *testing.T) {
	t.Parallel()
	for name, texts := range map[string]map[string]bool{
		"nomad.address": {
			"": true, "http://127.0.0.1:4646": true, "https://nomad.example.org:4646": true, "https://n/": true, "http://[::1]:4646": true, "unix:///secrets/api.sock": true,
			"nomad:4646": false, "ftp://n": false, "http://": false, "https://u:p@n": false, "https://n/v1": false, "https://n?x": false,
			"unix://x/y": false, "unix:y": false, "unix:///" + strings.Repeat("x", 107): false,
		},
		"nomad.namespaces": {"": true, "a": true, "a,b-c": true, "*": true, "*,a": false, "a,": false, "a b": false},
		"nomad.people": {
			"": true, "a=b": true, "a=b,a=c,d=*": true, "a": false, "a=": false, "=b": false, "a=b,": false, "*=b": false, "a=b=c": false, "a b=c": false,
		},
		"store.prefix":    {"a/b-c": true, "": false, "nomad": false, "nomad/x": false, "a//b": false, strings.Repeat("x", 49): false},
		"broker.above":    {"": true, "a,b": true, "a b": false, "a,": false},
		"broker.advice":   {"": true, "a,b": true, "a b": false},
		"broker.raise":    {"10s": true, "9s": false, "2h": false},
		"broker.restarts": {"1": true, "0": false, "1001": false},
	} {
		i := slices.IndexFunc(Keys(), func(k Key) bool { return k.Name == name })
		for text, ok := range texts {
			if got := Keys()[i].Type.takes(text); got != ok {
				t.Errorf("%s: %q is taken: %v, want %v", name, text, got, ok)
			}
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
		{"one that the group may read", secret, 0o640, "mode 0640"},
		{"one that everybody may write", secret, 0o602, "mode 0602"},
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
			if !errors.Is(err, ErrInvalid) || !strings.HasPrefix(err.Error(), path+": token: ") || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), secret) {
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
