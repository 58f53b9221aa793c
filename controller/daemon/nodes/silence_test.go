package nodes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"pitchpipe/exporter/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errGone = fmt.Errorf("%w: no socket", api.ErrUnavailable)

func TestASilentExporterIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heard said
		f := &fake{}
		e := cluster(logging(&heard), map[string]*fake{"n1": f})
		defer e.Close()
		for _, c := range []struct {
			name  string
			err   error
			want  error
			lines int
			says  string
		}{
			{"it answers", nil, nil, 0, ""},
			{"it falls silent", errGone, api.ErrUnavailable, 1, "level=WARN"},
			{"it stays silent", errGone, api.ErrUnavailable, 1, "no socket"},
			{"the node is named", errGone, api.ErrUnavailable, 1, "node=n1"},
			{"it is back and does not know the job", api.ErrNotFound, api.ErrNotFound, 2, "answers again"},
			{"it is asked too often", api.ErrBusy, api.ErrBusy, 2, "answers again"},
			{"it falls silent again", errGone, api.ErrUnavailable, 3, "level=WARN"},
			{"it is back and refuses", api.ErrDenied, api.ErrDenied, 4, "refuses the controller"},
			{"it goes on refusing", api.ErrDenied, api.ErrDenied, 4, "refuses the controller"},
			{"it lets the controller in", nil, nil, 5, "answers again"},
		} {
			f.set(c.err, false)
			// The first call after the wait makes a try; the one after that gets
			// through.
			for range 2 {
				_, _ = e.Window(t.Context(), "n1", "j", 1, 0)
				time.Sleep(2 * lastWait)
				synctest.Wait()
			}
			_, err := e.Window(t.Context(), "n1", "j", 1, 0)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: error %v, want %v", c.name, err, c.want)
			}
			state := map[error]string{api.ErrUnavailable: "silent", api.ErrDenied: "refusing", api.ErrNotFound: "answering", api.ErrBusy: "answering", nil: "answering"}[c.want]
			if n := e.Count()[state]; n != 1 {
				t.Errorf("%s: %v, want one that is %s", c.name, e.Count(), state)
			}
			if n, text := heard.lines(); n != c.lines || !strings.Contains(text, c.says) {
				t.Errorf("%s: %d lines, want %d with %q:\n%s", c.name, n, c.lines, c.says, text)
			}
		}
	})
}

func TestACallThatWasGivenUpSaysNothingOfTheExporter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heard said
		f := &fake{hangs: true}
		e := cluster(logging(&heard), map[string]*fake{"n1": f})
		defer e.Close()
		ctx, cancel := context.WithTimeout(t.Context(), patience/2)
		defer cancel()
		if _, err := e.Window(ctx, "n1", "j", 1, 0); !errors.Is(err, api.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		f.set(nil, false)
		if _, err := e.Window(t.Context(), "n1", "j", 1, 0); err != nil {
			t.Errorf("the next call: %v", err)
		}
		if n, text := heard.lines(); n > 0 {
			t.Errorf("the operator heard\n%s", text)
		}
	})
}

func TestADeadExporterNeitherDelaysNorSilencesTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dead, alive := &fake{hangs: true}, &fake{}
		e := cluster(nil, map[string]*fake{"dead": dead, "alive": alive})
		defer e.Close()
		began := time.Now()
		_, err := e.Window(t.Context(), "dead", "j", 1, 0)
		if took := time.Since(began); took != patience || !errors.Is(err, api.ErrUnavailable) {
			t.Fatalf("the first call took %v and gave %v; want %v and %v", took, err, patience, api.ErrUnavailable)
		}
		began = time.Now()
		const rounds = 600
		for range rounds { // for a minute
			if _, err := e.Window(t.Context(), "dead", "j", 1, 0); !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "node dead does not answer") {
				t.Fatalf("got %v", err)
			}
			if _, err := e.Window(t.Context(), "alive", "j", 1, 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took != rounds*100*time.Millisecond {
			t.Errorf("the dead exporter held up its callers by %v", took-rounds*100*time.Millisecond)
		}
		// 1, 2, 4, 8, 10, 10, … seconds, each with a try of 2 seconds after it.
		if n := dead.asked() - 1; n < 4 || n > 8 {
			t.Errorf("the dead exporter was tried %d times within a minute, want about 6", n)
		}
		if n := alive.asked(); n != rounds {
			t.Errorf("the other answered %d calls, want %d", n, rounds)
		}
		dead.set(nil, false)
		time.Sleep(2 * lastWait)
		_, _ = e.Window(t.Context(), "dead", "j", 1, 0)
		synctest.Wait()
		if _, err := e.Window(t.Context(), "dead", "j", 1, 0); err != nil {
			t.Errorf("once it is back: %v", err)
		}
	})
}

func TestARackWithoutPowerIsTriedAFewNodesAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rack := map[string]*fake{}
		for i := range 10 * maxTries {
			rack[fmt.Sprintf("n%d", i)] = &fake{err: errGone}
		}
		e := cluster(nil, rack)
		defer e.Close()
		ask := func() {
			for node := range rack {
				_, _ = e.Window(t.Context(), node, "j", 1, 0)
			}
		}
		ask() // all are found silent, at once
		for _, f := range rack {
			f.set(nil, true) // and hang from now on
		}
		time.Sleep(firstWait)
		began := time.Now()
		ask()
		if took := time.Since(began); took != 0 {
			t.Errorf("their callers waited %v", took)
		}
		synctest.Wait()
		tried := 0
		for _, f := range rack {
			tried += f.asked() - 1
		}
		if tried != maxTries {
			t.Errorf("%d were tried at once, want %d", tried, maxTries)
		}
	})
}

// Workers that wait for one exporter do not look at the jobs of the others.
func TestAnExporterThatNeverAnsweredHoldsUpOneWorkerAtATime(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*fake{"it hangs": {hangs: true}, "it describes itself and gives no samples": {mute: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var heard said
				e := cluster(logging(&heard), map[string]*fake{"n1": f})
				defer e.Close()
				const workers, minutes = 4, 10
				var held time.Duration
				var mu sync.Mutex
				var group sync.WaitGroup
				end := time.Now().Add(minutes * time.Minute)
				for range workers {
					group.Go(func() {
						for time.Now().Before(end) {
							began := time.Now()
							if _, err := e.Window(t.Context(), "n1", "j", 1, 0); !errors.Is(err, api.ErrUnavailable) {
								t.Errorf("got %v", err)
							}
							mu.Lock()
							held += time.Since(began)
							mu.Unlock()
							time.Sleep(100 * time.Millisecond)
						}
					})
				}
				group.Wait()
				if share := held.Seconds() / (minutes * 60); share > 0.2 {
					t.Errorf("of %d workers %.2f were held up, want less than a fifth of one", workers, share)
				}
				if n, text := heard.lines(); n != 1 {
					t.Errorf("the operator heard %d times:\n%s", n, text)
				}
			})
		})
	}
}

func TestClosingEndsTheTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{hangs: true}
		e := cluster(nil, map[string]*fake{"n1": f})
		_, _ = e.Window(t.Context(), "n1", "j", 1, 0)
		time.Sleep(firstWait)
		_, _ = e.Window(t.Context(), "n1", "j", 1, 0)
		began := time.Now()
		e.Close()
		if took := time.Since(began); took != 0 || !f.closed {
			t.Errorf("closing took %v, closed %v", took, f.closed)
		}
		if _, err := e.Window(t.Context(), "n1", "j", 1, 0); !errors.Is(err, api.ErrUnavailable) {
			t.Errorf("after that: %v, want %v", err, api.ErrUnavailable)
		}
	})
}
