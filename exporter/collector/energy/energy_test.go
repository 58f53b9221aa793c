package energy_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/hostfs"
)

// tree is a powercap tree whose counters wrap as the hardware's do.
type tree struct {
	t     testing.TB
	dir   string
	zones map[string]*counter
}

type counter struct{ value, wrap uint64 }

func newTree(t testing.TB, zones map[string]string, wrap uint64) *tree {
	t.Helper()
	s := &tree{t: t, dir: t.TempDir(), zones: map[string]*counter{}}
	for id, name := range zones {
		s.write(id, "name", name+"\n")
		if wrap > 0 {
			s.write(id, "max_energy_range_uj", strconv.FormatUint(wrap, 10)+"\n")
		}
		s.zones[id] = &counter{wrap: wrap}
		s.add(id, 0)
	}
	return s
}

func (s *tree) write(id, file, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "class/powercap", id, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *tree) add(id string, joules float64) {
	s.t.Helper()
	c := s.zones[id]
	c.value += uint64(math.Round(joules * 1e6))
	if c.wrap > 0 && c.value > c.wrap {
		c.value -= c.wrap
	}
	s.write(id, "energy_uj", strconv.FormatUint(c.value, 10)+"\n")
}

func (s *tree) root() hostfs.Root { return hostfs.Root{SysFS: s.dir} }

func TestPowercapAccumulatesAcrossWrapsAndTheBookCloses(t *testing.T) {
	t.Parallel()
	// An AMD package wraps each 65 533 J; here after some 160 readings.
	const wrap = 65_533_000_000
	s := newTree(t, map[string]string{
		"intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl:0:1": "dram", "intel-rapl:1": "package-1",
		"intel-rapl:2": "psys", "intel-rapl-mmio:0": "package-0",
	}, wrap)
	p, err := energy.NewPowercap(s.root(), energy.DefaultModel(64))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var truth, jobs float64
	var book energy.Book
	act := energy.Activity{Elapsed: time.Second, Busy: 40, Cores: 64}
	if _, ok, err := p.Step(t.Context(), act); ok || err != nil {
		t.Fatalf("the first step: ok %v, err %v; want no interval yet", ok, err)
	}
	for range 1000 {
		for id, watts := range map[string]float64{"intel-rapl:0": 400, "intel-rapl:1": 380, "intel-rapl:0:1": 40} {
			joules := watts * (0.95 + 0.1*rng.Float64())
			joules = math.Round(joules*1e6) / 1e6
			s.add(id, joules)
			truth += joules
		}
		for _, id := range []string{"intel-rapl:0:0", "intel-rapl:2", "intel-rapl-mmio:0"} {
			s.add(id, 333) // must not be counted
		}
		split, ok, err := p.Step(t.Context(), act)
		if err != nil || !ok {
			t.Fatalf("step: ok %v, err %v", ok, err)
		}
		for _, j := range book.Add(split, act, []energy.Use{{CPUSeconds: 20, Cores: 32}, {CPUSeconds: 15, Cores: 16}}) {
			jobs += j.Total()
		}
	}
	zones := map[string]energy.Zone{}
	for _, z := range p.Zones() {
		zones[z.ID] = z
	}
	if z := zones["intel-rapl:2"]; len(zones) != 6 || z.Name != "psys" || z.Counted || math.Abs(z.Joules-333_000) > 1e-3 {
		t.Errorf("zones %+v, want psys shown with 333 kJ", zones)
	}
	if sum := zones["intel-rapl:0"].Joules + zones["intel-rapl:1"].Joules + zones["intel-rapl:0:1"].Joules; math.Abs(sum-truth) > 1e-6*truth {
		t.Errorf("the zones that count sum to %v J, truth %v J", sum, truth)
	}
	if got := book.Node.Total(); math.Abs(got-truth) > 1e-6*truth {
		t.Errorf("node %v J, truth %v J", got, truth)
	}
	if sum := jobs + book.System.Total(); math.Abs(sum-truth) > 1e-3*truth {
		t.Errorf("jobs and system %v J, node %v J", sum, truth)
	}
	if idle, basis := p.IdleWatts(); basis != "modelled" || idle != 116 {
		t.Errorf("idle %v W, %s", idle, basis)
	}
}

func TestADayOfWrapsLosesNothing(t *testing.T) {
	t.Parallel()
	const (
		intel = 262_143_328_850
		amd   = 65_532_610_987
	)
	for _, tc := range []struct {
		name  string
		watts float64
		wrap  uint64
		read  []time.Duration
	}{
		{"an Intel package at 150 W", 150, intel, []time.Duration{15 * time.Second, 2 * time.Minute}},
		{"an Intel package at 350 W", 350, intel, []time.Duration{time.Minute}},
		{"an AMD package at 280 W", 280, amd, []time.Duration{30 * time.Second}},
		{"an AMD package at 500 W", 500, amd, []time.Duration{15 * time.Second, 2 * time.Minute}},
	} {
		for _, every := range tc.read {
			t.Run(tc.name+" each "+every.String(), func(t *testing.T) {
				t.Parallel()
				s := newTree(t, map[string]string{"intel-rapl:0": "package-0"}, tc.wrap)
				p, err := energy.NewPowercap(s.root(), energy.DefaultModel(64))
				if err != nil {
					t.Fatal(err)
				}
				rng := rand.New(rand.NewPCG(3, uint64(tc.watts)))
				act := energy.Activity{Elapsed: every, Busy: 40, Cores: 64}
				if _, _, err := p.Step(t.Context(), act); err != nil {
					t.Fatal(err)
				}
				var truth, got, naive float64
				for at := every; at <= 24*time.Hour; at += every {
					joules := tc.watts * (0.95 + 0.1*rng.Float64()) * every.Seconds()
					before := s.zones["intel-rapl:0"].value
					s.add("intel-rapl:0", joules)
					truth += joules
					// What a counter that is taken as reset by each wrap shows.
					if now := s.zones["intel-rapl:0"].value; now >= before {
						naive += float64(now-before) / 1e6
					} else {
						naive += float64(now) / 1e6
					}
					split, ok, err := p.Step(t.Context(), act)
					if err != nil || !ok {
						t.Fatalf("ok %v, err %v", ok, err)
					}
					got += split.Total
				}
				if math.Abs(got-truth) > 1e-3*truth {
					t.Errorf("got %v J of %v J", got, truth)
				}
				if naive > 0.998*truth {
					t.Errorf("a naive reader has %v J of %v J: the counter did not wrap", naive, truth)
				}
			})
		}
	}
}

func TestAPackageThatOnlyMMIOCountsIsCounted(t *testing.T) {
	t.Parallel()
	s := newTree(t, map[string]string{"intel-rapl-mmio:0": "package-0", "intel-rapl:0": "psys"}, 1e12)
	p, err := energy.NewPowercap(s.root(), energy.DefaultModel(4))
	if err != nil {
		t.Fatal(err)
	}
	act := energy.Activity{Elapsed: time.Second, Cores: 4}
	if _, _, err := p.Step(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	s.add("intel-rapl-mmio:0", 10)
	s.add("intel-rapl:0", 25)
	if got, ok, err := p.Step(t.Context(), act); err != nil || !ok || got.Total != 10 {
		t.Errorf("got %+v, %v, %v; want 10 J", got, ok, err)
	}
}

func TestAZoneThatIsOnlyShownTakesNothingDownWithIt(t *testing.T) {
	t.Parallel()
	s := newTree(t, map[string]string{"intel-rapl:0": "package-0", "intel-rapl:1": "psys"}, 1e12)
	p, err := energy.NewPowercap(s.root(), energy.DefaultModel(4))
	if err != nil {
		t.Fatal(err)
	}
	act := energy.Activity{Elapsed: time.Second, Cores: 4}
	if _, _, err := p.Step(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	s.add("intel-rapl:0", 10)
	s.write("intel-rapl:1", "energy_uj", "nonsense")
	if got, ok, err := p.Step(t.Context(), act); err != nil || !ok || got.Total != 10 {
		t.Errorf("got %+v, %v, %v; want 10 J", got, ok, err)
	}
	s.add("intel-rapl:1", 40)
	if _, _, err := p.Step(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	for _, z := range p.Zones() {
		if z.Name == "psys" && z.Joules != 40 {
			t.Errorf("psys %v J, want 40", z.Joules)
		}
	}
}

func TestAZoneWhoseRangeIsUnreadableLosesAtMostAWrap(t *testing.T) {
	t.Parallel()
	s := newTree(t, map[string]string{"intel-rapl:0": "package-0"}, 0)
	p, err := energy.NewPowercap(s.root(), energy.DefaultModel(4))
	if err != nil {
		t.Fatal(err)
	}
	act := energy.Activity{Elapsed: time.Second, Busy: 1, Cores: 4}
	total := 0.0
	for _, uj := range []string{"900000000", "950000000", "20000000", "30000000"} {
		s.write("intel-rapl:0", "energy_uj", uj)
		split, _, err := p.Step(t.Context(), act)
		if err != nil {
			t.Fatal(err)
		}
		total += split.Total
	}
	if total != 50+20+10 {
		t.Errorf("total %v J, want 80", total)
	}
}

func TestAnUnreadableZoneLosesNoEnergy(t *testing.T) {
	t.Parallel()
	s := newTree(t, map[string]string{"intel-rapl:0": "package-0", "intel-rapl:0:0": "dram"}, 1e12)
	p, err := energy.NewPowercap(s.root(), energy.DefaultModel(4))
	if err != nil {
		t.Fatal(err)
	}
	act := energy.Activity{Elapsed: time.Second, Cores: 4}
	step := func() (energy.Split, error) { s, _, err := p.Step(t.Context(), act); return s, err }
	if _, err := step(); err != nil {
		t.Fatal(err)
	}
	s.add("intel-rapl:0", 10)
	s.write("intel-rapl:0:0", "energy_uj", "nonsense")
	if _, err := step(); !errors.Is(err, hostfs.ErrFormat) {
		t.Fatalf("got %v, want %v", err, hostfs.ErrFormat)
	}
	s.add("intel-rapl:0", 10)
	s.add("intel-rapl:0:0", 3)
	if got, err := step(); err != nil || got.Total != 23 {
		t.Errorf("got %+v, %v; want 23 J", got, err)
	}
}

func TestWhyThereIsNoRAPL(t *testing.T) {
	t.Parallel()
	model := energy.DefaultModel(2)
	none, err := energy.NewPowercap(hostfs.Root{SysFS: t.TempDir()}, model)
	if !errors.Is(err, collector.ErrUnsupported) {
		t.Errorf("no tree: got %v", err)
	}
	sources := energy.Probe(none, err, model)
	if sources[0].Support != api.Unsupported || sources[0].Reason == "" || sources[1].Support != api.Supported {
		t.Errorf("sources %+v", sources)
	}
	s := newTree(t, map[string]string{"intel-rapl:0:0": "core", "intel-rapl:0": "psys"}, 1)
	if _, err := energy.NewPowercap(s.root(), model); !errors.Is(err, collector.ErrUnsupported) {
		t.Errorf("no package zone: got %v", err)
	}
	if os.Geteuid() != 0 {
		s := newTree(t, map[string]string{"intel-rapl:0": "package-0"}, 1)
		if err := os.Chmod(filepath.Join(s.dir, "class/powercap/intel-rapl:0/energy_uj"), 0); err != nil {
			t.Fatal(err)
		}
		_, err := energy.NewPowercap(s.root(), model)
		if got := energy.Probe(nil, err, model)[0]; got.Support != api.Denied {
			t.Errorf("closed counter: %+v, want denied", got)
		}
	}
}

func TestTheModelIsLinearInTheBusyShare(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		busy        float64
		total, idle float64
	}{
		{"idle", 0, 100, 100},
		{"half", 4, 200, 100},
		{"full", 8, 300, 100},
		{"more than there is", 9, 300, 100},
	} {
		m := energy.NewModeller(energy.Model{Idle: 50, Max: 150})
		got, ok, err := m.Step(t.Context(), energy.Activity{Elapsed: 2 * time.Second, Busy: tc.busy, Cores: 4})
		if err != nil || !ok || got.Total != tc.total || got.Idle != tc.idle {
			t.Errorf("%s: got %+v, %v, %v; want %v J, %v J idle", tc.name, got, ok, err, tc.total, tc.idle)
		}
	}
}

func TestModelParametersAreChecked(t *testing.T) {
	t.Parallel()
	if m, err := (energy.Model{Idle: 500}).Or(energy.DefaultModel(2)); err != nil || m.Max != 500 {
		t.Errorf("idle above the default maximum: %+v, %v", m, err)
	}
	for _, bad := range []energy.Model{{Idle: -1, Max: 5}, {Idle: 10, Max: 5}, {Idle: 1, Max: math.NaN()}, {Idle: 1, Max: math.Inf(1)}} {
		if _, err := bad.Or(energy.DefaultModel(2)); !errors.Is(err, energy.ErrModel) {
			t.Errorf("%+v: got %v", bad, err)
		}
	}
}

func TestSharesSumToTheNode(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		total := rapid.Float64Range(0, 1e6).Draw(rt, "total")
		split := energy.Split{Total: total, Idle: total * rapid.Float64Range(0, 1).Draw(rt, "idle")}
		act := energy.Activity{Elapsed: time.Second, Busy: rapid.Float64Range(0, 200).Draw(rt, "busy"), Cores: rapid.IntRange(1, 128).Draw(rt, "cores")}
		uses := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) energy.Use {
			return energy.Use{CPUSeconds: rapid.Float64Range(0, 100).Draw(rt, "cpu"), Cores: rapid.Float64Range(0, 128).Draw(rt, "alloc")}
		}), 0, 6).Draw(rt, "uses")
		jobs, system := energy.Share(split, act, uses)
		sum := system.Total()
		if system.Active < 0 || system.Idle < 0 {
			rt.Fatalf("system %+v", system)
		}
		for _, j := range jobs {
			if j.Active < 0 || j.Idle < 0 {
				rt.Fatalf("job %+v", j)
			}
			sum += j.Total()
		}
		if math.Abs(sum-total) > 1e-9*total+1e-9 {
			rt.Fatalf("sum %v, node %v", sum, total)
		}
	})
}

func TestAnIdleJobPaysForTheCoresThatItHolds(t *testing.T) {
	t.Parallel()
	split := energy.Split{Total: 100, Idle: 60}
	act := energy.Activity{Elapsed: time.Second, Busy: 2, Cores: 4}
	jobs, system := energy.Share(split, act, []energy.Use{{CPUSeconds: 1, Cores: 1}, {CPUSeconds: 0, Cores: 2}})
	if jobs[0] != (energy.Joules{Active: 20, Idle: 15}) || jobs[1] != (energy.Joules{Idle: 30}) || system != (energy.Joules{Active: 20, Idle: 15}) {
		t.Errorf("jobs %+v, system %+v", jobs, system)
	}
}

func TestTicksThatCameTooEarlyCountInTheNextInterval(t *testing.T) {
	t.Parallel()
	m := energy.NewModeller(energy.Model{Idle: 0, Max: 100})
	total := 0.0
	for _, busy := range []float64{0.22, 0.18, 0.21, 0.19} { // two cores, all of the time
		s, _, err := m.Step(t.Context(), energy.Activity{Elapsed: 100 * time.Millisecond, Busy: busy, Cores: 2})
		if err != nil {
			t.Fatal(err)
		}
		total += s.Total
	}
	if math.Abs(total-40) > 1e-9 {
		t.Errorf("total %v J, want 40", total)
	}
}
