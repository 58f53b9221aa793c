package nomad_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/nomad/view"
)

// A job that waits behind another one takes a lower priority, whatever happens to the controller.
func TestAJobThatWaitsTakesALowerPriority(t *testing.T) {
	t.Parallel()
	stories(t, map[string]func(*testing.T, *story){
		"it has its owner's again, or starts and ends with the lower one, once": func(t *testing.T, s *story) {
			large := s.plain(t, drivertest.Behaviour{Name: "large", Epochs: long, Epoch: epoch, MemoryBytes: (s.memory(t) - 256) << 20})
			eventually(t, "the large one runs", func() bool { return s.queued(t, large).State == driver.Running })
			s.advise(t, large, 10, driver.ErrConflict)
			id := s.plain(t, drivertest.Behaviour{Name: "waits", Epochs: long, Epoch: epoch, MemoryBytes: 512 << 20, TimeLimit: time.Hour})
			eventually(t, "it waits", func() bool { return s.queued(t, id).State == driver.Pending })
			want := func(nice, priority int, version uint64) {
				t.Helper()
				j, q := s.nomadJob(t, id), s.queued(t, id)
				if q.Nice != nice || *j.Priority != priority || *j.Version != version || q.Resources.TimeLimit != 0 {
					t.Errorf("nice %d, priority %d in version %d, time limit %v; want %d, %d, %d and none", q.Nice, *j.Priority, *j.Version, q.Resources.TimeLimit, nice, priority, version)
				}
			}
			if err := s.d.Advise(t.Context(), driver.Advice{Job: id, TimeLimit: time.Minute}); !errors.Is(err, driver.ErrUnsupported) {
				t.Errorf("a time limit: %v", err)
			}
			s.advise(t, id, -1, driver.ErrInvalid)
			s.advise(t, id, 0, nil)
			want(0, 50, 0)
			for range 2 {
				s.advise(t, id, 10, nil)
				want(10, 40, 1)
				s.reopen(t)
				want(10, 40, 1)
			}
			s.advise(t, id, 60, nil)
			want(49, 1, 2)
			for range 2 {
				s.advise(t, id, 0, nil)
				want(0, 50, 3)
			}
			for _, class := range []string{"fast", "fast", "faster", "", ""} {
				if err := s.d.Advise(t.Context(), driver.Advice{Job: id, Class: class}); err != nil {
					t.Fatal(err)
				}
				s.reopen(t)
				if got := s.queued(t, id).Prefers; got != class {
					t.Errorf("it prefers %q, want %q", got, class)
				}
			}
			want(0, 50, 6)
			if err := s.d.Advise(t.Context(), driver.Advice{Job: id, Class: "mine"}); err != nil {
				t.Fatal(err)
			}
			own := s.nomadJob(t, id)
			own.Affinities = nil
			own.TaskGroups[0].Affinities = []*api.Affinity{api.NewAffinity("${node.class}", "=", "mine", -50)}
			done(t)(s.clean.Jobs().Register(own, s.write()))
			if err := s.d.Advise(t.Context(), driver.Advice{Job: id, Class: "fast"}); !errors.Is(err, driver.ErrDenied) {
				t.Errorf("where its owner prefers nodes: %v", err)
			}
			if err := s.d.Advise(t.Context(), driver.Advice{Job: id}); err != nil || s.queued(t, id).Prefers != "mine" {
				t.Errorf("where its owner has come to prefer the same: %v", err)
			}
			s.advise(t, id, 20, nil)
			own = s.nomadJob(t, id)
			own.Priority = new(70)
			done(t)(s.clean.Jobs().Register(own, s.write()))
			want(0, 70, 10)
			s.advise(t, id, 0, nil)
			want(0, 70, 10)
			s.advise(t, id, 20, nil)
			if err := s.d.Stop(t.Context(), large); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it runs", func() bool { return s.queued(t, id).State == driver.Running })
			want(20, 50, 11)
			s.advise(t, id, 0, driver.ErrConflict)
			s.epochs(t, id, 5)
			s.hurry(t)
			eventually(t, "it ends", func() bool { return s.queued(t, id).State == driver.Succeeded })
			want(0, 50, 11)
			s.advise(t, id, 10, driver.ErrConflict)
			if list := s.allocs(t, id); len(list) != 1 {
				t.Errorf("%d allocations, want that it ran once", len(list))
			}
			past, err := s.d.Past(t.Context(), time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
			ran := 0
			for _, j := range past {
				if j.ID == id && j.State == driver.Succeeded && j.Class == "test" && j.Ended.Sub(j.Started) >= time.Second {
					ran++
				}
			}
			if err != nil || ran != 1 {
				t.Errorf("the past has %+v (%v), want the run of at least a second", past, err)
			}
		},
		"it begins and ends just before it is registered: what runs again is stopped at once": func(t *testing.T, s *story) {
			large := s.plain(t, drivertest.Behaviour{Name: "large", Epochs: long, Epoch: epoch, MemoryBytes: (s.memory(t) - 256) << 20})
			eventually(t, "the large one runs", func() bool { return s.queued(t, large).State == driver.Running })
			id := s.plain(t, drivertest.Behaviour{Name: "waits", Epochs: 5, Epoch: epoch, MemoryBytes: 512 << 20})
			eventually(t, "it waits", func() bool { return s.queued(t, id).State == driver.Pending })
			s.proxy.first(registers, func() {
				if err := s.d.Stop(t.Context(), large); err != nil {
					t.Error(err)
				}
				eventually(t, "it is done", func() bool {
					list := s.allocs(t, id)
					return len(list) > 0 && list[0].ClientStatus == api.AllocClientStatusComplete
				})
			})
			s.advise(t, id, 10, nil)
			eventually(t, "nothing of it runs", func() bool {
				return *s.nomadJob(t, id).Status == "dead" && !slices.ContainsFunc(s.allocs(t, id), func(a *api.AllocationListStub) bool { return !view.Over(a) })
			})
			if n := len(s.output(t, id)); n > 6 {
				t.Errorf("%d epochs, want its five and no second run", n)
			}
			s.advise(t, id, 10, nil)
		},
		"it has a stanza, and keeps what its owner wrote": func(t *testing.T, s *story) {
			id := s.register(t, drivertest.Behaviour{Epochs: 1, Epoch: epoch, MemoryBytes: s.memory(t) << 21}, func(file string) string {
				return strings.Replace(file, `"apply"`, `"observe"`, 1)
			})
			s.advise(t, id, 10, driver.ErrDenied)
		},
		"it is purged while it waits, and nothing of it stays on record": func(t *testing.T, s *story) {
			id := s.plain(t, drivertest.Behaviour{Epochs: 1, Epoch: epoch, MemoryBytes: s.memory(t) << 21})
			s.advise(t, id, 10, nil)
			s.queued(t, id)
			s.deregister(t)
			if _, err := s.d.Queue(t.Context()); err != nil {
				t.Fatal(err)
			}
			if names, err := s.cfg.Journal.List(t.Context()); err != nil || len(names) != 0 {
				t.Errorf("on record are %q (%v)", names, err)
			}
		},
		"a namespace that may not be listed and a job that Nomad does not answer for hide no other": func(t *testing.T, s *story) {
			s.cfg.Namespaces = append(s.cfg.Namespaces, "denied")
			s.reopen(t)
			s.proxy.set(func(p *proxy) {
				p.answer = func(r *http.Response) error {
					switch {
					case r.Request.URL.Query().Get("namespace") == "denied":
						r.StatusCode = http.StatusForbidden
					case r.Request.Method == http.MethodGet && r.Request.URL.Path == "/v1/job/bad":
						r.StatusCode = http.StatusInternalServerError
					}
					return nil
				}
			})
			s.plain(t, drivertest.Behaviour{Name: "bad", Epochs: long, Epoch: epoch})
			s.queued(t, s.plain(t, drivertest.Behaviour{Epochs: long, Epoch: epoch}))
		},
		"it begins just before it is registered, and is replaced: what was not done runs on": func(t *testing.T, s *story) {
			large := s.plain(t, drivertest.Behaviour{Name: "large", Epochs: long, Epoch: epoch, MemoryBytes: (s.memory(t) - 256) << 20})
			eventually(t, "the large one runs", func() bool { return s.queued(t, large).State == driver.Running })
			id := s.plain(t, drivertest.Behaviour{Name: "waits", Epochs: long, Epoch: epoch, MemoryBytes: 512 << 20})
			eventually(t, "it waits", func() bool { return s.queued(t, id).State == driver.Pending })
			s.proxy.first(registers, func() {
				if err := s.d.Stop(t.Context(), large); err != nil {
					t.Error(err)
				}
				s.epochs(t, id, 1)
			})
			var lost atomic.Bool
			s.proxy.set(func(p *proxy) {
				p.cut = func(r *http.Request) (bool, bool) { return false, registers(r) && lost.CompareAndSwap(false, true) }
			})
			advice := driver.Advice{Job: id, Class: "fast"}
			if err := s.d.Advise(t.Context(), advice); !errors.Is(err, driver.ErrUnknown) {
				t.Fatalf("Advise whose answer is lost: %v", err)
			}
			// Nomad before 2.0 replaces an allocation for an affinity.
			edit(s.proxy, func(path string) bool { return strings.HasSuffix(path, "/allocations") }, func(list *[]*api.AllocationListStub) {
				was := *(*list)[0]
				was.ID, was.JobVersion, was.ClientStatus, was.DesiredStatus = "replaced", 0, api.AllocClientStatusComplete, api.AllocDesiredStatusStop
				was.TaskStates = map[string]*api.TaskState{"main": {State: "dead", Events: []*api.TaskEvent{
					{Type: api.TaskStarted, Time: 1}, {Type: api.TaskKilling, Time: 2}, {Type: api.TaskTerminated, Time: 3, Details: map[string]string{"exit_code": "0"}},
				}}}
				*list = append(*list, &was)
			})
			if err := s.d.Advise(t.Context(), advice); err != nil || *s.nomadJob(t, id).Stop {
				t.Errorf("Advise once more: %v; it was stopped: %v", err, *s.nomadJob(t, id).Stop)
			}
		},
	})
}

// plain registers a job without a stanza.
func (s *story) plain(t *testing.T, be drivertest.Behaviour) driver.JobID {
	t.Helper()
	return s.submit(t, s.file(t, be))
}

func (s *story) advise(t *testing.T, id driver.JobID, nice int, want error) {
	t.Helper()
	if err := s.d.Advise(t.Context(), driver.Advice{Job: id, Nice: nice}); !errors.Is(err, want) {
		t.Fatalf("Advise(%s, nice %d): %v, want %v", id, nice, err, want)
	}
}

func (s *story) queued(t *testing.T, id driver.JobID) driver.Job {
	t.Helper()
	jobs, err := s.d.Queue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		if j.ID == id {
			return j
		}
	}
	t.Fatalf("the queue does not have %s", id)
	return driver.Job{}
}
