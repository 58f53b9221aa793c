package energy_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/test/fixtures"
)

func find(t *testing.T, m *fixtures.Machine, rules ...string) *energy.Found {
	t.Helper()
	sensors, err := energy.ParseSensors(rules...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := energy.Find(m.Root(), m.Opener(), energy.Model{Idle: 50, Max: 200}, sensors)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Meter.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func machine(t *testing.T, kind fixtures.Kind) *fixtures.Machine {
	t.Helper()
	m, err := fixtures.New(t.TempDir(), kind)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Each kind of machine has one source; what it counts in ten minutes is what the machine
// took, and each other source says why it is not there.
func TestEachMachineIsReadByTheBestOfItsMeters(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind   fixtures.Kind
		denied bool
		source string
		means  string            // of that source
		others map[string]string // answer and the reason's beginning
		zones  string            // those that count, + those that are shown
	}{
		{
			fixtures.Intel, false, energy.PerfPower, "dram dram package-0 package-1",
			map[string]string{"rapl": "supported dram dram package-0 package-1; shown: package-0 package-1", "hwmon": "unsupported not supported here: no sensors", "bmc": "unsupported not supported here: no Cray"},
			"power:0:package power:1:package power:0:dram power:1:dram",
		},
		{
			fixtures.Intel, true, energy.RAPL, "dram dram package-0 package-1; shown: package-0 package-1",
			map[string]string{"perf-power": "denied power PMU: energy-pkg: CPU 0: permission denied: needs CAP_PERFMON"},
			"intel-rapl:0 intel-rapl:0:0 intel-rapl:1 intel-rapl:1:0 + intel-rapl-mmio:0 intel-rapl-mmio:1",
		},
		{
			fixtures.Dies, false, energy.PerfPower, "dram dram dram dram package-0-die-0 package-0-die-1 package-1-die-0 package-1-die-1",
			map[string]string{"rapl": "supported dram dram dram dram package-0-die-0"},
			"power:0-die-0:package power:0-die-1:package power:1-die-0:package power:1-die-1:package power:0-die-0:dram power:0-die-1:dram power:1-die-0:dram power:1-die-1:dram",
		},
		{
			fixtures.Dies, true, energy.RAPL, "dram dram dram dram package-0-die-0 package-0-die-1 package-1-die-0 package-1-die-1",
			map[string]string{"perf-power": "denied"},
			"intel-rapl:0 intel-rapl:0:0 intel-rapl:1 intel-rapl:1:0 intel-rapl:2 intel-rapl:2:0 intel-rapl:3 intel-rapl:3:0",
		},
		{
			fixtures.AMDCCD, false, energy.PerfPower, "package-0 package-1",
			map[string]string{"rapl": "supported package-0-die-0 package-1-die-0; shown: package-0-die-1"},
			"power:0:package power:1:package",
		},
		{
			fixtures.AMDCCD, true, energy.RAPL, "package-0-die-0 package-1-die-0; shown: package-0-die-1 package-0-die-2 package-0-die-3 package-1-die-1 package-1-die-2 package-1-die-3",
			map[string]string{"perf-power": "denied"},
			"intel-rapl:0 intel-rapl:4 + intel-rapl:1 intel-rapl:2 intel-rapl:3 intel-rapl:5 intel-rapl:6 intel-rapl:7",
		},
		{
			fixtures.AMD, false, energy.RAPL, "package-0 package-1; shown: core core",
			map[string]string{"perf-power": "unsupported not supported here: no power PMU", "hwmon": "supported amd_energy Esocket0 amd_energy Esocket1"},
			"intel-rapl:0 intel-rapl:1 + intel-rapl:0:0 intel-rapl:1:0",
		},
		{
			fixtures.Cray, false, energy.BMC, "cpu memory; shown: accel0 node",
			map[string]string{"rapl": "unsupported not supported here: no powercap tree", "hwmon": "unsupported"},
			"pm_counters:cpu_energy pm_counters:memory_energy + pm_counters:accel0_energy pm_counters:energy",
		},
		{
			fixtures.Grace, false, energy.HWMon, "power_meter Grace Power Socket 0 power_meter Grace Power Socket 1",
			map[string]string{"rapl": "unsupported", "bmc": "unsupported"},
			"hwmon0:power1 hwmon1:power1",
		},
		{
			fixtures.Laptop, false, energy.RAPL, "package-0; shown: core psys uncore",
			map[string]string{"hwmon": "unsupported not supported here: no sensor below"},
			"intel-rapl:0 + intel-rapl:0:0 intel-rapl:0:1 intel-rapl:1",
		},
		{
			fixtures.VM, false, energy.Modelled, "idle 50 W, all cores busy 200 W",
			map[string]string{"perf-power": "unsupported", "rapl": "unsupported", "bmc": "unsupported", "hwmon": "unsupported"},
			"",
		},
	} {
		t.Run(fmt.Sprint(tc.kind, " ", tc.source), func(t *testing.T) {
			t.Parallel()
			m := machine(t, tc.kind)
			m.Denied = tc.denied
			f := find(t, m)
			if got := f.Meter.Source(); got != tc.source {
				t.Fatalf("read by %s, want %s", got, tc.source)
			}
			for _, s := range f.Sources {
				name := strings.TrimPrefix(s.Name, "energy/")
				if name == tc.source && (s.Support != api.Supported || s.Reason != tc.means) {
					t.Errorf("%+v, want %q", s, tc.means)
				}
				if want := tc.others[name]; !strings.HasPrefix(string(s.Support)+" "+s.Reason, want) {
					t.Errorf("%+v, want %q", s, want)
				}
			}
			if err := m.Begin(fixtures.Job{ID: "a", CPUs: m.Socket(0), Busy: 2, Watts: 30, DRAM: 3}); err != nil {
				t.Fatal(err)
			}
			cpus := float64(m.CPUs())
			got := 0.0
			for i := range 25 {
				elapsed := time.Duration(min(i, 1)) * 25 * time.Second
				for passed := time.Duration(0); passed <= elapsed; passed += 5 * time.Second { // sensors of power are read as often
					since := min(passed, 5*time.Second)
					if err := errors.Join(m.Step(since), f.Meter.Read(t.Context(), since)); err != nil {
						t.Fatal(err)
					}
				}
				s, _ := f.Meter.Settle(energy.Activity{Elapsed: elapsed, Busy: 2 * elapsed.Seconds(), Cores: int(cpus)})
				sum := 0.0
				for _, p := range s.Parts {
					sum += p.Total
				}
				if math.Abs(sum-s.Total) > 1e-9*s.Total {
					t.Errorf("the parts sum to %v of %v J", sum, s.Total)
				}
				got += s.Total
			}
			want := m.Node()
			if tc.kind == fixtures.VM {
				want = 600 * (50 + 150*2/cpus)
			}
			if math.Abs(got-want) > 1e-3*want {
				t.Errorf("%.0f J in ten minutes, in truth %.0f", got, want)
			}
			var counted, shown []string
			for _, z := range f.Meter.Zones() {
				if z.Counted {
					counted = append(counted, z.ID)
				} else {
					shown = append(shown, z.ID)
				}
			}
			zones := strings.Join(counted, " ")
			if len(shown) > 0 {
				zones += " + " + strings.Join(shown, " ")
			}
			if diff := cmp.Diff(tc.zones, zones); diff != "" {
				t.Errorf("zones (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPowercapComesFirstWhereThePMULacksAPart(t *testing.T) {
	t.Parallel()
	m := machine(t, fixtures.Intel)
	for _, name := range []string{"energy-ram", "energy-ram.scale", "energy-ram.unit"} {
		if err := os.Remove(m.Root().Sys("bus", "event_source", "devices", "power", "events", name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := find(t, m).Meter.Source(); got != energy.RAPL {
		t.Errorf("read by %s, and its DRAM would be missing", got)
	}
}

func TestACounterThatIsClosedIsDeniedAndNotAbsent(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	m := machine(t, fixtures.AMD)
	if err := os.Chmod(m.Root().Sys("class", "powercap", "intel-rapl:0", "energy_uj"), 0); err != nil {
		t.Fatal(err)
	}
	f := find(t, m)
	for _, s := range f.Sources {
		if s.Name == "energy/rapl" && s.Support != api.Denied {
			t.Errorf("%+v, want denied", s)
		}
	}
	if got := f.Meter.Source(); got != energy.HWMon {
		t.Errorf("read by %s, want the sensors that are open", got)
	}
}

// Two dies that cannot be distinguished would be taken for one whose counter jumps.
func TestCountersOfOneNameAreRefused(t *testing.T) {
	t.Parallel()
	m := machine(t, fixtures.Dies)
	for cpu := range m.CPUs() {
		if err := os.Remove(m.Root().Sys("devices", "system", "cpu", fmt.Sprint("cpu", cpu), "topology", "die_id")); err != nil {
			t.Fatal(err)
		}
	}
	f := find(t, m)
	if got := f.Meter.Source(); got != energy.RAPL {
		t.Errorf("read by %s, want powercap, whose zones have names of their own", got)
	}
	if s := f.Sources[0]; s.Support == api.Supported || !strings.Contains(s.Reason, "two counters of one name: power:0:package") {
		t.Errorf("%+v, want it refused with the reason", s)
	}
}

func TestADRAMZoneThatCannotBeReadIsMissingAndTheRestIsCounted(t *testing.T) {
	t.Parallel()
	broken := func(t *testing.T, m *fixtures.Machine, zone string) {
		t.Helper()
		path := m.Root().Sys("class", "powercap", zone, "energy_uj")
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o755)); err != nil { //nolint:gosec // as sysfs is
			t.Fatal(err)
		}
	}
	m := machine(t, fixtures.Intel)
	m.Denied = true
	broken(t, m, "intel-rapl:1:0")
	f := find(t, m)
	want := "dram package-0 package-1; shown: dram package-0 package-1; missing: dram of package 1: "
	if s := f.Sources[1]; f.Meter.Source() != energy.RAPL || s.Support != api.Supported || !strings.HasPrefix(s.Reason, want) {
		t.Errorf("read by %s; %+v, want %q", f.Meter.Source(), s, want)
	}
	broken(t, m, "intel-rapl:1")
	if f := find(t, m); f.Meter.Source() == energy.RAPL {
		t.Error("the machine is read without one of its packages")
	}
}

func TestPackagesAreNeededOfPowercap(t *testing.T) {
	t.Parallel()
	s := newTree(t, map[string]string{"intel-rapl:0:0": "core", "intel-rapl:0": "psys"}, 1)
	if _, err := energy.NewPowercap(s.root(), energy.DefaultModel(2)); err == nil {
		t.Error("a tree without packages is read")
	}
}
