package check_test

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"pitchpipe/driver/slurm/check"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/scripts"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// recorded is an output of Slurm 22.05.8, with other names.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func shippedFile(t testing.TB, name string) string {
	t.Helper()
	files, err := scripts.Slurm()
	if err != nil {
		t.Fatal(err)
	}
	text, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func shipped(t testing.TB) check.Shipped {
	t.Helper()
	return check.Shipped{
		Modules: map[string]string{"pitchpipe.lua": shippedFile(t, "pitchpipe.lua"), "pitchpipe_keys.lua": shippedFile(t, "pitchpipe_keys.lua")},
		Prolog:  shippedFile(t, "task_prolog"),
	}
}

func plain(path, owner string, mode fs.FileMode, text string) check.File {
	return check.File{Path: path, Seen: check.Present, Owner: owner, Mode: mode, Open: true, FS: "ext4", Text: text}
}

// bare is a cluster where nothing was installed, seen by a user who has a
// controller of his own.
func bare(t testing.TB) check.Facts {
	t.Helper()
	skew := time.Duration(0)
	return check.Facts{
		Mode: check.Owner, Caller: "ada", Controller: "ada",
		Config: check.Config{
			File: "/home/ada/.config/pitchpipe/controller.yaml", Driver: "slurm", Mode: check.Owner, Settings: "/home/ada/.local/state/pitchpipe/slurm-env",
			State: "/home/ada/.local/state/pitchpipe", Exporter: "/run/pitchpipe/exporter.sock", Policy: check.Policy{Read: true},
		},
		Here:       check.Here{Host: "head", Home: "/home/ada", UID: "1001"},
		Slurm:      parse.Config(recorded(t, "bare.config.txt")),
		Skew:       &skew,
		Nodes:      []check.Node{{Name: "n1", Host: "n1"}, {Name: "n2", Host: "n2"}},
		Partitions: []check.Partition{{Name: "main"}},
		Jobs:       &check.Jobs{Seen: 7},
		Submit:     check.File{Path: "/etc/slurm/job_submit.lua", Seen: check.Absent},
		Exporters:  []check.Exporter{{Node: "n1"}, {Node: "n2"}},
		Shipped:    shipped(t),
	}
}

// ready is a cluster of one node with all that a site can install, seen on it.
func ready(t testing.TB) check.Facts {
	t.Helper()
	f := bare(t)
	f.Slurm = parse.Config(recorded(t, "site.config.txt"))
	f.Here.Ctld, f.Here.Nodes = true, []string{"n1"}
	f.Nodes = f.Nodes[:1]
	f.Config.TaskProlog, f.Config.Plugin, f.Config.Policy = true, true, check.Policy{Read: true, File: "/etc/pitchpipe/site.yaml", Apply: true}
	f.Submit = plain("/etc/slurm/job_submit.lua", "root", 0o644, shippedFile(t, "job_submit.lua"))
	f.Modules = nil
	for _, name := range slices.Sorted(maps.Keys(f.Shipped.Modules)) {
		f.Modules = append(f.Modules, plain("/etc/slurm/pitchpipe/"+name, "root", 0o644, f.Shipped.Modules[name]))
	}
	f.Prolog = plain("/etc/slurm/pitchpipe/task_prolog", "root", 0o755, f.Shipped.Prolog)
	f.PrologConf = plain("/etc/pitchpipe/task_prolog.conf", "root", 0o644,
		"site_dir=/shared/pitchpipe\nsite_user=pitchpipe\nowner_dir=.local/state/pitchpipe/slurm-env\nexporter=/run/pitchpipe/exporter.sock\nlistener=/usr/bin/pitchpipe\n")
	f.Listener = plain("/usr/bin/pitchpipe", "root", 0o755, "")
	f.Folder = plain("/home/ada/.local/state/pitchpipe/slurm-env", "ada", 0o755|fs.ModeDir, "")
	f.Accounts = check.Accounts{
		Asked: true, Users: []check.User{{Name: "pitchpipe", Level: "None"}, {Name: "pitchpipe-broker", Level: "Operator"}, {Name: "ada", Level: "None"}},
		Assocs: []check.Association{{Account: "physics", User: "ada"}},
	}
	f.Exporters = []check.Exporter{{Node: "n1", Address: "/run/pitchpipe/exporter.sock", Answer: check.Answers, Steps: "supported", Energy: "rapl"}}
	f.Options = plain("/etc/default/pitchpipe-exporter", "root", 0o644, "# flags\nOPTIONS=\"--log.level=info --api.readers=pitchpipe,1234\"\n")
	return f
}

// site is the same, seen by root and for a site.
func site(t testing.TB) check.Facts {
	t.Helper()
	f := ready(t)
	f.Mode, f.Caller, f.Controller, f.Config.File = check.Site, "root", "pitchpipe", "/etc/pitchpipe/controller.yaml"
	f.Config.Mode = check.Site
	f.Config.Settings, f.Config.State = "/shared/pitchpipe", "/var/lib/pitchpipe"
	f.Here.Home, f.Here.UID = "/var/lib/pitchpipe", "990"
	f.Folder = plain("/shared/pitchpipe", "pitchpipe", 0o755|fs.ModeDir, "")
	f.Folder.FS = "nfs"
	f.Jobs = &check.Jobs{Seen: 7, BySite: 7, ByController: true}
	f.Broker = check.Broker{
		Socket: plain("/run/pitchpipe-broker/broker.sock", "pitchpipe-broker", fs.ModeSocket|0o666, ""), Account: "pitchpipe-broker", Answer: check.Answers,
	}
	f.Proof = &check.Proof{
		Account: "ada", Job: "12", Bad: `pitchpipe: line 2, column 7: unknown key "mod"`, Comment: "pitchpipe:1:{}", Variable: check.Answers, Measured: check.Answers,
	}
	return f
}

// wrong is a site where everything that can be wrong is.
func wrong(t testing.TB) check.Facts {
	t.Helper()
	f := site(t)
	f.Slurm = parse.Config(recorded(t, "wrong.config.txt"))
	skew := 42 * time.Second
	f.Skew, f.Controller = &skew, "slurm"
	f.Nodes = append(f.Nodes, check.Node{Name: "n2", Host: "n2"})
	f.Partitions = []check.Partition{{Name: "main", Exclusive: true}, {Name: "secret", Hidden: true}}
	f.Config = check.Config{
		File: "/etc/pitchpipe/controller.yaml", Driver: "local", Plugin: true, Settings: "/elsewhere", Partitions: []string{"man"},
		Exporter: "/run/pitchpipe/exporter.sock", Policy: check.Policy{Read: true, File: "/etc/pitchpipe/site.yaml", Fault: "/etc/pitchpipe/site.yaml:2:3: unknown key"},
	}
	f.Jobs.Seen, f.Jobs.BySite = 95, 3
	f.Submit.Text = strings.Replace(f.Submit.Text, `= "reject"`, `= "refuse"`, 1)
	f.Modules[0].Text += "\n"
	f.Prolog.Text += "# changed\n"
	f.Prolog.Mode = 0o775
	f.PrologConf.Text = "site_dir=/shared/pitchpipe\nsite_user=slurm\nexporter=/run/pitchpipe/exporter.sock\nlistener=/usr/bin/pitchpipe\n"
	f.Listener.Mode = 0o777
	f.Folder.Mode, f.Folder.FS = 0o777|fs.ModeDir, "ext4"
	f.Accounts.Users = []check.User{{Name: "slurm", Level: "Administrator"}}
	f.Broker.Answer, f.Broker.Text = check.Denies, "only the site's controller may ask"
	f.Exporters = []check.Exporter{
		{Node: "n1", Address: "/run/pitchpipe/exporter.sock", Answer: check.Answers, Steps: "denied: needs root or CAP_SYS_PTRACE"}, {Node: "n2"},
	}
	f.Options.Text = "OPTIONS=\"\"\n"
	f.Proof = &check.Proof{
		Account: "ada", Accepted: true, Job: "12", Variable: check.Silent, Measured: check.Silent,
	}
	return f
}

// closed is a site seen by an ordinary user from a machine that is neither the
// controller's nor a node.
func closed(t testing.TB) check.Facts {
	t.Helper()
	f := site(t)
	f.Caller, f.Here, f.Config.Policy = "ada", check.Here{Host: "login", UID: "990"}, check.Policy{}
	f.Submit = check.File{Path: "/etc/slurm/job_submit.lua", Seen: check.Absent}
	f.Modules = nil
	f.Prolog = check.File{Path: "/etc/slurm/pitchpipe/task_prolog", Seen: check.Absent}
	f.PrologConf = check.File{Path: "/etc/pitchpipe/task_prolog.conf", Seen: check.Closed}
	f.Folder = check.File{}
	f.Accounts = check.Accounts{Asked: true, Denied: "slurm_persist_conn_open: access denied"}
	f.Broker = check.Broker{Socket: check.File{Path: "/run/pitchpipe-broker/broker.sock", Seen: check.Closed}}
	f.Options = check.File{}
	f.Proof = &check.Proof{Account: "ada", Bad: "the partition is down", Job: "12", Comment: "pitchpipe:1:-", Unstarted: "job 12 was PENDING (Resources) for 1m30s and was cancelled"}
	return f
}

func TestAClusterIsToldInSentencesThatAnAdministratorCanActOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		facts  func(testing.TB) check.Facts
		passed bool
	}{
		{"a bare cluster, seen by an owner", bare, false},
		{"a cluster that is ready for owners", ready, true},
		{"a cluster that is ready for a site", site, true},
		{"a site where all is wrong", wrong, false},
		{"a site, seen by one who may see nothing", closed, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := check.Judge(c.facts(t))
			if r.Passed != c.passed {
				t.Errorf("passed %v, want %v", r.Passed, c.passed)
			}
			golden(t, strings.NewReplacer(" ", "-", ",", "").Replace(c.name)+".golden", check.Text(r))
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(recorded(t, name)), got); diff != "" {
		t.Errorf("%s (-have +want):\n%s", name, diff)
	}
}

// TestOneThingThatIsWrongIsTheOneThatIsTold takes one thing away from a cluster that
// is ready.
func TestOneThingThatIsWrongIsTheOneThatIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		facts   func(testing.TB) check.Facts
		change  func(*check.Facts)
		finding string
		verdict check.Verdict
		fails   bool
	}{
		{"no TaskProlog, and the controller counts on it", ready, func(f *check.Facts) { f.Slurm["TaskProlog"] = "" }, "slurm.task_prolog", check.Missing, true},
		{"a TaskProlog of the site's own", ready, func(f *check.Facts) { f.Prolog.Text = "#!/bin/sh\necho hello\n" }, "prolog.script", check.Missing, true},
		{"a TaskProlog that calls ours", ready, func(f *check.Facts) { f.Prolog.Text = "#!/bin/sh\n/etc/slurm/pitchpipe/task_prolog\n" }, "prolog.script", check.OK, false},
		{"a TaskProlog that names ours in a comment", ready, func(f *check.Facts) { f.Prolog.Text = "#!/bin/sh\n# not /etc/slurm/pitchpipe/task_prolog\n" }, "prolog.script", check.Missing, true},
		{"another line conf= is the site's choice", ready, func(f *check.Facts) {
			f.Prolog.Text = strings.Replace(f.Prolog.Text, "\nconf=/etc/", "\nconf=/opt/", 1)
		}, "prolog.script", check.OK, false},
		{"a task prolog that everybody may write", site, func(f *check.Facts) { f.Prolog.Mode = 0o757 }, "prolog.permissions", check.Wrong, true},
		{"a task prolog that not everybody may run", site, func(f *check.Facts) { f.Prolog.Mode = 0o750 }, "prolog.permissions", check.Wrong, true},
		{"a line of the plugin's file that is a comment", site, func(f *check.Facts) {
			f.Submit.Text = "-- require \"pitchpipe\"\n-- pitchpipe.submit(job_desc)\n"
		}, "plugin.job_submit", check.Missing, true},
		{"no job_submit.lua beside a slurm.conf that wants one", ready, func(f *check.Facts) { f.Submit.Seen = check.Absent }, "plugin.job_submit", check.Missing, true},
		{"a file of the plugin that is not there", site, func(f *check.Facts) { f.Modules[0].Seen = check.Absent }, "plugin.modules", check.Missing, true},
		{"a file of the plugin that slurmctld cannot read", site, func(f *check.Facts) { f.Modules[0].Mode = 0o600 }, "plugin.modules", check.Wrong, true},
		{"jobs that others do not see", site, func(f *check.Facts) { f.Slurm["PrivateData"] = "accounts,jobs" }, "slurm.private_data", check.Wrong, true},
		{"jobs that others do not see, for an owner", ready, func(f *check.Facts) { f.Slurm["PrivateData"] = "jobs" }, "slurm.private_data", check.Wrong, false},
		{"a controller that sees few of the jobs", site, func(f *check.Facts) { f.Jobs = &check.Jobs{Seen: 90, BySite: 2, ByController: true} }, "slurm.jobs_seen", check.Wrong, true},
		{"a range of statuses", ready, func(f *check.Facts) { f.Slurm["RequeueExitHold"] = "3,80-90" }, "slurm.requeue_exit", check.OK, false},
		{"statuses without that of a checkpoint", ready, func(f *check.Facts) { f.Slurm["RequeueExitHold"] = "86-90,x-99,85x" }, "slurm.requeue_exit", check.Missing, false},
		{"a controller under an account that is not there", site, func(f *check.Facts) { f.Here.UID = "" }, "accounts.ordinary", check.Missing, true},
		{"a controller with a level", site, func(f *check.Facts) { f.Accounts.Users[0].Level = "Operator" }, "accounts.controller", check.Wrong, true},
		{"a broker without a level", site, func(f *check.Facts) { f.Accounts.Users[1].Level = "None" }, "accounts.broker", check.Wrong, true},
		{"a broker that the accounting does not know", site, func(f *check.Facts) { f.Broker.Account = "nobody" }, "accounts.broker", check.Missing, true},
		{"a broker that this user may not see there", site, func(f *check.Facts) {
			f.Broker.Account, f.Caller, f.Slurm["PrivateData"] = "nobody", "ada", "users"
		}, "accounts.broker", check.Unknown, false},
		{"an owner without an account", ready, func(f *check.Facts) {
			f.Accounts.Assocs, f.Slurm["AccountingStorageEnforce"] = nil, "associations"
		}, "accounts.association", check.Missing, true},
		{"a folder of another account", site, func(f *check.Facts) { f.Folder.Owner = "ada" }, "settings.folder", check.Wrong, true},
		{"a folder that the other nodes do not have", site, func(f *check.Facts) {
			f.Folder.FS, f.Nodes = "xfs", append(f.Nodes, check.Node{Name: "n2", Host: "n2"})
		}, "settings.folder", check.Wrong, true},
		{"settings that the prolog does not read", site, func(f *check.Facts) { f.Config.Settings = "/elsewhere" }, "controller.settings", check.Wrong, true},
		{"a prolog that believes another account", site, func(f *check.Facts) {
			f.PrologConf.Text = strings.Replace(f.PrologConf.Text, "=pitchpipe\n", "=ada\n", 1)
		}, "prolog.conf", check.Wrong, true},
		{"no listener", site, func(f *check.Facts) { f.PrologConf.Text = strings.Replace(f.PrologConf.Text, "listener=", "#", 1) }, "prolog.listener", check.Missing, true},
		{"a listener that others may write", site, func(f *check.Facts) { f.Listener.Mode = 0o777 }, "prolog.listener", check.Wrong, true},
		{"a controller of the other mode", site, func(f *check.Facts) { f.Config.Mode = check.Owner }, "controller.mode", check.Wrong, true},
		{"no plugin, where the broker believes scripts", site, func(f *check.Facts) {
			f.Config.Plugin, f.Config.Scripts, f.Slurm["JobSubmitPlugins"] = false, true, ""
		}, "slurm.job_submit_plugins", check.Missing, false},
		{"no broker", site, func(f *check.Facts) { f.Broker.Socket.Seen = check.Absent }, "broker.socket", check.Missing, true},
		{"no policy", site, func(f *check.Facts) { f.Config.Policy = check.Policy{Read: true} }, "policy.mode", check.Missing, false},
		{"a policy that lets no stanza apply", ready, func(f *check.Facts) { f.Config.Policy.Apply = false }, "policy.mode", check.Missing, false},
		{"a policy that cannot be used", site, func(f *check.Facts) { f.Config.Policy.Fault = "line 2" }, "policy.mode", check.Wrong, true},
		{"a broker that answers nobody", site, func(f *check.Facts) { f.Broker.Answer = check.Silent }, "broker.socket", check.Wrong, true},
		{"a broker that denies an ordinary user", site, func(f *check.Facts) { f.Broker.Answer, f.Caller = check.Denies, "ada" }, "broker.socket", check.OK, false},
		{"a node without an exporter", ready, func(f *check.Facts) { f.Exporters[0].Answer = check.Silent }, "exporter.answers", check.Missing, true},
		{"a node that is down", ready, func(f *check.Facts) {
			f.Exporters[0].Answer, f.Nodes[0].State = check.Silent, "down*"
		}, "exporter.answers", check.Unknown, false},
		{"an exporter that finds no job without cgroups", ready, func(f *check.Facts) {
			f.Slurm["ProctrackType"], f.Exporters[0].Steps = "proctrack/linuxproc", "denied"
		}, "exporter.finds_jobs", check.Wrong, true},
		{"an exporter that shows the controller nothing", site, func(f *check.Facts) { f.Options.Text = "OPTIONS=\"--api.readers ada\"\n" }, "exporter.readers", check.Missing, true},
		{"an exporter that has the controller's number", site, func(f *check.Facts) { f.Options.Text = "OPTIONS='--api.readers 990'\n" }, "exporter.readers", check.OK, false},
		{"a good job that sbatch refuses", site, func(f *check.Facts) { f.Proof = &check.Proof{Failed: "Invalid account"} }, "try.submitted", check.Wrong, true},
		{"a warning instead of a refusal", site, func(f *check.Facts) { f.Proof.Accepted = true }, "try.refused", check.OK, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := c.facts(t)
			c.change(&f)
			r := check.Judge(f)
			i := slices.IndexFunc(r.Findings, func(f check.Finding) bool { return f.Name == c.finding })
			if i < 0 {
				t.Fatalf("no finding %s in %v", c.finding, r.Findings)
			}
			got := r.Findings[i]
			if got.Verdict != c.verdict || got.Fails(f.Mode) != c.fails || r.Passed == c.fails {
				t.Errorf("%+v, passed %v; want %s, fails %v", got, r.Passed, c.verdict, c.fails)
			}
		})
	}
}

// TestTheFolderThatIsProposedIsOneThatJobsReach: below the controller's state is none.
func TestTheFolderThatIsProposedIsOneThatJobsReach(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings, conf, want string
	}{
		"where neither file names one":          {"/var/lib/pitchpipe/slurm-env", "", "site_dir=/srv/pitchpipe/settings"},
		"where the controller's file names one": {"/shared/pitchpipe", "", "site_dir=/shared/pitchpipe"},
		"where the task prolog's names one":     {"/var/lib/pitchpipe/slurm-env", "site_dir=/nfs/settings\n", "site_dir=/nfs/settings"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := site(t)
			f.Config.Settings, f.PrologConf.Text = c.settings, c.conf
			r := check.Judge(f)
			i := slices.IndexFunc(r.Findings, func(f check.Finding) bool { return f.Name == "prolog.conf" })
			if i < 0 || r.Findings[i].Verdict != check.Missing || !slices.Contains(r.Findings[i].Change, c.want) {
				t.Errorf("%+v, want the line %s", r.Findings, c.want)
			}
		})
	}
}

// TestNodesThatAreAlikeAreToldOfTogether: a cluster has thousands.
func TestNodesThatAreAlikeAreToldOfTogether(t *testing.T) {
	t.Parallel()
	f := ready(t)
	f.Exporters = nil
	for i := range 1000 {
		name := fmt.Sprintf("node%04d", i)
		e := check.Exporter{Node: name, Address: "https://" + name + ":9836", Answer: check.Answers, Steps: "supported", Energy: "rapl"}
		if i == 500 || i == 700 {
			e = check.Exporter{Node: name, Address: e.Address, Answer: check.Silent, Text: "dial " + name + ": no route to host"}
		}
		f.Exporters = append(f.Exporters, e)
	}
	r := check.Judge(f)
	var got []string
	for _, f := range r.Findings {
		if f.Name == "exporter.answers" {
			got = append(got, string(f.Verdict)+" | "+f.Where+" | "+f.Looked)
		}
	}
	want := []string{
		"ok | nodes node0000, node0001, node0002, node0003, node0004, node0005, node0006, node0007 and 990 more: /etc/default/pitchpipe-exporter | its exporter answers at https://{node}:9836",
		"missing | nodes node0500, node0700: /etc/default/pitchpipe-exporter | no exporter answers at https://{node}:9836: dial {node}: no route to host",
	}
	if diff := cmp.Diff(want, got); diff != "" || r.Passed {
		t.Errorf("passed %v %s", r.Passed, diff)
	}
}

// TestWhatIsNotFineSaysWhyAndWhatToDo holds for all that the recorded clusters show.
func TestWhatIsNotFineSaysWhyAndWhatToDo(t *testing.T) {
	t.Parallel()
	for _, facts := range []func(testing.TB) check.Facts{bare, ready, site, wrong, closed} {
		for _, f := range check.Judge(facts(t)).Findings {
			switch {
			case f.Name == "" || f.Where == "" || f.Looked == "":
				t.Errorf("%+v: has no name, no place or nothing that was looked at", f)
			case f.Verdict == check.OK && len(f.Change) > 0:
				t.Errorf("%s is fine and yet wants a change", f.Name)
			case f.Verdict == check.OK:
			case !strings.HasSuffix(f.Why, "."), strings.Count(f.Why, ". ") > 0:
				t.Errorf("%s: why is no single sentence: %q", f.Name, f.Why)
			case f.Verdict != check.Unknown && len(f.Change) == 0:
				t.Errorf("%s is %s and says nothing to change", f.Name, f.Verdict)
			}
		}
	}
}

// TestNoFactsAreNoFaults: what is not known is never told as wrong in what is read
// from files, and nothing panics on whatever facts there are.
func TestNoFactsAreNoFaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := rapid.SampledFrom([]func(testing.TB) check.Facts{bare, ready, site, wrong, closed}).Draw(rt, "facts")(t)
		f.Mode = rapid.SampledFrom([]check.Mode{check.Owner, check.Site}).Draw(rt, "mode")
		f.Slurm["TaskProlog"], f.Slurm["JobSubmitPlugins"] = "/p", "lua"
		seen := rapid.SampledFrom([]check.Seen{check.NotLooked, check.Closed})
		for _, file := range []*check.File{&f.Submit, &f.Prolog, &f.PrologConf, &f.Folder} {
			*file = check.File{Path: file.Path, Seen: seen.Draw(rt, "seen")}
		}
		for _, key := range []string{
			"SLURM_CONF", "SLURM_VERSION", "ClusterName", "MinJobAge", "MaxJobCount", "SchedulerParameters", "RequeueExit", "RequeueExitHold", "PrivateData",
			"ProctrackType", "TaskPlugin", "SlurmUser", "SlurmctldHost[0]", "AccountingStorageType", "AccountingStorageEnforce", "JobAcctGatherType",
		} {
			f.Slurm[key] = rapid.OneOf(rapid.Just(f.Slurm[key]), rapid.Just(""), rapid.String()).Draw(rt, key)
		}
		r := check.Judge(f)
		for _, name := range []string{"plugin.job_submit", "plugin.modules", "prolog.script", "prolog.conf", "settings.folder"} {
			for _, got := range r.Findings {
				if got.Name == name && got.Verdict != check.Unknown {
					rt.Fatalf("%+v, and no look was made", got)
				}
			}
		}
		if text := check.Text(r); strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\n' }) {
			rt.Fatalf("a control character in %q", text)
		}
	})
}

// TestFindingsAreWellFormed: a misspelled key of findings.yaml would be a text that is missing.
func TestFindingsAreWellFormed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("findings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil || len(all) < 40 {
		t.Fatalf("%d findings: %v", len(all), err)
	}
	known := []string{"where", "looked", "why", "needed", "change", "then"}
	for name, f := range all {
		cases, _ := f["cases"].(map[string]any)
		delete(f, "cases")
		for key := range f {
			if !slices.Contains(known, key) {
				t.Errorf("%s has the unknown key %s", name, key)
			}
		}
		for which, words := range cases {
			verdict, _, _ := strings.Cut(which, ".")
			if !slices.Contains([]string{"ok", "missing", "wrong", "unknown"}, verdict) {
				t.Errorf("%s has the case %s, which begins with no verdict", name, which)
			}
			of, _ := words.(map[string]any)
			for key := range of {
				if !slices.Contains(known[1:], key) {
					t.Errorf("%s, case %s, has the unknown key %s", name, which, key)
				}
			}
		}
	}
}
