package nomadserver

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/nomad/api"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask sends a request to a cluster that does not listen, and returns the status and the
// variable or the text that is answered.
type ask func(method, path, body string) (int, api.Variable)

func quiet(t *testing.T) (s *Server, send ask) {
	t.Helper()
	s, err := newServer(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := s.handler()
	return s, func(method, path, body string) (int, api.Variable) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
		var v api.Variable
		_ = json.Unmarshal(w.Body.Bytes(), &v) // a text leaves it empty
		return w.Code, v
	}
}

func closed(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

const lockFor10 = `{"Lock":{"TTL":"10s","LockDelay":"10s"}}`

func TestALockThatIsNotRenewedIsFreeAfterTwiceItsTimeAndItsDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, send := quiet(t)
		defer closed(t, s)
		lock := func(want int) string {
			t.Helper()
			status, v := send("PUT", "/v1/var/l?lock-acquire", lockFor10)
			if status != want {
				t.Errorf("acquire: %d, want %d", status, want)
			}
			if v.Lock == nil {
				return ""
			}
			return v.Lock.ID
		}
		id := lock(200)
		for _, renewal := range []struct {
			after time.Duration
			want  int
		}{{19 * time.Second, 200}, {20 * time.Second, 409}} {
			time.Sleep(renewal.after)
			if got, _ := send("PUT", "/v1/var/l?lock-renew", `{"Lock":{"ID":"`+id+`"}}`); got != renewal.want {
				t.Errorf("renewed after %v: %d, want %d", renewal.after, got, renewal.want)
			}
		}
		lock(409)
		time.Sleep(9 * time.Second)
		lock(409)
		time.Sleep(time.Second)
		lock(200)
	})
}

func TestAQueryIsWokenByAWriteAndByALockThatLapses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, send := quiet(t)
		defer closed(t, s)
		send("PUT", "/v1/var/a", `{"Items":{"k":"v"}}`)
		_, a := send("GET", "/v1/var/a", "")
		wakes := func(path string, index uint64, write func()) time.Duration {
			out := make(chan time.Duration)
			began := time.Now()
			go func() {
				send("GET", path+fmt.Sprintf("&index=%d", index), "")
				out <- time.Since(began)
			}()
			synctest.Wait()
			write()
			return <-out
		}
		if d := wakes("/v1/var/a?wait=1m", a.ModifyIndex, func() {
			send("PUT", "/v1/var/other", `{"Items":{"k":"v"}}`)
			time.Sleep(time.Second)
			send("PUT", "/v1/var/a", `{"Items":{"k":"w"}}`)
		}); d != time.Second {
			t.Errorf("woken after %v", d)
		}
		_, l := send("PUT", "/v1/var/l?lock-acquire", lockFor10)
		if d := wakes("/v1/vars?prefix=l", l.ModifyIndex, func() {}); d != 30*time.Second {
			t.Errorf("the lapse of the lock woke after %v", d)
		}
		if d := wakes("/v1/vars?wait=16s", l.ModifyIndex+1, func() {}); d < 16*time.Second || d > 17*time.Second {
			t.Errorf("waited %v", d)
		}
	})
}

// However writes with check-and-set are mixed, each success names the index of the success
// before.
func TestOfManyWritersOfOneIndexOneWins(t *testing.T) {
	t.Parallel()
	s, send := quiet(t)
	defer closed(t, s)
	rapid.Check(t, func(r *rapid.T) {
		path := "/v1/var/" + uuid()
		var current uint64
		for i := range rapid.IntRange(1, 20).Draw(r, "writes") {
			cas := current + rapid.Uint64Range(0, 2).Draw(r, "ahead")
			status, v := send("PUT", fmt.Sprintf("%s?cas=%d", path, cas), fmt.Sprintf(`{"Items":{"n":"%d"}}`, i))
			switch {
			case (cas == current) != (status == 200):
				r.Fatalf("cas %d of %d: %d", cas, current, status)
			case status == 200:
				current = v.ModifyIndex
			case v.ModifyIndex != current:
				r.Fatalf("the conflict shows %d, want %d", v.ModifyIndex, current)
			}
		}
	})
}

func FuzzPolicy(f *testing.F) {
	f.Add(`namespace "default" { variables { path "/x" { capabilities = ["read"] } } }`)
	f.Add("namespace \"default\" {\n  capabilities = [\"read-job\"]\n}\nnode {\n  policy = \"read\"\n}")
	f.Fuzz(func(t *testing.T, rules string) {
		if p, err := parsePolicy(rules); err == nil && p.allows("default", "node:write") {
			t.Errorf("%q allows what no policy can", rules)
		}
	})
}
