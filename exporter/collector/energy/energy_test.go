package energy_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/sandbox"
)

// tree is a powercap tree whose counters wrap as the hardware's do.
type tree struct {
	t     testing.TB
	dir   string
	zones map[string]*counter
}

type counter struct {
	value, wrap uint64
	file        *os.File
}

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
	sandbox.Plant(s.t, filepath.Join(s.dir, "class/powercap", id), map[string]string{file: text})
}

func (s *tree) add(id string, joules float64) {
	s.t.Helper()
	c := s.zones[id]
	c.value += uint64(math.Round(joules * 1e6))
	if c.wrap > 0 && c.value > c.wrap {
		c.value -= c.wrap
	}
	if c.file == nil {
		s.write(id, "energy_uj", "")
		f, err := os.OpenFile(filepath.Join(s.dir, "class/powercap", id, "energy_uj"), os.O_WRONLY, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = f.Close() })
		c.file = f
	}
	// In place and of one length: a day has many readings.
	if _, err := c.file.WriteAt(fmt.Appendf(nil, "%020d\n", c.value), 0); err != nil {
		s.t.Fatal(err)
	}
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
	if _, ok, err := step(t.Context(), p, act); ok || err != nil {
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
		split, ok, err := step(t.Context(), p, act)
		if err != nil || !ok {
			t.Fatalf("step: ok %v, err %v", ok, err)
		}
		for _, j := range book.Add(split, act, []energy.Use{{Load: energy.Load{CPUSeconds: 20, Cores: 32}}, {Load: energy.Load{CPUSeconds: 15, Cores: 16}}}) {
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

func TestAPackageThatOnlyMMIOCountsIsCounted(t *testing.T) {
	t.Parallel()
	s := newTree(t, map[string]string{"intel-rapl-mmio:0": "package-0", "intel-rapl:0": "psys"}, 1e12)
	p, err := energy.NewPowercap(s.root(), energy.DefaultModel(4))
	if err != nil {
		t.Fatal(err)
	}
	act := energy.Activity{Elapsed: time.Second, Cores: 4}
	if _, _, err := step(t.Context(), p, act); err != nil {
		t.Fatal(err)
	}
	s.add("intel-rapl-mmio:0", 10)
	s.add("intel-rapl:0", 25)
	if got, ok, err := step(t.Context(), p, act); err != nil || !ok || got.Total != 10 {
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
	if _, _, err := step(t.Context(), p, act); err != nil {
		t.Fatal(err)
	}
	s.add("intel-rapl:0", 10)
	s.write("intel-rapl:1", "energy_uj", "nonsense")
	if got, ok, err := step(t.Context(), p, act); err != nil || !ok || got.Total != 10 {
		t.Errorf("got %+v, %v, %v; want 10 J", got, ok, err)
	}
	s.add("intel-rapl:1", 40)
	if _, _, err := step(t.Context(), p, act); err != nil {
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
		split, _, err := step(t.Context(), p, act)
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
	step := func() (energy.Split, error) { s, _, err := step(t.Context(), p, act); return s, err }
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
		got, ok, err := step(t.Context(), m, energy.Activity{Elapsed: 2 * time.Second, Busy: tc.busy, Cores: 4})
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

func TestTicksThatCameTooEarlyCountInTheNextInterval(t *testing.T) {
	t.Parallel()
	m := energy.NewModeller(energy.Model{Idle: 0, Max: 100})
	total := 0.0
	for _, busy := range []float64{0.22, 0.18, 0.21, 0.19} { // two cores, all of the time
		s, _, err := step(t.Context(), m, energy.Activity{Elapsed: 100 * time.Millisecond, Busy: busy, Cores: 2})
		if err != nil {
			t.Fatal(err)
		}
		total += s.Total
	}
	if math.Abs(total-40) > 1e-9 {
		t.Errorf("total %v J, want 40", total)
	}
}

// step reads a meter and settles the interval.
func step(ctx context.Context, m energy.Meter, a energy.Activity) (energy.Split, bool, error) {
	if err := m.Read(ctx, a.Elapsed); err != nil {
		return energy.Split{}, false, err
	}
	s, ok := m.Settle(a)
	return s, ok, nil
}
