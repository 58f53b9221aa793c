package facts_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func must[T any](t *testing.T) func(v T, _ any, err error) T {
	t.Helper()
	return func(v T, _ any, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func done(t *testing.T) func(_, _ any, err error) {
	t.Helper()
	return func(_, _ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func quoted(text string) string { return fmt.Sprintf("%q", text) }

// do sends a request as it is.
func (c cluster) do(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, c.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Nomad-Token", c.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, bodyOf(t, resp)
}

func rawJSON(text string) json.RawMessage { return json.RawMessage(text) }

func bodyOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// output is what an allocation's task has written, once it is one of the texts wanted.
func (c cluster) output(t *testing.T, alloc string, wanted ...string) string {
	t.Helper()
	var text string
	await(t, "the output", func() error {
		resp := c.get(t, "/v1/client/fs/logs/"+alloc+"?task=t&type=stdout&plain=true")
		text = bodyOf(t, resp)
		if resp.StatusCode != http.StatusOK || !slices.Contains(wanted, text) {
			return fmt.Errorf("it is %d %q, want one of %q", resp.StatusCode, text, wanted)
		}
		return nil
	})
	return text
}
