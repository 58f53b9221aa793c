package doctor_test

import (
	"errors"
	"strings"
	"testing"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/doctor"
)

func facts(change func(*doctor.Facts)) doctor.Facts {
	f := doctor.Facts{
		Node: api.Node{Schema: api.SchemaSoftware, EnergySource: "rapl", Sources: []api.Source{
			{Name: "perf/task-clock", Support: api.Supported, Reason: "cgroup mode on unified"},
			{Name: "energy/rapl", Support: api.Supported, Reason: "package-0"},
			{Name: "cgroup/io", Support: api.Unsupported, Reason: "no hierarchy with io"},
		}},
		Program: "/usr/bin/pitchpipe-exporter", Root: true, Socket: "/run/s", State: "/var/lib/s",
	}
	if change != nil {
		change(&f)
	}
	return f
}

func TestEachTroubleHasItsStateItsReasonAndItsCommand(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		change  func(*doctor.Facts)
		about   string
		state   doctor.State
		mend    string
		verdict doctor.Verdict
	}{
		{"all is well", nil, "energy/rapl", doctor.Works, "", doctor.Healthy},
		{"what the node does not have needs no mending", nil, "cgroup/io", doctor.Absent, "", doctor.Healthy},
		{"perf is denied", func(f *doctor.Facts) {
			f.Root, f.Node.Sources[0] = false, api.Source{Name: "perf/task-clock", Support: api.Denied, Reason: "EACCES"}
		}, "perf/task-clock", doctor.Denied, "setcap cap_perfmon+ep /usr/bin/pitchpipe-exporter", doctor.Mendable},
		{"perf is denied to root", func(f *doctor.Facts) {
			f.Node.Sources[0] = api.Source{Name: "perf/task-clock", Support: api.Denied, Reason: "EACCES"}
		}, "perf/task-clock", doctor.Denied, "sysctl -w kernel.perf_event_paranoid=0", doctor.Mendable},
		{"perf is filtered", func(f *doctor.Facts) {
			f.Node.Sources[0] = api.Source{Name: "perf/task-clock", Support: api.Denied, Reason: "EPERM: although the exporter has CAP_PERFMON: a container's filter of system calls refuses"}
		}, "perf/task-clock", doctor.Denied, "SystemCallFilter=perf_event_open", doctor.Mendable},
		{"the counters of RAPL are closed", func(f *doctor.Facts) {
			f.Node.Sources[1] = api.Source{Name: "energy/rapl", Support: api.Denied, Reason: "EACCES"}
		}, "energy/rapl", doctor.Denied, "chmod o+r /sys/class/powercap/intel-rapl*/energy_uj", doctor.Mendable},
		{"the power PMU is closed", func(f *doctor.Facts) {
			f.Root, f.Node.EnergySource = false, "modelled"
			f.Node.Sources[1] = api.Source{Name: "energy/perf-power", Support: api.Denied, Reason: "EACCES"}
		}, "energy/perf-power", doctor.Denied, "setcap cap_perfmon+ep /usr/bin/pitchpipe-exporter", doctor.Mendable},
		{"so is RAPL, and one command opens both to the exporter alone", func(f *doctor.Facts) {
			f.Root, f.Node.EnergySource = false, "modelled"
			f.Node.Sources[0] = api.Source{Name: "energy/perf-power", Support: api.Denied, Reason: "EACCES"}
			f.Node.Sources[1] = api.Source{Name: "energy/rapl", Support: api.Denied, Reason: "EACCES"}
		}, "energy/rapl", doctor.Denied, "setcap cap_perfmon+ep /usr/bin/pitchpipe-exporter", doctor.Mendable},
		{"what is closed and not needed is left closed", func(f *doctor.Facts) {
			f.Node.EnergySource = "perf-power"
			f.Node.Sources[1] = api.Source{Name: "energy/rapl", Support: api.Denied, Reason: "EACCES"}
		}, "energy/rapl", doctor.Absent, "", doctor.Healthy},
		{"joules survive a restart", nil, "state", doctor.Works, "", doctor.Healthy},
		{"joules and budgets end with the exporter", func(f *doctor.Facts) { f.State = "" }, "state", doctor.Limited, "--state.file=/var/lib/pitchpipe-exporter/state.json", doctor.Mendable},
		{"the state is cut short", func(f *doctor.Facts) { f.StateErr = errors.New("unexpected end of JSON input") }, "state", doctor.Limited, "--state.file", doctor.Mendable},
		{"step daemons cannot be looked at", func(f *doctor.Facts) {
			f.Node.Sources[0] = api.Source{Name: "attrib/slurmstepd", Support: api.Denied, Reason: "EACCES"}
		}, "attrib/slurmstepd", doctor.Denied, "setcap cap_sys_ptrace+ep /usr/bin/pitchpipe-exporter", doctor.Mendable},
		{"only some processes can be read", func(f *doctor.Facts) {
			f.Node.Sources[0] = api.Source{Name: "proc/io", Support: api.Supported, Reason: "own processes only: others need CAP_SYS_PTRACE"}
		}, "proc/io", doctor.Limited, "setcap cap_sys_ptrace+ep /usr/bin/pitchpipe-exporter", doctor.Mendable},
		{"two rights are missing, and one command gives both", func(f *doctor.Facts) {
			f.Root = false
			f.Node.Sources[0] = api.Source{Name: "perf/task-clock", Support: api.Denied, Reason: "EACCES"}
			f.Node.Sources[2] = api.Source{Name: "attrib/slurmstepd", Support: api.Denied, Reason: "EACCES"}
		}, "attrib/slurmstepd", doctor.Denied, "setcap cap_perfmon,cap_sys_ptrace+ep /usr/bin/pitchpipe-exporter", doctor.Mendable},
		{"a source hangs", func(f *doctor.Facts) {
			f.Node.Sources[1] = api.Source{Name: "energy/rapl", Support: api.Supported, Silent: true, Reason: "does not answer"}
		}, "energy/rapl", doctor.Silent, "dmesg", doctor.Mendable},
		{"energy is modelled", func(f *doctor.Facts) { f.Node.EnergySource = "modelled" }, "energy", doctor.Limited, "--energy.model.idle-watts", doctor.Mendable},
		{"a hybrid host without leaves", func(f *doctor.Facts) { f.Hybrid = true }, "perf for schedulers' jobs", doctor.Limited, "--perf.leaf", doctor.Mendable},
		{"a hybrid host with leaves", func(f *doctor.Facts) { f.Hybrid, f.Leaf = true, true }, "perf for schedulers' jobs", doctor.Works, "", doctor.Healthy},
		{"a container of its own", func(f *doctor.Facts) { f.OwnPids = true }, "progress reports", doctor.Broken, "hostPID", doctor.Ill},
		{"no exporter runs", func(f *doctor.Facts) { f.SocketErr = errors.New("refused") }, "exporter", doctor.Limited, "systemctl start", doctor.Mendable},
		{"this user cannot run one", func(f *doctor.Facts) {
			f.Root, f.SocketErr, f.Listening = false, errors.New("refused"), errors.New("/run: permission denied")
		}, "exporter", doctor.Broken, "sudo /usr/bin/pitchpipe-exporter doctor", doctor.Ill},
		{"none can run", func(f *doctor.Facts) {
			f.SocketErr, f.Listening = errors.New("refused"), errors.New("read-only file system")
		}, "exporter", doctor.Broken, "--socket", doctor.Ill},
		{"graphics cards without a helper", func(f *doctor.Facts) {
			f.NVIDIA, f.Node.Sources[1] = true, api.Source{Name: "gpu/nvidia", Support: api.Unsupported, Reason: "there is a driver, and nothing to ask it"}
		}, "gpu/nvidia", doctor.Limited, "--gpu.helper", doctor.Mendable},
		{"no graphics cards", func(f *doctor.Facts) {
			f.Node.Sources[1] = api.Source{Name: "gpu/nvidia", Support: api.Unsupported, Reason: "no NVIDIA driver"}
		}, "gpu/nvidia", doctor.Absent, "", doctor.Healthy},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			findings := doctor.Examine(facts(tc.change))
			seen := false
			for _, f := range findings {
				if f.Why == "" {
					t.Errorf("%s has no reason", f.Name)
				}
				if (f.State == doctor.Denied || f.State == doctor.Limited || f.State == doctor.Broken || f.State == doctor.Silent) != (f.Mend != "") {
					t.Errorf("%s is %s, and what mends it is %q", f.Name, f.State, f.Mend)
				}
				if f.Name != tc.about {
					continue
				}
				seen = true
				if f.State != tc.state || !strings.Contains(f.Mend, tc.mend) {
					t.Errorf("%+v; want %s, mended by %q", f, tc.state, tc.mend)
				}
			}
			if !seen {
				t.Errorf("nothing about %s", tc.about)
			}
			if got := doctor.Judge(findings); got != tc.verdict {
				t.Errorf("verdict %d, want %d", got, tc.verdict)
			}
			var page strings.Builder
			if err := doctor.Print(&page, findings); err != nil {
				t.Fatal(err)
			}
			if tc.mend != "" && !strings.Contains(page.String(), tc.mend) {
				t.Errorf("the page does not say %q:\n%s", tc.mend, &page)
			}
		})
	}
}

func TestWhatStandsAlikeSharesALine(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	none := func(name string) doctor.Finding {
		return doctor.Finding{Name: name, State: doctor.Absent, Why: "no PMU"}
	}
	err := doctor.Print(&page, []doctor.Finding{
		{Name: "perf/task-clock", State: doctor.Works, Why: "cgroup mode"}, none("perf/cycles"), none("perf/branches"), none("perf/branch-misses"), none("gpu/nvidia"), {Name: "jobs", State: doctor.Works, Why: "none"},
	})
	const want = "works perf/task-clock cgroup mode " +
		"absent perf/cycles and 2 more of perf no PMU absent gpu/nvidia no PMU works jobs none"
	if err != nil || strings.Join(strings.Fields(page.String()), " ") != want {
		t.Errorf("%v\n%s\nwant\n%s", err, &page, want)
	}
}
