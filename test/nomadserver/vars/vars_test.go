package vars_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"pitchpipe/test/nomadagent"
	"pitchpipe/test/nomadserver/vars"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask sends a request and returns the status and the body.
type ask func(method, path, body string) (int, string)

// step is a request and what is answered. In what is sent and expected NAME stands for a
// number or an id that an answer before had; the words of the answer that are not
// wanted are not named.
type step struct {
	method, path, body string
	status             int
	want               string            // the whole text, or
	fields             map[string]string // words of the JSON; "" = not there
	keep               map[string]string // field → NAME
}

func item(k, v string) string { return fmt.Sprintf(`{"Items":{%q:%q}}`, k, v) }

func steps() []step {
	return []step{
		{"GET", "/v1/var/a/b", "", 404, "variable not found", nil, nil},
		{"GET", "/v1/vars", "", 200, "[]", nil, nil},
		{"PUT", "/v1/var/a/b?cas=0", item("k", "v"), 200, "", map[string]string{"Path": "a/b", "Namespace": "default", "Items.k": "v", "Lock": ""}, map[string]string{"ModifyIndex": "FIRST"}},
		{"PUT", "/v1/var/a/b?cas=0", item("k", "w"), 409, "", map[string]string{"Items.k": "v", "ModifyIndex": "FIRST"}, nil},
		{"PUT", "/v1/var/a/b?cas=FIRST", item("k", "w"), 200, "", map[string]string{"Items.k": "w", "CreateIndex": "FIRST"}, map[string]string{"ModifyIndex": "SECOND"}},
		{"PUT", "/v1/var/a/b?cas=FIRST", item("k", "x"), 409, "", map[string]string{"Items.k": "w", "ModifyIndex": "SECOND"}, nil},
		{"PUT", "/v1/var/none?cas=5", item("k", "x"), 409, "", map[string]string{"Path": "none", "Items": "", "ModifyIndex": "0"}, nil},
		{"PUT", "/v1/var/a/b?cas=x", item("k", "x"), 400, `can not parse cas: strconv.ParseUint: parsing "x": invalid syntax`, nil, nil},
		{"PUT", "/v1/var/a/b", `{}`, 400, "variable missing required Items object", nil, nil},
		{"PUT", "/v1/var/a.b", item("k", "v"), 400, `RPC Error:: 400,invalid path "a.b"`, nil, nil},
		{"PUT", "/v1/var/big", item("k", strings.Repeat("x", 65536)), 400, "RPC Error:: 400,variables are limited to 64KiB in total size", nil, nil},
		{"PUT", "/v1/var/big", item("k", strings.Repeat("x", 65535)), 200, "", map[string]string{"Path": "big"}, nil},
		{"PUT", "/v1/var/l", `{"Items":{"k":"v"},"Lock":{"TTL":"15s"}}`, 400, "RPC Error:: 400,RPC Error:: 400,variable should not contain lock definition", nil, nil},
		{"GET", "/v1/vars?prefix=a/", "", 200, "", map[string]string{"0.Path": "a/b", "0.ModifyIndex": "SECOND", "0.Items": "", "1": ""}, nil},
		{"GET", "/v1/vars?per_page=1", "", 200, "", map[string]string{"0.Path": "a/b", "1": ""}, nil},
		{"GET", "/v1/vars?per_page=1&next_token=default.big", "", 200, "", map[string]string{"0.Path": "big", "1": ""}, nil},
		{"POST", "/v1/vars", "", 405, "Invalid method", nil, nil},
		{"DELETE", "/v1/var/a/b?cas=FIRST", "", 409, "", map[string]string{"Items.k": "w"}, nil},
		{"DELETE", "/v1/var/a/b?cas=SECOND", "", 204, "", nil, nil},
		{"DELETE", "/v1/var/a/b", "", 204, "", nil, nil},
		{"DELETE", "/v1/var/a/b?cas=7", "", 409, "", map[string]string{"Path": "a/b", "ModifyIndex": "0"}, nil},

		{"PUT", "/v1/var/lock?lock-acquire", `{"Items":{"who":"one"},"Lock":{"TTL":"10s","LockDelay":"1s"}}`, 200, "", map[string]string{"Items.who": "one", "Lock.TTL": "10s", "Lock.LockDelay": "1s"}, map[string]string{"Lock.ID": "HOLDER"}},
		{"PUT", "/v1/var/lock?lock-acquire", `{"Items":{"who":"two"}}`, 409, "", map[string]string{"Items": "", "ModifyIndex": "0", "Path": "lock", "Lock": ""}, nil},
		{"PUT", "/v1/var/lock", item("who", "three"), 409, "", map[string]string{"Items": "", "ModifyIndex": "0"}, nil},
		{"DELETE", "/v1/var/lock", "", 409, "", map[string]string{"ModifyIndex": "0"}, nil},
		{"GET", "/v1/var/lock", "", 200, "", map[string]string{"Items.who": "one", "Lock.ID": "HOLDER"}, nil},
		{"PUT", "/v1/var/lock?lock-renew", `{"Lock":{"ID":"HOLDER"}}`, 200, "", map[string]string{"Lock.ID": "HOLDER", "Items": ""}, nil},
		{"PUT", "/v1/var/lock?lock-renew", `{"Lock":{"ID":"someone"}}`, 409, "attempting to modify locked variable", nil, nil},
		{"PUT", "/v1/var/lock", `{"Items":{"who":"still one"},"Lock":{"ID":"HOLDER"}}`, 200, "", map[string]string{"Items.who": "still one"}, nil},
		{"PUT", "/v1/var/lock?lock-release", `{"Lock":{"ID":"someone"}}`, 409, "", map[string]string{"Items": "", "ModifyIndex": "0"}, nil},
		{"PUT", "/v1/var/lock?lock-release", `{"Items":{"a":"b"},"Lock":{"ID":"HOLDER"}}`, 400, "RPC Error:: 400,lock release operation doesn't take variable items", nil, nil},
		{"PUT", "/v1/var/lock?lock-release", `{}`, 400, "RPC Error:: 400,missing lock information", nil, nil},
		{"PUT", "/v1/var/lock?lock-release", `{"Lock":{"ID":"HOLDER"}}`, 200, "", map[string]string{"Lock": "", "Items": ""}, nil},
		{"PUT", "/v1/var/lock?lock-release", `{"Lock":{"ID":"HOLDER"}}`, 500, "variable doesn't hold a lock", nil, nil},
		{"PUT", "/v1/var/gone?lock-release", `{"Lock":{"ID":"HOLDER"}}`, 500, "variable doesn't exist", nil, nil},
		{"PUT", "/v1/var/lock?lock-renew", `{"Lock":{"ID":"HOLDER"}}`, 409, "variable doesn't hold a lock", nil, nil},
		{"PUT", "/v1/var/gone?lock-renew", `{"Lock":{"ID":"HOLDER"}}`, 404, "variable doesn't exist", nil, nil},
		{"GET", "/v1/var/lock", "", 200, "", map[string]string{"Items.who": "still one", "Lock": ""}, nil},
		{"PUT", "/v1/var/lock?lock-acquire", `{}`, 200, "", map[string]string{"Lock.TTL": "15s", "Lock.LockDelay": "15s", "Items": ""}, nil},
		{"PUT", "/v1/var/short?lock-acquire", `{"Lock":{"TTL":"1s"}}`, 400, "RPC Error:: 400,1 error occurred:\n\t* TTL must be between 10 seconds and 24 hours\n\n", nil, nil},
		{"PUT", "/v1/var/x?lock-acquire&lock-renew", `{}`, 400, "multiple lock operations", nil, nil},
		{"PUT", "/v1/var/x?lock-acquire&cas=1", `{}`, 400, "CAS can't be used with lock operations", nil, nil},
	}
}

// look finds a.b.c in JSON; "" where it isn't.
func look(v any, path string) string {
	for word := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[word]
		case []any:
			var i int
			if _, err := fmt.Sscan(word, &i); err != nil || i >= len(x) {
				return ""
			}
			v = x[i]
		default:
			return ""
		}
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

var names = regexp.MustCompile(`\b[A-Z]{5,}\b`)

func play(t *testing.T, send ask) {
	t.Helper()
	known := map[string]string{}
	fill := func(s string) string {
		return names.ReplaceAllStringFunc(s, func(n string) string {
			if v, ok := known[n]; ok {
				return v
			}
			return n
		})
	}
	for _, s := range steps() {
		title := s.method + " " + s.path + " " + s.body[:min(60, len(s.body))]
		status, text := send(s.method, fill(s.path), fill(s.body))
		if status != s.status {
			t.Errorf("%s: %d %q, want %d", title, status, text, s.status)
			continue
		}
		if s.want != "" && strings.TrimRight(text, "\n") != strings.TrimRight(s.want, "\n") {
			t.Errorf("%s: %q, want %q", title, text, s.want)
		}
		var v any
		if s.fields != nil || s.keep != nil {
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber()
			if err := d.Decode(&v); err != nil {
				t.Errorf("%s: %v: %q", title, err, text)
			}
		}
		got, want := map[string]string{}, map[string]string{}
		for f, w := range s.fields {
			got[f], want[f] = look(v, f), fill(w)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s\n%s", title, diff, text)
		}
		for f, n := range s.keep {
			known[n] = look(v, f)
		}
	}
}

func direct(ctx context.Context, h http.Handler) ask {
	return func(method, path, body string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
}

func TestWhatIsAskedIsAnsweredAsByNomad(t *testing.T) {
	t.Parallel()
	play(t, direct(t.Context(), vars.New(time.Now)))
}

func TestARealAgentAnswersTheSame(t *testing.T) {
	t.Parallel()
	a := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.Real})
	play(t, func(method, path, body string) (int, string) {
		status, text, err := a.Do(t.Context(), method, path, body)
		if err != nil {
			t.Fatal(err)
		}
		return status, text
	})
}

func client(t *testing.T, h http.Handler) *api.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := api.NewClient(&api.Config{Address: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestTheLibraryUnderstandsConflictsAndLocks(t *testing.T) {
	t.Parallel()
	c := client(t, vars.New(time.Now))
	v := &api.Variable{Path: "a", Items: api.VariableItems{"k": "v"}}
	first, _, err := c.Variables().Create(v, nil)
	if err != nil {
		t.Fatal(err)
	}
	first.Items["k"] = "w"
	if _, _, err := c.Variables().CheckedUpdate(first, nil); err != nil {
		t.Fatal(err)
	}
	var stale api.ErrCASConflict
	if _, _, err := c.Variables().CheckedUpdate(first, nil); !errors.As(err, &stale) || stale.Conflict.Items["k"] != "w" {
		t.Errorf("a stale write: %v", err)
	}
	one, err := c.Locks(api.WriteOptions{}, api.Variable{Path: "lock", Lock: &api.VariableLock{TTL: "20s", LockDelay: "5s"}})
	if err != nil {
		t.Fatal(err)
	}
	two, err := c.Locks(api.WriteOptions{}, api.Variable{Path: "lock", Lock: &api.VariableLock{TTL: "20s"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Acquire(t.Context()); !errors.Is(err, api.ErrLockConflict) {
		t.Errorf("two have it: %v", err)
	}
	if err := errors.Join(one.Renew(t.Context()), one.Release(t.Context())); err != nil {
		t.Error(err)
	}
	if _, err := two.Acquire(t.Context()); err != nil {
		t.Error(err)
	}
}

func lock(t *testing.T, send ask, id string, want int) string {
	t.Helper()
	status, text := send("PUT", "/v1/var/l?lock-acquire", `{"Lock":{"TTL":"10s","LockDelay":"10s","ID":"`+id+`"}}`)
	if status != want {
		t.Fatalf("acquire: %d %s, want %d", status, text, want)
	}
	var v api.Variable
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if v.Lock == nil {
		return ""
	}
	return v.Lock.ID
}

func TestALockThatIsNotRenewedIsFreeAfterTwiceItsTimeAndItsDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		send := direct(t.Context(), vars.New(time.Now))
		id := lock(t, send, "", 200)
		renew := func() int {
			status, _ := send("PUT", "/v1/var/l?lock-renew", `{"Lock":{"ID":"`+id+`"}}`)
			return status
		}
		time.Sleep(19 * time.Second)
		if got := renew(); got != 200 {
			t.Fatalf("renew before twice the TTL: %d", got)
		}
		time.Sleep(20 * time.Second)
		if got := renew(); got != 409 {
			t.Errorf("renew after twice the TTL: %d", got)
		}
		lock(t, send, "", 409)
		time.Sleep(9 * time.Second)
		lock(t, send, "", 409)
		time.Sleep(time.Second)
		lock(t, send, "", 200)
	})
}

func TestWhoWaitsIsWokenByAWriteAndByALockThatLapses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := vars.New(time.Now)
		send := direct(t.Context(), v)
		send("PUT", "/v1/var/a", item("k", "v"))
		woken := func(path string) <-chan time.Duration {
			out := make(chan time.Duration, 1)
			began := time.Now()
			go func() {
				send("GET", path, "")
				out <- time.Since(began)
			}()
			synctest.Wait()
			return out
		}
		at := fmt.Sprint(v.Index())
		waits := woken("/v1/var/a?index=" + at)
		send("PUT", "/v1/var/other", item("k", "v"))
		synctest.Wait()
		select {
		case <-waits:
			t.Error("woken by another variable")
		default:
		}
		time.Sleep(time.Second)
		send("PUT", "/v1/var/a", item("k", "w"))
		if d := <-waits; d != time.Second {
			t.Errorf("woken after %v", d)
		}
		lock(t, send, "", 200)
		if d := <-woken("/v1/vars?prefix=l&index=" + fmt.Sprint(v.Index())); d != 30*time.Second {
			t.Errorf("the lapse of the lock woke after %v", d)
		}
		if d := <-woken("/v1/vars?wait=16s&index=" + fmt.Sprint(v.Index())); d < 16*time.Second || d > 17*time.Second {
			t.Errorf("waited %v", d)
		}
	})
}

func TestTokensSeeWhatTheyMay(t *testing.T) {
	t.Parallel()
	v := vars.New(time.Now).Tie(vars.Hooks{
		Allows: func(token, _, path, capability string) bool {
			return token == "root" || token == "reader" && strings.HasPrefix(path, "open/") && capability != "write"
		},
		Management: func(token string) bool { return token == "root" },
	})
	send := func(token, method, path, body string) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("X-Nomad-Token", token)
		v.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, path := range []string{"open/a", "closed/a"} {
		if status, text := send("root", "PUT", "/v1/var/"+path+"?lock-acquire", item("k", "v")); status != 200 {
			t.Fatal(status, text)
		}
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"GET", "/v1/var/open/a", "", 200, `"k":"v"`},
		{"GET", "/v1/var/closed/a", "", 403, "Permission denied"},
		{"PUT", "/v1/var/open/a", item("k", "w"), 403, "Permission denied"},
		{"GET", "/v1/vars", "", 200, `"open/a"`},
		{"DELETE", "/v1/var/closed/a", "", 403, "Permission denied"},
	} {
		status, text := send("reader", c.method, c.path, c.body)
		if status != c.status || !strings.Contains(text, c.text) || strings.Contains(text, "closed") || strings.Contains(text, "Lock") {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, text)
		}
	}
}

// TestOfManyWritersOfOneIndexOneWins is a property: however writes with check-and-set
// are mixed, each success names the index of the success before.
func TestOfManyWritersOfOneIndexOneWins(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		send := direct(t.Context(), vars.New(time.Now))
		var current uint64
		for i := range rapid.IntRange(1, 30).Draw(t, "writes") {
			cas := rapid.Uint64Range(0, current+2).Draw(t, "cas")
			status, text := send("PUT", fmt.Sprintf("/v1/var/a?cas=%d", cas), item("n", fmt.Sprint(i)))
			var v api.Variable
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				t.Fatal(err)
			}
			if ok := cas == current; ok != (status == 200) {
				t.Fatalf("cas %d of %d: %d", cas, current, status)
			}
			if status == 200 {
				current = v.ModifyIndex
			} else if v.ModifyIndex != current {
				t.Fatalf("the conflict shows %d, want %d", v.ModifyIndex, current)
			}
		}
	})
}

func FuzzServe(f *testing.F) {
	for _, s := range steps() {
		f.Add(s.method, s.path, s.body)
	}
	f.Fuzz(func(t *testing.T, method, path, body string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://x"+path, strings.NewReader(body))
		if err != nil || r.URL.Query().Get("index") != "" {
			return
		}
		w := httptest.NewRecorder()
		vars.New(time.Now).ServeHTTP(w, r)
		if _, err := io.ReadAll(w.Result().Body); err != nil || w.Code < 200 || w.Code > 500 {
			t.Fatalf("%d, %v", w.Code, err)
		}
	})
}
