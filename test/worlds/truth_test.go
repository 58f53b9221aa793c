package worlds

import (
	"math"
	"strconv"
	"testing"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	exporter "pitchpipe/exporter/api"
	"pitchpipe/test/sim"
)

// cost is what a whole job took, all attempts and what lay between them included.
type cost struct {
	Seconds, Joules, CoreSeconds float64
	quality                      float64         // at its end
	marks                        []time.Duration // ends of the epochs, since the job began
}

// of is what an objective minimises.
func (c cost) of(o tuning.Objective) float64 {
	switch o { //nolint:exhaustive // no world has another
	case tuning.Energy:
		return c.Joules
	case tuning.Time:
		return c.Seconds
	}
	return c.CoreSeconds // of a site without prices
}

// truth is what is true of a run, whatever a controller does.
type truth struct {
	own    cost
	whole  map[setting]cost // where it runs under the setting from its start
	start  setting          // the best of those
	best   setting          // where the net oracle moves it; own = it stays
	oracle cost             // of that
}

// cluster is the world's machine with no job on it.
func (w world) cluster(t *testing.T, interval time.Duration) *sim.Cluster {
	t.Helper()
	c, err := sim.New(sim.Config{
		EnergySource: "rapl", Interval: interval,
		Nodes: []sim.NodeSpec{{Name: "node-1", Cores: w.cores, MemoryBytes: 64 << 30}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// find plays the run under every setting that its owner and the site allow.
func (w world) find(t *testing.T, j job) truth {
	t.Helper()
	out := truth{own: w.alone(t, j, j.own, 0), start: j.own, best: j.own, whole: map[setting]cost{}}
	out.oracle, out.whole[j.own] = out.own, out.own
	for _, s := range j.allowed {
		c := w.alone(t, j, s, 0)
		out.whole[s] = c
		if !out.permits(j, s) {
			continue
		}
		if c.of(j.objective) < out.whole[out.start].of(j.objective) {
			out.start = s
		}
		if s.batch != j.own.batch || !j.moves {
			continue
		}
		if c := w.alone(t, j, s, out.own.marks[profiled-1]); c.of(j.objective) < out.oracle.of(j.objective) {
			out.oracle, out.best = c, s
		}
	}
	return out
}

// profiled is the epoch after which the oracle moves: one to warm up and two that are measured.
const profiled = tuning.DefaultWarmupEpochs + tuning.DefaultEpochs

// permits reports whether the setting keeps the owner's limits.
func (x truth) permits(j job, s setting) bool {
	c := x.whole[s]
	return (j.slowdown == 0 || c.Seconds <= j.slowdown*x.own.Seconds*1.0001) && c.quality >= j.keeps*x.own.quality
}

// alone plays the run without a controller: under the setting from its start, or moved to
// it at the end of the epoch that ends so long after its start.
func (w world) alone(t *testing.T, j job, s setting, after time.Duration) cost {
	t.Helper()
	c := w.cluster(t, 30*24*time.Hour)
	defer c.Close()
	spec := driver.Spec{Owner: "alice", Filename: "job.sbatch", Source: []byte(j.source), Progress: driver.Progress{Pattern: progress}}
	if after == 0 {
		spec.NotBefore = time.Now().Add(time.Second)
	}
	seen, err := c.Start(t.Context(), "run", spec)
	if err != nil {
		t.Fatalf("world %d: %v\n%s", w.seed, err, j.source)
	}
	in := driver.Intent{ID: "oracle", Job: seen.ID, Fingerprint: seen.Fingerprint, Change: j.change(s)}
	advance := func(n int) {
		for range n {
			if _, err := c.Advance(t.Context(), in); err != nil {
				t.Fatalf("world %d: %v", w.seed, err)
			}
		}
	}
	if after == 0 {
		advance(2) // change, start
	} else {
		in.Attempt, in.Checkpoint = 1, &driver.Checkpoint{Signal: "SIGUSR1", Grace: time.Hour, Exit: 85}
		time.Sleep(after - time.Microsecond)
		advance(1) // signal
		time.Sleep(j.saves + time.Microsecond)
		advance(3) // stopped, change, start
	}
	for {
		if got, _ := c.Get(t.Context(), seen.ID); got.State.Ended() {
			return w.measure(t, c, got)
		}
		time.Sleep(10 * time.Minute)
	}
}

// change is what takes a job from its own settings to others.
func (j job) change(s setting) driver.Change {
	if s == j.own {
		return driver.Change{}
	}
	c := driver.Change{Cores: s.cores, Env: map[string]string{}}
	if j.threads {
		c.Env["OMP_NUM_THREADS"] = strconv.Itoa(s.cores)
	}
	if s.batch != j.own.batch {
		c.Env["BATCH_SIZE"] = strconv.Itoa(s.batch)
	}
	return c
}

// under is the setting that a change brings about.
func (j job) under(c driver.Change) setting {
	s := j.own
	if c.Cores > 0 {
		s.cores = c.Cores
	}
	if b, err := strconv.Atoi(c.Env["BATCH_SIZE"]); err == nil {
		s.batch = b
	}
	return s
}

// measure is what a job cost that ended, as the cluster knows it.
func (w world) measure(t *testing.T, c *sim.Cluster, got driver.Job) cost {
	t.Helper()
	if got.State != driver.Succeeded {
		t.Errorf("world %d: job %s ended as %s: %s", w.seed, got.ID, got.State, got.Detail)
	}
	out := cost{Seconds: got.Ended.Sub(got.Started).Seconds(), quality: math.NaN()}
	for _, a := range got.Attempts {
		m, err := c.Window(t.Context(), string(got.ID), a.Number, 0)
		if err != nil {
			t.Fatal(err)
		}
		cores := got.Resources.Cores
		if a.Change.Cores > 0 {
			cores = a.Change.Cores
		}
		out.CoreSeconds += float64(cores) * a.Ended.Sub(a.Started).Seconds()
		out.Joules += m.Samples[len(m.Samples)-1].Values[exporter.ColJoules]
		for _, s := range m.Samples {
			if s.Mark != nil {
				out.marks = append(out.marks, s.Time.Sub(got.Started))
				out.quality = *s.Mark.Quality
			}
		}
	}
	return out
}

const progress = `^epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)`
