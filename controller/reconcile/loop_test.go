package reconcile_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/controller/watch"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// guarded lets several workers share records.
type guarded struct {
	mu sync.Mutex
	m  *memory
}

func (g *guarded) Load(ctx context.Context, id driver.JobID) (*reconcile.Record, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.m.Load(ctx, id)
}

func (g *guarded) Save(ctx context.Context, r *reconcile.Record) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.m.Save(ctx, r)
}

func (g *guarded) All(ctx context.Context) ([]*reconcile.Record, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.m.All(ctx)
}

// The well job ends as if the other were not there, the one at which every look
// panics is looked at ever more rarely, and Run ends with its context.
func TestOneBadJobNeverStopsTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cluster, err := sim.New(sim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		records := &guarded{m: newMemory()}
		queue := watch.NewQueue()
		looks := map[string]int{}
		var mu sync.Mutex
		scripted := reconcile.DefaultStages()
		scripted.Choose = func(tuning.State) tuning.Decision {
			return tuning.Decision{Action: tuning.Hold, Reason: tuning.ReasonNoSamples}
		}
		loop := reconcile.New(reconcile.Config{
			Scheduler: cluster, Records: records, Queue: queue, Log: slog.New(slog.DiscardHandler),
			Stages: scripted,
			Services: reconcile.Services{
				Read: func(_ context.Context, job driver.Job) reconcile.Reading {
					return reconcile.Reading{Policy: policy(), Own: own(job)}
				},
				Site: func(driver.Job) tuning.Site { return tuning.Site{} },
				Measure: func(context.Context, reconcile.MeasureRequest) (reconcile.Measurement, error) {
					return reconcile.Measurement{Reason: tuning.ReasonNoSamples}, nil
				},
				Recall: func(context.Context, reconcile.Question) (reconcile.Recollection, error) {
					return reconcile.Recollection{}, nil
				},
				Gate: func(job driver.Job) tuning.Reason {
					mu.Lock()
					looks[job.Name]++
					mu.Unlock()
					if job.Name == "panics" {
						panic("at every look")
					}
					return tuning.ReasonNone
				},
				Learn: func(context.Context, knowledge.Observation, string) error { return nil },
			},
		})
		w := &world{ctx: ctx, cluster: cluster}
		well := w.mustSubmit(t, "well", "epochs=10 seconds=2")
		queue.Add(w.mustSubmit(t, "panics", "epochs=1000 seconds=2"))
		queue.Add(well)
		var running sync.WaitGroup
		var ended error
		running.Go(func() { ended = loop.Run(ctx) })
		time.Sleep(5 * time.Minute)
		r, err := records.Load(ctx, well)
		if err != nil || r.Phase != reconcile.Ended {
			t.Errorf("the well job is %+v, error %v; want ended", r, err)
		}
		mu.Lock()
		if n := looks["panics"]; n < 5 || n > 20 {
			t.Errorf("the bad job was looked at %d times in 5 minutes, want ever more rarely up to once a minute", n)
		}
		mu.Unlock()
		cancel()
		running.Wait()
		queue.Close()
		if ended == nil {
			t.Error("Run ended without the error of its context")
		}
	})
}

type asked struct {
	idle

	ids []driver.JobID
}

func (q *asked) AddAfter(id driver.JobID, _ time.Duration) { q.ids = append(q.ids, id) }

// A scheduler may forget a job before the controller is there again, and then names it no more.
func TestAStartLooksAtEachOpenRecord(t *testing.T) {
	t.Parallel()
	records, queue := newMemory(), &asked{}
	for id, phase := range map[driver.JobID]reconcile.Phase{"1": reconcile.Settled, "2": reconcile.Ended} {
		if err := records.Save(t.Context(), &reconcile.Record{Identity: reconcile.Identity{Job: id}, Phase: phase}); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = reconcile.New(reconcile.Config{Records: records, Queue: queue, Log: slog.New(slog.DiscardHandler)}).Run(ended)
	if len(queue.ids) != 1 || queue.ids[0] != "1" {
		t.Errorf("it looks at %q, want 1", queue.ids)
	}
}

func TestAJobWhoseFileItsSchedulerForgotIsTheSame(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = func(tuning.State) tuning.Decision { return hold(tuning.ReasonTooShort) }
		s := w.answering(t, "train")
		w.until(t, s.id, func(r *reconcile.Record) bool { return len(r.Epochs) > 2 })
		s.changed = func(j *driver.Job) {
			j.Source, j.Fingerprint, j.State, j.Ended = nil, "", driver.Succeeded, time.Now()
		}
		if err := w.drive(s.id); err != nil {
			t.Fatal(err)
		}
		rec, err := w.records.Load(w.ctx, s.id)
		if err != nil || len(w.lessons) != 1 || slices.ContainsFunc(rec.History, func(e reconcile.Entry) bool { return e.Trigger == reconcile.OwnerChanged }) {
			t.Errorf("%d lessons, want one and no change of its owner's: %v, %+v", len(w.lessons), err, rec.History)
		}
	})
}
