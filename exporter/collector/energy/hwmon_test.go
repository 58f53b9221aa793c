package energy_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/sandbox"
)

// plant writes files below a sysfs.
func plant(t *testing.T, files map[string]string) hostfs.Root {
	t.Helper()
	root := hostfs.Root{SysFS: t.TempDir()}
	for name, text := range files {
		sandbox.Plant(t, root.SysFS, map[string]string{name: text + "\n"})
	}
	return root
}

func TestASensorCountsAsItsRuleSays(t *testing.T) {
	t.Parallel()
	const chip = "class/hwmon/hwmon3/"
	for _, tc := range []struct {
		name  string
		rules []string
		files map[string]string
		want  string // zones that count, or the error's text
		gpus  bool   // the graphics cards are in it
	}{
		{
			"ACPI's meter counts the machine", nil,
			map[string]string{chip + "name": "power_meter", chip + "power1_average": "350000000", chip + "power1_input": "1"},
			"hwmon3:power1 7000 J, whole machine", true,
		},
		{
			"the machine's meter comes before its sockets'",
			[]string{"fam15h_power=package"},
			map[string]string{
				chip + "name": "power_meter", chip + "power1_average": "350000000",
				"class/hwmon/hwmon4/name": "fam15h_power", "class/hwmon/hwmon4/power1_input": "90000000",
			},
			"hwmon3:power1 7000 J, whole machine", true,
		},
		{
			"a rail is ignored", nil,
			map[string]string{chip + "name": "ina3221", chip + "power1_input": "350000000", chip + "power1_label": "VDD_IN"},
			"no sensor", false,
		},
		{
			"unless the administrator says what it is",
			[]string{"ina3221/VDD_IN=node"},
			map[string]string{chip + "name": "ina3221", chip + "power1_input": "350000000", chip + "power1_label": "VDD_IN", chip + "power2_input": "5", chip + "power2_label": "VDD_CPU"},
			"hwmon3:power1 7000 J, whole machine", true,
		},
		{
			"and his rule comes before what is known",
			[]string{"power_meter=ignore"},
			map[string]string{chip + "name": "power_meter", chip + "power1_average": "350000000"},
			"no sensor", false,
		},
		{
			"sensors are numbered by their labels, or by the rule",
			[]string{"mine/power2=package:1"},
			map[string]string{
				chip + "name": "power_meter", chip + "power1_average": "200000000", chip + "power1_oem_info": "Grace Power Socket 0",
				"class/hwmon/hwmon4/name": "mine", "class/hwmon/hwmon4/power2_average": "100000000",
			},
			"hwmon3:power1 4000 J, socket 0; hwmon4:power2 2000 J, socket 1", false,
		},
		{
			"a sensor that cannot be read is not left out in silence", nil,
			map[string]string{chip + "name": "power_meter", chip + "power1_average": "many"},
			"unexpected format", false,
		},
		{"a machine without sensors", nil, map[string]string{"x": ""}, "no sensors", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			sensors, err := energy.ParseSensors(tc.rules...)
			if err != nil {
				t.Fatal(err)
			}
			m, err := energy.NewHWMon(plant(t, tc.files), sensors, energy.Model{})
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, want %q", err, tc.want)
				}
				return
			}
			var text []string
			for i := range 3 {
				var err error
				for range 5 { // sensors of power are read as often
					err = errors.Join(err, m.Read(t.Context(), time.Duration(i)*2*time.Second))
				}
				s, _ := m.Settle(energy.Activity{Elapsed: time.Duration(i) * 10 * time.Second, Cores: 4})
				if err != nil || i > 0 && (s.WithGPUs != tc.gpus || s.Lacks) {
					t.Errorf("%+v, %v; want with cards %v", s, err, tc.gpus)
				}
				if i < 2 {
					continue
				}
				zones := m.Zones()
				zones = zones[:0:0]
				for _, z := range m.Zones() {
					if z.Counted {
						zones = append(zones, z)
					}
				}
				for i, p := range s.Parts {
					where := fmt.Sprintf("socket %d", p.Package)
					if p.Component == energy.Node {
						where = "whole machine"
					}
					text = append(text, fmt.Sprintf("%s %.0f J, %s", zones[i].ID, p.Total, where))
				}
			}
			if got := strings.Join(text, "; "); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

var update = flag.Bool("update", false, "rewrite SENSORS.md")

// sensorsPage is SENSORS.md.
func sensorsPage() string {
	var b strings.Builder
	b.WriteString(`# Sensors of the board

Generated from ` + "`exporter/collector/energy/hwmon.go` by `go test ./exporter/collector/energy -update`" + `.

If a node has no RAPL, ` + "`pitchpipe-exporter`" + ` reads power and energy sensors of the board (hwmon). A
sensor counts if a rule says so; the first rule that fits its chip and its label applies. Rules
of ` + "`--energy.hwmon CHIP[/LABEL]=node|package|package:N|ignore`" + ` come before those below. CHIP is
what the file ` + "`name`" + ` says, LABEL what ` + "`powerN_label` or `powerN_oem_info`" + ` says, or the sensor's
own name such as ` + "`power1`; `*`" + ` stands for anything and ` + "`{n}`" + ` for the number of the socket.
If a sensor counts the whole machine, those of sockets are only shown, and the joules of
graphics cards are subtracted before it is shared out. Every other sensor is ignored: rails of
regulators, power supplies, disks, and graphics cards, which have a source of their own.

| rule | what it is |
|---|---|
`)
	for _, k := range energy.KnownSensors() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", k.Rule, k.What)
	}
	return b.String()
}

func TestThePageOfSensorsIsUpToDate(t *testing.T) {
	t.Parallel()
	const page = "SENSORS.md"
	if *update {
		if err := os.WriteFile(page, []byte(sensorsPage()), 0o644); err != nil { //nolint:gosec // for all to read
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sensorsPage(), string(got)); diff != "" {
		t.Errorf("%s is old; run with -update (-want +got):\n%s", page, diff)
	}
}

func TestRulesAboutSensorsAreChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "power_meter", "=node", "x=cpu", "x=node:1", "x=package:-1", "x=package:y", "x=ignore:1"} {
		if _, err := energy.ParseSensors(bad); !errors.Is(err, energy.ErrSensor) {
			t.Errorf("%q: %v, want %v", bad, err, energy.ErrSensor)
		}
	}
}

// What a sensor of power showed before and after a long time says nothing of the time between.
func TestPowerIsNotIntegratedOverALongGap(t *testing.T) {
	t.Parallel()
	sensors := energy.Sensors{{Chip: "power_meter", As: energy.Node}}
	m, err := energy.NewHWMon(plant(t, map[string]string{"class/hwmon/hwmon0/name": "power_meter", "class/hwmon/hwmon0/power1_average": "100000000"}), sensors, energy.Model{Idle: 90})
	if err != nil {
		t.Fatal(err)
	}
	for i, tc := range []struct {
		elapsed time.Duration
		joules  float64
		lacks   bool
	}{{0, 0, false}, {5 * time.Second, 500, false}, {time.Minute, 0, true}, {time.Second, 100, false}} {
		s, _, err := step(t.Context(), m, energy.Activity{Elapsed: tc.elapsed, Cores: 4})
		if err != nil || s.Total != tc.joules || s.Lacks != tc.lacks {
			t.Errorf("step %d: %+v, %v; want %v J, lacking some: %v", i, s, err, tc.joules, tc.lacks)
		}
	}
	if watts, basis := m.IdleWatts(); watts != 90 { // that of the gap, 0 W, was learned
		t.Errorf("%v W idle, %s", watts, basis)
	}
}

func TestACrayNodeWithoutPartsIsCountedAsAWhole(t *testing.T) {
	t.Parallel()
	root := plant(t, map[string]string{"cray/pm_counters/energy": "1000 J 1 us", "cray/pm_counters/accel0_energy": "5 J 1 us"})
	m, err := energy.NewPMCounters(root, energy.Model{Idle: 50})
	if err != nil {
		t.Fatal(err)
	}
	var got []float64
	for _, text := range []string{"1000 J 1 us", "1300 J 2 us", "20 J 1 us", "70 J 2 us"} { // it was restarted
		if err := os.WriteFile(root.Sys("cray", "pm_counters", "energy"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, ok, err := step(t.Context(), m, energy.Activity{Elapsed: time.Second, Cores: 4})
		if err != nil || ok && (!s.WithGPUs || s.Parts[0].Component != energy.Node) {
			t.Fatalf("%+v, %v", s, err)
		}
		got = append(got, s.Total)
	}
	if diff := cmp.Diff([]float64{0, 300, 20, 50}, got); diff != "" || m.Base() != energy.Node {
		t.Errorf("joules of a %s (-want +got):\n%s", m.Base(), diff)
	}
}

func FuzzParsePMCounter(f *testing.F) {
	f.Add([]byte("12345 J 1700000000000000 us\n"))
	f.Add([]byte("100 W"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := energy.ParsePMCounter(data); err != nil && !errors.Is(err, hostfs.ErrFormat) {
			t.Errorf("%q: %v", data, err)
		}
	})
}

func FuzzParseSensors(f *testing.F) {
	f.Add("ina3221/VDD_IN=node")
	f.Add("x=package:3")
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := energy.ParseSensors(text)
		if err != nil && !errors.Is(err, energy.ErrSensor) || err == nil && (len(rules) != 1+len(energy.KnownSensors()) || rules[0].Chip == "") {
			t.Errorf("%q: %+v, %v", text, rules, err)
		}
	})
}
