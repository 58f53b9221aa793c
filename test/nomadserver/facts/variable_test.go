package facts_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
)

func TestVariables(t *testing.T) {
	hold(t, nomadagent.Options{}, []fact{
		{"a variable is created once, and a second time is a conflict that shows what is there", plays(created()), both},
		{"an update with a stale index is a conflict", plays(updated()), both},
		{"what is over 64 KiB is refused", plays(large()), both},
		{"what cannot be a variable is refused", plays(wrong()), both},
		{"variables are listed by prefix, and the list waits for a change", listVariables, both},
		{"a lock has one holder, keeps plain writers out and is given back", plays(locked()), both},
		{"the library of Nomad understands a lock that is held", libraryLock, both},
		{"lock operations and check-and-set exclude each other, and lists come in pages", plays(excluded()), realAgent},
	})
}

// step is a request and what is answered. In what is sent and expected NAME stands for a
// number or an id that an answer before had.
type step struct {
	method, path, body string
	status             int
	want               string            // the whole text, or
	fields             map[string]string // words of the JSON; "" = not there
	keep               map[string]string // field → NAME
}

func item(k, v string) string { return fmt.Sprintf(`{"Items":{%q:%q}}`, k, v) }

func created() []step {
	return []step{
		{"GET", "/v1/var/a/b", "", 404, "variable not found", nil, nil},
		{"PUT", "/v1/var/a/b?cas=0", item("k", "v"), 200, "", map[string]string{"Path": "a/b", "Namespace": "default", "Items.k": "v", "Lock": ""}, map[string]string{"ModifyIndex": "FIRST"}},
		{"PUT", "/v1/var/a/b?cas=0", item("k", "w"), 409, "", map[string]string{"Items.k": "v", "ModifyIndex": "FIRST"}, nil},
		{"PUT", "/v1/var/a/b?cas=FIRST", item("k", "w"), 200, "", map[string]string{"Items.k": "w", "CreateIndex": "FIRST"}, map[string]string{"ModifyIndex": "SECOND"}},
	}
}

func updated() []step {
	return []step{
		{"PUT", "/v1/var/c?cas=0", item("k", "v"), 200, "", nil, map[string]string{"ModifyIndex": "FIRST"}},
		{"PUT", "/v1/var/c?cas=FIRST", item("k", "w"), 200, "", map[string]string{"Items.k": "w", "CreateIndex": "FIRST"}, map[string]string{"ModifyIndex": "SECOND"}},
		{"PUT", "/v1/var/c?cas=FIRST", item("k", "x"), 409, "", map[string]string{"Items.k": "w", "ModifyIndex": "SECOND"}, nil},
		{"PUT", "/v1/var/none?cas=5", item("k", "x"), 409, "", map[string]string{"Path": "none", "Items": "", "ModifyIndex": "0"}, nil},
		{"DELETE", "/v1/var/c?cas=FIRST", "", 409, "", map[string]string{"Items.k": "w"}, nil},
		{"DELETE", "/v1/var/c?cas=SECOND", "", 204, "", nil, nil},
		{"DELETE", "/v1/var/c", "", 204, "", nil, nil},
		{"DELETE", "/v1/var/c?cas=7", "", 409, "", map[string]string{"Path": "c", "ModifyIndex": "0"}, nil},
	}
}

func large() []step {
	return []step{
		{"PUT", "/v1/var/big", item("k", strings.Repeat("x", 65536)), 400, "RPC Error:: 400,variables are limited to 64KiB in total size", nil, nil},
		{"PUT", "/v1/var/big", item("k", strings.Repeat("x", 65535)), 200, "", map[string]string{"Path": "big"}, nil},
	}
}

func wrong() []step {
	return []step{
		{"PUT", "/v1/var/a/b?cas=x", item("k", "x"), 400, `can not parse cas: strconv.ParseUint: parsing "x": invalid syntax`, nil, nil},
		{"PUT", "/v1/var/a/b", `{}`, 400, "variable missing required Items object", nil, nil},
		{"PUT", "/v1/var/a.b", item("k", "v"), 400, `RPC Error:: 400,invalid path "a.b"`, nil, nil},
		{"PUT", "/v1/var/l", `{"Items":{"k":"v"},"Lock":{"TTL":"15s"}}`, 400, "RPC Error:: 400,RPC Error:: 400,variable should not contain lock definition", nil, nil},
	}
}

func locked() []step {
	return []step{
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
		{"PUT", "/v1/var/lock?lock-renew", `{"Lock":{"ID":"HOLDER"}}`, 409, "variable doesn't hold a lock", nil, nil},
		{"GET", "/v1/var/lock", "", 200, "", map[string]string{"Items.who": "still one", "Lock": ""}, nil},
		{"PUT", "/v1/var/lock?lock-acquire", `{}`, 200, "", map[string]string{"Lock.TTL": "15s", "Lock.LockDelay": "15s", "Items": ""}, nil},
		{"PUT", "/v1/var/gone?lock-release", `{"Lock":{"ID":"HOLDER"}}`, 500, "variable doesn't exist", nil, nil},
		{"PUT", "/v1/var/gone?lock-renew", `{"Lock":{"ID":"HOLDER"}}`, 404, "variable doesn't exist", nil, nil},
		{"PUT", "/v1/var/short?lock-acquire", `{"Lock":{"TTL":"1s"}}`, 400, "RPC Error:: 400,1 error occurred:\n\t* TTL must be between 10 seconds and 24 hours\n\n", nil, nil},
	}
}

func excluded() []step {
	return []step{
		{"PUT", "/v1/var/x?lock-acquire&lock-renew", `{}`, 400, "multiple lock operations", nil, nil},
		{"PUT", "/v1/var/x?lock-acquire&cas=1", `{}`, 400, "CAS can't be used with lock operations", nil, nil},
		{"PUT", "/v1/var/paged/a", item("k", "v"), 200, "", nil, nil},
		{"PUT", "/v1/var/paged/b", item("k", "v"), 200, "", nil, nil},
		{"GET", "/v1/vars?prefix=paged&per_page=1", "", 200, "", map[string]string{"0.Path": "paged/a", "1": ""}, nil},
		{"GET", "/v1/vars?prefix=paged&per_page=1&next_token=default.paged/b", "", 200, "", map[string]string{"0.Path": "paged/b", "1": ""}, nil},
		{"POST", "/v1/vars", "", 405, "Invalid method", nil, nil},
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

// plays proves that each request is answered so.
func plays(steps []step) func(*testing.T, cluster) {
	return func(t *testing.T, c cluster) { play(t, c, steps) }
}

func play(t *testing.T, c cluster, steps []step) {
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
	for _, s := range steps {
		title := s.method + " " + s.path + " " + s.body[:min(60, len(s.body))]
		status, text := c.do(t, s.method, fill(s.path), fill(s.body))
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

func listVariables(t *testing.T, c cluster) {
	path := "tuner/" + c.id
	for _, p := range []string{path + "/a", path + "/b", "other/" + c.id} {
		if _, _, err := c.Variables().Create(&api.Variable{Path: p, Items: api.VariableItems{"a": "1"}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	list, meta, err := c.Variables().PrefixList(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Path != path+"/a" {
		t.Errorf("the list is %v", list)
	}
	done := wait(func() ([]*api.VariableMetadata, *api.QueryMeta, error) {
		list, m, err := c.Variables().PrefixList(path, &api.QueryOptions{WaitIndex: meta.LastIndex, WaitTime: patience})
		if err == nil && (len(list) != 3 || m.LastIndex <= meta.LastIndex) {
			err = errors.New("it came back without the change")
		}
		return list, m, err
	})
	if _, _, err := c.Variables().Create(&api.Variable{Path: path + "/c", Items: api.VariableItems{"a": "1"}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func libraryLock(t *testing.T, c cluster) {
	path := "tuner/" + c.id
	locks := func() *api.Locks {
		l, err := c.Locks(api.WriteOptions{}, api.Variable{Path: path, Lock: &api.VariableLock{TTL: "10s", LockDelay: "10s"}},
			api.LocksOptionWithMaxRetries(0))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first, second := locks(), locks()
	id, err := first.Acquire(t.Context())
	if err != nil || id == "" {
		t.Fatalf("%q, %v", id, err)
	}
	if _, err := second.Acquire(t.Context()); !errors.Is(err, api.ErrLockConflict) {
		t.Errorf("the second acquired: %v", err)
	}
	if _, _, err := c.Variables().Update(&api.Variable{Path: path, Items: api.VariableItems{"a": "1"}}, nil); err == nil {
		t.Error("a plain write was taken")
	}
	if err := first.Renew(t.Context()); err != nil {
		t.Errorf("renewing: %v", err)
	}
	if err := first.Release(t.Context()); err != nil {
		t.Errorf("releasing: %v", err)
	}
	if _, err := second.Acquire(t.Context()); err != nil {
		t.Errorf("after the release: %v", err)
	}
	_ = second.Release(t.Context())
}
