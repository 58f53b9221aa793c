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
		Exporter: api.Exporter{Program: "/usr/bin/pitchpipe-exporter", State: "/var/lib/s"}, Socket: "/run/s",
	}
	if change != nil {
		change(&f)
	}
	return f
}

func TestEachProblemHasItsStateItsReasonAndItsCommand(t *testing.T) {
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
			f.Exporter.UID, f.Node.Sources[0] = 1000, api.Source{Name: "perf/task-clock", Support: api.Denied, Reason: "EACCES"}
		}, "perf/task-clock", doctor.Denied, "setcap cap_perfmon+ep /usr/bin/pitchpipe-exporter", doctor.Mendable},
		{"perf is denied to root", func(f *doctor.Facts) {
			f.Node.Sources[0] = api.Source{Name: "perf/task-clock", Support: api.Denied, Reason: "EACCES"}
		}, "perf/task-clock", doctor.Denied, "sysctl -w kernel.perf_event_paranoid=0", doctor.Mendable},
		{"perf waits for another level, above which CAP_PERFMON does not count", func(f *doctor.Facts) {
			f.Node.Sources[0] = api.Source{Name: "perf/task-clock", Support: api.Denied, Reason: "EACCES: kernel.perf_event_paranoid is 4: this distribution asks for CAP_SYS_ADMIN above 2"}
		}, "perf/task-clock", doctor.Denied, "sysctl -w kernel.perf_event_paranoid=2", doctor.Mendable},
		{"so does the power PMU, although it does not say so", func(f *doctor.Facts) {
			f.Node.EnergySource = "modelled"
			f.Node.Sources[0] = api.Source{Name: "perf/task-clock", Support: api.Denied, Reason: "EACCES: kernel.perf_event_paranoid is 4: this distribution asks for CAP_SYS_ADMIN above 2"}
			f.Node.Sources[1] = api.Source{Name: "energy/perf-power", Support: api.Denied, Reason: "EACCES: needs CAP_PERFMON"}
		}, "energy/perf-power", doctor.Denied, "sysctl -w kernel.perf_event_paranoid=2", doctor.Mendable},
		{"a kernel without CAP_PERFMON", func(f *doctor.Facts) {
			f.Exporter.UID, f.Node.Sources[0] = 1000, api.Source{Name: "perf/task-clock", Support: api.Denied, Reason: "EACCES: needs CAP_SYS_ADMIN, since this kernel has no CAP_PERFMON"}
		}, "perf/task-clock", doctor.Denied, "setcap cap_sys_admin+ep /usr/bin/pitchpipe-exporter", doctor.Mendable},
		{"the service on such a kernel", func(f *doctor.Facts) {
			f.Running, f.Node.Sources[0] = true, api.Source{Name: "perf/task-clock", Support: api.Denied, Reason: "EACCES: needs CAP_SYS_ADMIN, since this kernel has no CAP_PERFMON"}
		}, "perf/task-clock", doctor.Denied, "CapabilityBoundingSet=CAP_SYS_ADMIN", doctor.Mendable},
		{"the service without the right", func(f *doctor.Facts) {
			f.Running, f.Node.Sources[0] = true, api.Source{Name: "perf/task-clock", Support: api.Denied, Reason: "EACCES: needs CAP_PERFMON"}
		}, "perf/task-clock", doctor.Denied, "CapabilityBoundingSet=CAP_PERFMON", doctor.Mendable},
		{"perf is filtered", func(f *doctor.Facts) {
			f.Node.Sources[0] = api.Source{Name: "perf/task-clock", Support: api.Denied, Reason: "EPERM: although the exporter has CAP_PERFMON: a container's filter of system calls refuses"}
		}, "perf/task-clock", doctor.Denied, "SystemCallFilter=perf_event_open", doctor.Mendable},
		{"the counters of RAPL are closed", func(f *doctor.Facts) {
			f.Node.Sources[1] = api.Source{Name: "energy/rapl", Support: api.Denied, Reason: "EACCES"}
		}, "energy/rapl", doctor.Denied, "systemd-tmpfiles --create", doctor.Mendable},
		{"the power PMU is closed", func(f *doctor.Facts) {
			f.Exporter.UID, f.Node.EnergySource = 1000, "modelled"
			f.Node.Sources[1] = api.Source{Name: "energy/perf-power", Support: api.Denied, Reason: "EACCES"}
		}, "energy/perf-power", doctor.Denied, "setcap cap_perfmon+ep /usr/bin/pitchpipe-exporter", doctor.Mendable},
		{"so is RAPL, and one command opens both to the exporter alone", func(f *doctor.Facts) {
			f.Exporter.UID, f.Node.EnergySource = 1000, "modelled"
			f.Node.Sources[0] = api.Source{Name: "energy/perf-power", Support: api.Denied, Reason: "EACCES"}
			f.Node.Sources[1] = api.Source{Name: "energy/rapl", Support: api.Denied, Reason: "EACCES"}
		}, "energy/rapl", doctor.Denied, "setcap cap_perfmon+ep /usr/bin/pitchpipe-exporter", doctor.Mendable},
		{"what is closed and not needed is left closed", func(f *doctor.Facts) {
			f.Node.EnergySource = "perf-power"
			f.Node.Sources[1] = api.Source{Name: "energy/rapl", Support: api.Denied, Reason: "EACCES"}
		}, "energy/rapl", doctor.Absent, "", doctor.Healthy},
		{"joules survive a restart", nil, "state", doctor.Works, "", doctor.Healthy},
		{"joules and budgets end with the exporter", func(f *doctor.Facts) { f.Exporter.State = "" }, "state", doctor.Limited, "--state.file=/var/lib/pitchpipe-exporter/state.json", doctor.Mendable},
		{"the state is cut short", func(f *doctor.Facts) { f.Exporter.StateErr = "unexpected end of JSON input" }, "state", doctor.Limited, "--state.file", doctor.Mendable},
		{"step daemons cannot be looked at", func(f *doctor.Facts) {
			f.Node.Sources[0] = api.Source{Name: "attrib/slurmstepd", Support: api.Denied, Reason: "EACCES"}
		}, "attrib/slurmstepd", doctor.Denied, "setcap cap_sys_ptrace+ep /usr/bin/pitchpipe-exporter", doctor.Mendable},
		{"only some processes can be read", func(f *doctor.Facts) {
			f.Node.Sources[0] = api.Source{Name: "proc/io", Support: api.Supported, Reason: "own processes only: others need CAP_SYS_PTRACE"}
		}, "proc/io", doctor.Limited, "setcap cap_sys_ptrace+ep /usr/bin/pitchpipe-exporter", doctor.Mendable},
		{"two rights are missing, and one command gives both", func(f *doctor.Facts) {
			f.Exporter.UID = 1000
			f.Node.Sources[0] = api.Source{Name: "perf/task-clock", Support: api.Denied, Reason: "EACCES"}
			f.Node.Sources[2] = api.Source{Name: "attrib/slurmstepd", Support: api.Denied, Reason: "EACCES"}
		}, "attrib/slurmstepd", doctor.Denied, "setcap cap_perfmon,cap_sys_ptrace+ep /usr/bin/pitchpipe-exporter", doctor.Mendable},
		{"a source hangs", func(f *doctor.Facts) {
			f.Node.Sources[1] = api.Source{Name: "energy/rapl", Support: api.Supported, Silent: true, Reason: "does not answer"}
		}, "energy/rapl", doctor.Silent, "dmesg", doctor.Mendable},
		{"energy is modelled", func(f *doctor.Facts) { f.Node.EnergySource = "modelled" }, "energy", doctor.Limited, "--energy.model.idle-watts", doctor.Mendable},
		{"a hybrid host without leaves", func(f *doctor.Facts) { f.Hybrid = true }, "perf for schedulers' jobs", doctor.Limited, "--perf.leaf", doctor.Mendable},
		{"a hybrid host with leaves", func(f *doctor.Facts) { f.Hybrid, f.Exporter.Leaf = true, true }, "perf for schedulers' jobs", doctor.Works, "", doctor.Healthy},
		{"a job whose cgroups are not where perf looks", func(f *doctor.Facts) { f.Uncounted = []string{"nomad/x"} }, "perf for schedulers' jobs", doctor.Limited, "pitchpipe", doctor.Mendable},
		{"leaves that do not reach a job", func(f *doctor.Facts) {
			f.Running, f.Hybrid, f.Exporter.Leaf, f.Uncounted = true, true, true, []string{"slurm/1", "slurm/2", "slurm/3", "slurm/4"}
		}, "perf for schedulers' jobs", doctor.Limited, "ProtectControlGroups=no", doctor.Mendable},
		{"a container of its own", func(f *doctor.Facts) { f.Exporter.Blind = "a namespace of its own" }, "progress reports", doctor.Broken, "hostPID", doctor.Ill},
		{"no exporter runs", func(f *doctor.Facts) { f.SocketErr = errors.New("refused") }, "exporter", doctor.Limited, "systemctl start", doctor.Mendable},
		{"this user cannot run one", func(f *doctor.Facts) {
			f.Exporter.UID, f.SocketErr, f.Listening = 1000, errors.New("refused"), errors.New("/run: permission denied")
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

func TestJobsThatTheUserMayNotSeeRunNevertheless(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		managers []string
		all      int
		want     string
	}{
		{"none runs", nil, 0, "none runs now"},
		{"those of others", nil, 20, "none runs now that this user may see, and 20 in all; root and --api.readers see all"},
		{"some of this user's own among them", []string{"slurm"}, 20, "found now: slurm"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			findings := doctor.Examine(facts(func(f *doctor.Facts) { f.Managers, f.Exporter.Jobs = c.managers, c.all }))
			if last := findings[len(findings)-1]; last.Name != "jobs" || last.State != doctor.Works || last.Why != c.want {
				t.Errorf("%+v, want %q", last, c.want)
			}
		})
	}
}

func TestEqualFindingsShareALine(t *testing.T) {
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

func TestTheHeadingSaysWhoseRightsAreJudged(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*doctor.Facts){
		"The exporter that answers on /run/s, with its rights: user 0, cap_perfmon": func(f *doctor.Facts) { f.Running, f.Exporter.Capabilities = true, []string{"cap_perfmon"} },
		"No exporter answers: judged with this shell's rights: user 0, no capab":    func(f *doctor.Facts) { f.SocketErr = errors.New("refused") },
		"and the given flags": func(f *doctor.Facts) { f.Flags = true },
		"too old to say":      func(*doctor.Facts) {},
	} {
		if got := doctor.Heading(facts(change)); !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
}

func TestNoCommandOpensTheCountersOfEnergyToAll(t *testing.T) {
	t.Parallel()
	for _, uid := range []uint32{0, 1000} {
		f := facts(func(f *doctor.Facts) {
			f.Exporter.UID, f.Node.Sources[1] = uid, api.Source{Name: "energy/rapl", Support: api.Denied, Reason: "EACCES"}
		})
		for _, finding := range doctor.Examine(f) {
			if strings.Contains(finding.Mend, "chmod") || strings.Contains(finding.Mend, "o+r") {
				t.Errorf("%+v lets every user read what others compute", finding)
			}
		}
	}
}
